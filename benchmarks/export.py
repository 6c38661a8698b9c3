r"""What leaving torch costs: vectors, quality and time of exported models, and of quantised ones.

    python -m benchmarks.export --shared data

The data: ``stsb.parquet`` (``sentence1``, ``sentence2``, ``score``, ``split``), whose test pairs are scored by
Spearman's correlation of cosine and label; and ``aan_papers.parquet`` (``id``, ``text``) with ``aan_citations.parquet``
(``citing``, ``cited``): whole papers, and the mean reciprocal rank of the paper that is cited among all cited ones of
the sample. Times are the process's on one thread, the best of the repeats, side by side. Results go to
``results/export.json`` and ``.md``.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from scipy.stats import spearmanr

from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from benchmarks.timing import one_thread
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.base import load_model
from simlte_st.models.export import export_onnx
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.onnx_encoder import load_onnx

FILES = ("stsb.parquet", "aan_papers.parquet", "aan_citations.parquet")


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--models", nargs="+", default=[PACKAGED_BASE, "simlte-bert"], metavar="NAME")
    parser.add_argument("--pairs", type=int, default=500, metavar="N", help="of sentences (default: %(default)s)")
    parser.add_argument("--links", type=int, default=40, metavar="N", help="of papers (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2, metavar="N", help="of timings (default: %(default)s)")
    options = parser.parse_args(arguments)
    missing = [name for name in FILES if not (options.shared / name).exists()]
    if missing:
        print(f"Skipped: there is no {' and no '.join(missing)} in {options.shared}.")
        return
    with one_thread():
        data = read(options.shared, options.pairs, options.links)
        rows = [row for name in options.models for row in measure(name, data, options.repeats)]
        sizes = {"pairs": len(data["sentences"]), "links": len(data["links"])}
        write_results("export", {**sizes, "environment": environment(), "rows": rows}, options.output)


def read(folder: Path, pairs: int, links: int) -> dict[str, Any]:
    """Draw test pairs of sentences with their labels, and links with the papers that they join."""
    draw = np.random.default_rng(0)
    sentences = [row for row in pq.read_table(folder / FILES[0]).to_pylist() if row["split"] == "test"]
    sentences = [sentences[row] for row in draw.permutation(len(sentences))[:pairs]]
    papers = pq.read_table(folder / FILES[1], columns=["id", "text"]).to_pydict()
    texts = dict(zip(papers["id"], papers["text"], strict=True))
    cited = pq.read_table(folder / FILES[2]).to_pylist()
    cited = [row for row in cited if row["citing"] in texts and row["cited"] in texts]
    cited = [cited[row] for row in draw.permutation(len(cited))[:links]]
    return {"sentences": sentences, "links": cited, "texts": texts}


def measure(name: str, data: dict[str, Any], repeats: int) -> list[dict[str, Any]]:
    """Measure a model in torch, as a graph, and quantised."""
    model = load_model(name, device="cpu", dtype=torch.float32).model
    with TemporaryDirectory() as folder:
        sizes = {"torch": 4 * sum(weight.numel() for weight in model.parameters())}
        encoders: dict[str, Any] = {"torch": model}
        for form, int8 in (("onnx", False), ("onnx int8", True)):
            made = export_onnx(name, Path(folder) / form, int8=int8)
            sizes[form], encoders[form] = made.bytes, load_onnx(made.output)
        pairs, links = data["sentences"], data["links"]
        short = [row[side] for side in ("sentence1", "sentence2") for row in pairs]
        ids = sorted({row[side] for side in ("citing", "cited") for row in links})
        long = [data["texts"][paper] for paper in ids]
        vectors, seconds = encode(encoders, short, repeats)
        of_papers, seconds_of_papers = encode(encoders, long, repeats)
    place = {paper: row for row, paper in enumerate(ids)}
    rows = []
    for form in encoders:
        first, second = np.split(vectors[form], 2)
        rows.append(
            {
                "model": name,
                "form": form,
                "MiB": sizes[form] / 2**20,
                "cosine": float((of_papers[form] * of_papers["torch"]).sum(1).mean()),
                "sts": float(spearmanr((first * second).sum(1), [row["score"] for row in pairs])[0]),
                "aan": reciprocal_rank(of_papers[form], [(place[row["citing"]], place[row["cited"]]) for row in links]),
                "times_short": seconds["torch"] / seconds[form],
                "times_long": seconds_of_papers["torch"] / seconds_of_papers[form],
            }
        )
    return rows


def encode(encoders: dict[str, Any], texts: list[str], repeats: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Encode texts in turns; give the vectors and the least process time of each."""
    vectors, seconds = {}, dict.fromkeys(encoders, float("inf"))
    for _ in range(repeats):
        for form, encoder in encoders.items():
            start = time.process_time()
            vectors[form] = encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)
            seconds[form] = min(seconds[form], time.process_time() - start)
    return vectors, seconds


def reciprocal_rank(vectors: np.ndarray, links: list[tuple[int, int]]) -> float:
    """Rank all cited papers by their cosine with each citing one; give the mean of 1 / rank of the one it cites."""
    cited = np.array(sorted({paper for _, paper in links}))
    ranks = []
    for citing, wanted in links:
        others = cited[cited != citing]
        cosines = vectors[others] @ vectors[citing]
        ranks.append(1 + int((cosines > cosines[others == wanted]).sum()))
    return float(np.mean(1 / np.array(ranks)))


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    table = [
        [
            f"{row['model']}, {row['form']}",
            f"{row['MiB']:.0f}",
            f"{row['cosine']:.4f}",
            f"{100 * row['sts']:.1f}",
            f"{100 * row['aan']:.1f}",
            f"{row['times_short']:.2f}x",
            f"{row['times_long']:.2f}x",
        ]
        for row in record["rows"]
    ]
    heads = ["model, form", "MiB", "cosine", "STS-B", "AAN", "speed, sentences", "speed, papers"]
    return document(
        "# Exported models",
        "`simlte export` against the same model in torch: mean cosine of the vectors of papers; Spearman's correlation "
        f"on {record['pairs']} test pairs of STS-B; mean reciprocal rank of the cited paper, "
        f"{record['links']} links of AAN, whole papers as far as the model reads; texts a second against torch, one "
        "thread. `int8` is `--int8`: the encoder's weights in 8 bits, one scale a channel. Samples are small: a point "
        "is noise.",
        markdown_table(heads, table),
        machines=[record["environment"]],
        command="python -m benchmarks.export --shared SHARED_DATA",
    )


if __name__ == "__main__":
    main()
