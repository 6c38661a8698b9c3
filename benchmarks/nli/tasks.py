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
"""Files of the sets of Table 3. STS13 lacks the machine translations, which have a different licence."""

SENTEVAL = {
    "MR": "senteval_mr", "CR": "senteval_cr", "MPQA": "senteval_mpqa", "SUBJ": "senteval_subj", "TREC": "senteval_trec",
    "MRPC": "senteval_mrpc",
}  # fmt: skip
"""Files of the tasks of Table 4, without SST."""

Rows = Any
"""Vectors ``[n, dim]``: an array, or a SciPy sparse matrix."""


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of texts with human similarity scores."""

    first: list[str]
    second: list[str]
    scores: list[float]


@dataclass(frozen=True)
class TransferTask:
    """Texts, or pairs of texts, with classes.

    Attributes:
        first: The texts, or first texts of the pairs.
        second: The second texts; empty for tasks on single texts.
        labels: The classes.
        learn: Number of training rows, which come first; 0 for a task without a split, which uses 10 folds.
    """

    first: list[str]
    second: list[str]
    labels: list[Any]
    learn: int


def load_pairs(folder: Path, name: str, most: int | None) -> ScoredPairs:
    """Read a set of :data:`STS`, or its test part if it has one; draw at most ``most`` pairs."""
    table = pq.read_table(folder / f"{STS[name]}.parquet")
    if "split" in table.column_names:
        table = table.filter(pc.equal(table["split"], "test"))
    table = sample_table(table, most)
    return ScoredPairs(*(table[column].to_pylist() for column in ("sentence1", "sentence2", "score")))


def load_labelled(folder: Path, name: str, most: int | None) -> TransferTask:
    """Read a task of :data:`SENTEVAL`; draw at most ``most`` examples."""
    table = pq.read_table(folder / f"{SENTEVAL[name]}.parquet")
    table = sample_table(table, most)
    learn = 0
    if "split" in table.column_names:
        parts = [table.filter(pc.equal(table["split"], part)) for part in ("train", "test")]
        table, learn = pa.concat_tables(parts), parts[0].num_rows
    first, second = ("sentence1", "sentence2") if "sentence1" in table.column_names else ("text", "")
    return TransferTask(
        table[first].to_pylist(), table[second].to_pylist() if second else [], table["label"].to_pylist(), learn
    )


def sample_table(table: pa.Table, most: int | None) -> pa.Table:
    """Draw at most ``most`` rows, in their original order."""
    return table if most is None else table.take(sample_rows(table.num_rows, most, seed=0))


def similarity(model: SentenceTransformer, pairs: ScoredPairs) -> dict[str, float]:
    """Correlate cosine similarity with human scores, with sentence-transformers' evaluator."""
    evaluator = EmbeddingSimilarityEvaluator(
        pairs.first, pairs.second, pairs.scores, main_similarity="cosine", batch_size=64, write_csv=False
    )
    found = evaluator(model)
    return {name: float(found[f"{name}_cosine"]) for name in ("pearson", "spearman")}


def tfidf_similarity(pairs: ScoredPairs) -> dict[str, float]:
    """Correlate TF-IDF similarity with human scores."""
    return score_similarity(TfidfScores([*pairs.first, *pairs.second]), pairs)


def score_similarity(scores: PairScores, pairs: ScoredPairs) -> dict[str, float]:
    """Correlate any scores with human ones; the scores cover the first texts, then the second texts."""
    first = np.arange(len(pairs.first))
    found = scores.pairs(np.column_stack([first, len(first) + first]))
    return {
        "pearson": float(pearsonr(found, pairs.scores).statistic),
        "spearman": float(spearmanr(found, pairs.scores).statistic),
    }


def tfidf_transfer_accuracy(task: TransferTask) -> float:
    """Run :func:`transfer` with TF-IDF vectors."""
    vectorizer = fit_tfidf([*task.first, *task.second])
    return transfer_accuracy(vectorizer.transform, task, TFIDF_INVERSE_L2)


def transfer_accuracy(embed: Callable[[Sequence[str]], Rows], task: TransferTask, inverse_l2: float = 1.0) -> float:
    """Return the accuracy of a logistic regression on frozen vectors, as in SentEval.

    The features of a pair are |u - v| and u * v, concatenated. Tasks without a split use 10-fold cross-validation.
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
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return float(cross_val_score(head, rows, labels, cv=folds).mean())
