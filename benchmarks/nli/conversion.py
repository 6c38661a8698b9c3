"""Base form conversion by itself: the share of texts that it changes, and what it costs beside the rest."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer

from benchmarks.nli.tasks import drawn
from benchmarks.timing import side_by_side
from simlte_st.modules.base_form import expand_contractions

SETS = {
    "SNLI": "snli_dev_test", "STSb": "stsb", "MR": "senteval_mr", "tweets": "politifact_tweets",
    "20 Newsgroups": "20newsgroups", "arXiv abstracts": "arxiv_abstracts", "articles": "politifact_articles",
    "Wikipedia": "enwiki2014",
}  # fmt: skip
"""Short texts and long ones, and their files."""

MOST = 2000
"""Texts of a set, drawn once."""

EMBEDDED = 64
"""Of these, texts whose embedding is timed."""

REPEATS = 3


def load_texts(path: Path) -> list[str]:
    """Read some texts of a file."""
    table = pq.read_table(path)
    column = "text" if "text" in table.column_names else "sentence1"
    return [str(text) for text in drawn(table, MOST)[column].to_pylist()]


def conversion(path: Path, model: SentenceTransformer) -> dict[str, Any]:
    """Convert texts; tokenize them and embed a part of them, as the base reads them, beside it in the same run."""
    texts = load_texts(path)
    converted = list(expand_contractions(texts))
    some = texts[:EMBEDDED]
    jobs = {
        "convert": lambda: list(expand_contractions(texts)),
        "tokenize": lambda: model.tokenizer(texts),
        "embed": lambda: model.encode(some, show_progress_bar=False),
    }
    seconds = {name: median(turns) for name, turns in side_by_side(jobs, REPEATS).items()}
    return {
        "texts": len(texts),
        "changed": sum(before != after for before, after in zip(texts, converted, strict=True)),
        "characters": sum(map(len, texts)),
        "convert": seconds["convert"] / len(texts),
        "tokenize": seconds["tokenize"] / len(texts),
        "embed": seconds["embed"] / len(some),
    }
