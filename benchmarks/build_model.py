r"""Rebuild simlte-longformer, simlte-bert or simlte-static.

For the two encoders, all-MiniLM-L6-v2 reads documents in pieces and teaches a model to read them in one pass; see
:mod:`benchmarks.builder.encoders`. On one CPU core in bfloat16, simlte-longformer took an hour and a half (3,000
articles) and simlte-bert a quarter of an hour (1,000). Requires ``peft`` (extra ``dev``). simlte-static is distilled,
taught all-MiniLM-L6-v2's embeddings of passages, and trained by DocSplit (:mod:`benchmarks.builder.static_model`);
without ``--passages``, it is the model of version 0.2::

    python -m benchmarks.build_model simlte-longformer articles.parquet --limit 3000 --bf16 --output FOLDER
    python -m benchmarks.build_model simlte-static articles.parquet --limit 12000 --passages passages.parquet \
        --bf16 --output FOLDER
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.builder.encoders import build_encoder
from benchmarks.builder.static_model import build_static
from benchmarks.records import make_parser
from simlte_st.data import read_documents
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, usage_example


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--bf16")
    parser.add_argument("name", choices=OWN_MODELS)
    parser.add_argument("source", metavar="SOURCE", help="documents, in any form accepted by simlte train")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where to write the model")
    parser.add_argument("--limit", type=int, metavar="N", help="use at most N documents")
    parser.add_argument("--passages", type=Path, metavar="FILE", help="for simlte-static: passages to be taught")
    parser.add_argument("--max-steps", type=int, metavar="N", help="default: one pass, or 300 steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--overwrite", action="store_true", help="replace the model at FOLDER")
    options = parser.parse_args(arguments)
    documents = read_documents(options.source, limit=options.limit)
    settings: dict[str, Any] = {name: getattr(options, name) for name in ("max_steps", "bf16", "seed", "overwrite")}
    if options.name == OWN_STATIC:
        build = build_static(documents, options.output, passages=options.passages, **settings)
    else:
        build = build_encoder(options.name, documents, options.output, **settings)
    print(f"{options.name}: {build['documents']:,} documents, {build['steps']:,} steps")
    print(f"Use it:\n\n{usage_example(options.output)}")


if __name__ == "__main__":
    main()
