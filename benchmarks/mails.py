r"""What the headers of e-mails do to topics, search and training, and what is gained by reading the mails as such.

    python -m benchmarks.mails --set "SpamAssassin=FOLDER" --set "20 Newsgroups=FOLDER"

Each folder holds raw e-mails as ``.txt`` files (SpamAssassin's public corpus, the posts of 20 Newsgroups by date with
their headers); the subfolder of a document is its class. The same documents are read as they are and as e-mails, and
for each way the packaged static model

- finds topics, whose names stand below;
- is searched for documents by nine words from the middle of their own text (what both ways have in common), by vectors
  and by vectors and words together: how often the document is the first hit, or among the first ten;
- has the nearest documents of each: how many of ten are of its class;
- is trained, with its verdict without labels.

Results go to ``results/mails.json`` and ``.md``.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import simlte_st
from benchmarks.pages import document, explanation, write_results
from benchmarks.records import environment, make_parser
from simlte_st.data import Document, read_documents
from simlte_st.evaluation.table import markdown_table
from simlte_st.exploration import explore
from simlte_st.models.names import OWN_STATIC
from simlte_st.search import Index

READINGS: dict[str, dict[str, bool]] = {"as they are": {}, "as e-mails": {"mails": True}}

WORDS = 9
"""Words of a query."""

TOP = 10
"""Hits that are looked at, and nearest documents."""

SHOWN = 12
"""Names of topics on the page."""


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--set", action="append", required=True, metavar="NAME=FOLDER", help="documents of one kind")
    parser.add_argument("--documents", type=int, default=500, metavar="N", help="of a set (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=150, metavar="N", help="of a set (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for each in options.set:
        name, _, folder = each.partition("=")
        ways = read(Path(folder), options.documents)
        queries = draw_queries([*ways.values()], options.queries)
        for way, documents in ways.items():
            rows.append({"set": name, "way": way, **measure(documents, queries)})
            print(rows[-1], flush=True)
    record = {"documents": options.documents, "queries": options.queries, "environment": environment(), "rows": rows}
    write_results("mails", record, options.output)


def read(folder: Path, most: int) -> dict[str, list[Document]]:
    """Return the same documents, drawn at random, as they are in each way."""
    ways = {
        way: list(read_documents(folder, encoding="latin-1", **how))  # type: ignore[arg-type]
        for way, how in READINGS.items()
    }
    return draw(ways, most)


def draw(read: Mapping[str, list[Document]], most: int) -> dict[str, list[Document]]:
    """Draw documents that are there in each way."""
    common = sorted(set.intersection(*({document.id for document in documents} for documents in read.values())))
    drawn = set(random.Random(0).sample(common, min(most, len(common))))
    return {way: [document for document in documents if document.id in drawn] for way, documents in read.items()}


def draw_queries(ways: Sequence[Sequence[Document]], number: int) -> dict[str, str]:
    """Return queries by the id of the document they are from: words in a row that no other has, in any way."""
    plain = [{document.id: " ".join(document.text.split()) for document in documents} for documents in ways]
    queries: dict[str, str] = {}
    for name in random.Random(1).sample(sorted(plain[-1]), len(plain[-1])):
        words = plain[-1][name].split()
        middle = max(0, len(words) // 2 - WORDS // 2)
        query = " ".join(words[middle : middle + WORDS])
        found = [[each for each, text in texts.items() if query in text] for texts in plain]
        if len(words) >= 4 * WORDS and all(each == [name] for each in found):
            queries[name] = query
        if len(queries) == number:
            break
    return queries


def measure(documents: Sequence[Document], queries: Mapping[str, str]) -> dict[str, Any]:
    """Measure topics, search and training on documents that were read in one way."""
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Path(folder) / "a.index", OWN_STATIC)
        index.add(list(documents), progress=False)
        found = {mode: search(index, queries, mode) for mode in ("dense", "hybrid")}
        topics = explore(index, output=Path(folder) / "a.html", progress=False)
        trained = simlte_st.train(list(documents), Path(folder) / "model", base=OWN_STATIC, seed=0, progress=False)
    gain = trained.gain or {}
    return {
        "characters": sum(len(document.text) for document in documents),
        **{f"{mode}, {name}": value for mode, values in found.items() for name, value in values.items()},
        "of the class": neighbours(documents),
        "topics": topics.topics,
        "verdict": gain.get("verdict", "none"),
        "probability": gain.get("probability", 0.0),
    }


def search(index: Index, queries: Mapping[str, str], mode: Any) -> dict[str, float]:
    """Return how often the document that a query is from is the first hit, or among the first ones."""
    hits = {name: [hit.id for hit in index.search(query, top_k=TOP, mode=mode)] for name, query in queries.items()}
    first = [ids[:1] == [name] for name, ids in hits.items()]
    return {"first": float(np.mean(first)), "found": float(np.mean([name in ids for name, ids in hits.items()]))}


def neighbours(documents: Sequence[Document]) -> float:
    """Return the share of the nearest documents that have the class of each, its folder."""
    classes = np.array([document.id.rpartition("/")[0] for document in documents])
    model = simlte_st.SentenceTransformer(OWN_STATIC)
    vectors = model.encode([document.text for document in documents], normalize_embeddings=True)
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -2)
    nearest = np.argsort(-similar, axis=1)[:, :TOP]
    return float((classes[nearest] == classes[:, None]).mean())


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    head = ["set, read", "characters", "by vectors", "in ten", "and words", "in ten", "class", "verdict"]
    kinds = ("dense, first", "dense, found", "hybrid, first", "hybrid, found", "of the class")
    table = [
        [f"{row['set']}, {row['way']}", f"{row['characters'] / 1e6:.1f} M", *(f"{row[kind]:.1%}" for kind in kinds),
         f"{row['verdict']} ({row['probability']:.2f})"]
        for row in record["rows"]
    ]  # fmt: skip
    topics = [
        f"- {row['set']}, {row['way']}: {len(row['topics'])}, {'; '.join(name for name, _ in row['topics'][:SHOWN])}"
        for row in record["rows"]
    ]
    return document(
        "# Headers of e-mails",
        explanation(__doc__),
        f"At most {record['documents']:,} documents and {record['queries']:,} queries a set; one draw and one seed. "
        "The verdict has its probability in brackets.",
        markdown_table(head, table),
        "Topics, the largest first:",
        "\n".join(topics),
        machines=[record["environment"]],
        command='python -m benchmarks.mails --set "NAME=FOLDER" ...',
    )


if __name__ == "__main__":
    main()
