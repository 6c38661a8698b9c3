"""Tasks for sentence embeddings: semantic similarity and SentEval's transfer tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import hstack, issparse
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from benchmarks.records import TFIDF_INVERSE_L2
from simlte_st.evaluation import PairScores, TfidfScores
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.evaluation.splits import sample_rows

STS = {
    "STS12": "sts12", "STS13": "sts13", "STS14": "sts14", "STS15": "sts15", "STS16": "sts16", "STSb": "stsb",
    "SICK-R": "sick",
}  # fmt: skip
"""Names of Table 3, and their files. STS13 lacks its machine translations, whose licence is another."""

SENTEVAL = {
    "MR": "senteval_mr", "CR": "senteval_cr", "MPQA": "senteval_mpqa", "SUBJ": "senteval_subj", "TREC": "senteval_trec",
    "MRPC": "senteval_mrpc",
}  # fmt: skip
"""Names of Table 4, and their files; SST is not among them."""

FOLDS = 10

Rows = Any
"""Vectors ``[n, dim]``: an array, or a SciPy sparse matrix."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of texts with people's judgement of how alike they are."""

    first: list[str]
    second: list[str]
    scores: list[float]


@dataclass(frozen=True)
class Labelled:
    """Texts, or pairs of texts, with classes.

    Attributes:
        first: Texts.
        second: The other side of each; empty where the task is one of single texts.
        labels: Classes.
        learn: How many of the first rows are there to learn from; 0 where the task has no split: then 10 folds.
    """

    first: list[str]
    second: list[str]
    labels: list[Any]
    learn: int


def load_pairs(folder: Path, name: str, most: int | None) -> Pairs:
    """Read a set of :data:`STS`, its test part where it has parts; ``most`` pairs of it, drawn once."""
    table = pq.read_table(folder / f"{STS[name]}.parquet")
    if "split" in table.column_names:
        table = table.filter(pc.equal(table["split"], "test"))
    table = drawn(table, most)
    return Pairs(*(table[column].to_pylist() for column in ("sentence1", "sentence2", "score")))


def load_labelled(folder: Path, name: str, most: int | None) -> Labelled:
    """Read a task of :data:`SENTEVAL`; ``most`` of its examples, drawn once."""
    table = pq.read_table(folder / f"{SENTEVAL[name]}.parquet")
    table = drawn(table, most)
    learn = 0
    if "split" in table.column_names:
        parts = [table.filter(pc.equal(table["split"], part)) for part in ("train", "test")]
        table, learn = pa.concat_tables(parts), parts[0].num_rows
    first, second = ("sentence1", "sentence2") if "sentence1" in table.column_names else ("text", "")
    return Labelled(
        table[first].to_pylist(), table[second].to_pylist() if second else [], table["label"].to_pylist(), learn
    )


def drawn(table: pa.Table, most: int | None) -> pa.Table:
    """Draw rows, in order; all of them where there are no more."""
    return table if most is None else table.take(sample_rows(table.num_rows, most, seed=0))


def similarity(model: SentenceTransformer, pairs: Pairs) -> dict[str, float]:
    """Correlate the cosine with people's judgement, by sentence-transformers' evaluator."""
    evaluator = EmbeddingSimilarityEvaluator(
        pairs.first, pairs.second, pairs.scores, main_similarity="cosine", batch_size=64, write_csv=False
    )
    found = evaluator(model)
    return {name: float(found[f"{name}_cosine"]) for name in ("pearson", "spearman")}


def tfidf_similarity(pairs: Pairs) -> dict[str, float]:
    """The same of TF-IDF vectors."""
    return score_similarity(TfidfScores([*pairs.first, *pairs.second]), pairs)


def score_similarity(scores: PairScores, pairs: Pairs) -> dict[str, float]:
    """The same of any scores, of the first texts and behind them the second ones."""
    first = np.arange(len(pairs.first))
    found = scores.pairs(np.column_stack([first, len(first) + first]))
    return {
        "pearson": float(pearsonr(found, pairs.scores).statistic),
        "spearman": float(spearmanr(found, pairs.scores).statistic),
    }


def tfidf_transfer(task: Labelled) -> float:
    """:func:`transfer` of TF-IDF vectors."""
    vectorizer = fit_tfidf([*task.first, *task.second])
    return transfer(vectorizer.transform, task, TFIDF_INVERSE_L2)


def transfer(embed: Callable[[Sequence[str]], Rows], task: Labelled, inverse_l2: float = 1.0) -> float:
    """Classify from frozen vectors by scikit-learn's logistic regression, as SentEval does; the accuracy.

    A pair is |u - v| beside u * v. A task with a split is learnt from its training part and scored on its test part;
    the others by 10 folds.
    """
    rows = embed(task.first)
    if task.second:
        other = embed(task.second)
        product = rows.multiply(other) if issparse(rows) else rows * other
        rows = (hstack if issparse(rows) else np.hstack)([abs(rows - other), product])
    rows = rows.tocsr() if issparse(rows) else rows
    head = LogisticRegression(C=inverse_l2, max_iter=1000)
    labels = np.asarray(task.labels)
    if task.learn:
        fitted = head.fit(rows[: task.learn], labels[: task.learn])
        return float(fitted.score(rows[task.learn :], labels[task.learn :]))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return float(cross_val_score(head, rows, labels, cv=folds).mean())
