"""Measure the attention of [CLS] by part of speech, in one or two models (SimLTE, figure 3, appendix C).

    python -m benchmarks.papers.attention my_documents --model my-model
    python -m benchmarks.papers.attention my_documents --model bert-base --compare my-model

Requires spaCy and one of its pipelines: pip install "simlte-st[pos]".
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers.command import make_parser, open_documents, open_models, report
from benchmarks.papers.parts_of_speech import attention_table, measure_attention
from benchmarks.papers.tagging import SpacyTagger


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--layer", type=int, default=-1, metavar="N", help="layer, from 0 (default: -1, the last)")
    parser.add_argument(
        "--max-seq-length", type=int, metavar="N", help="maximum tokens (default: the models' common limit)"
    )
    options = parser.parse_args(arguments)
    tagger, reader, models = SpacyTagger(lemmas=False), open_documents(options), open_models(options)
    results = measure_attention(models, reader, tagger, layer=options.layer, max_seq_length=options.max_seq_length)
    report(options, attention_table(results), results, reader)


if __name__ == "__main__":
    main()
