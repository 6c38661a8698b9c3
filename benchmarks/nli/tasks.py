"""Tasks for sentence embeddings: semantic textual similarity and SentEval's transfer tasks."""

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
"""Files of the sets in Table 3. STS13 lacks the machine translations, which have a different licence."""

SENTEVAL = {
    "MR": "senteval_mr", "CR": "senteval_cr", "MPQA": "senteval_mpqa", "SUBJ": "senteval_subj", "TREC": "senteval_trec",
    "MRPC": "senteval_mrpc",
}  # fmt: skip
"""Files of the tasks in Table 4, without SST."""

Features = Any
"""Features ``[n, dim]``: an array or a SciPy sparse matrix."""


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of texts with human similarity scores."""

    first: list[str]
    second: list[str]
    scores: list[float]


@dataclass(frozen=True)
class TransferTask:
    """A classification of texts or pairs of texts.

    Attributes:
        first: The texts, or the first texts of the pairs.
        second: The second texts of the pairs; empty for single texts.
        labels: The classes.
        learn: Number of training rows, which come first; 0 for a task without a split, which uses 10 folds.
    """

    first: list[str]
    second: list[str]
    labels: list[Any]
    learn: int


def load_pairs(folder: Path, name: str, limit: int | None) -> ScoredPairs:
    """Read the test part of one of :data:`STS`, or all of it without a split; sample at most ``limit`` pairs."""
    table = pq.read_table(folder / f"{STS[name]}.parquet")
    if "split" in table.column_names:
        table = table.filter(pc.equal(table["split"], "test"))
    table = sample_table(table, limit)
    return ScoredPairs(*(table[column].to_pylist() for column in ("sentence1", "sentence2", "score")))


def load_labelled(folder: Path, name: str, limit: int | None) -> TransferTask:
    """Read one of :data:`SENTEVAL`; sample at most ``limit`` examples."""
    table, learn = sample_table(pq.read_table(folder / f"{SENTEVAL[name]}.parquet"), limit), 0
    if "split" in table.column_names:
        parts = [table.filter(pc.equal(table["split"], part)) for part in ("train", "test")]
        table, learn = pa.concat_tables(parts), parts[0].num_rows
    in_pairs = "sentence1" in table.column_names
    first = table["sentence1" if in_pairs else "text"].to_pylist()
    second = table["sentence2"].to_pylist() if in_pairs else []
    return TransferTask(first, second, table["label"].to_pylist(), learn)


def sample_table(table: pa.Table, limit: int | None) -> pa.Table:
    """Sample at most ``limit`` rows, in their original order."""
    return table if limit is None else table.take(sample_rows(table.num_rows, limit, seed=0))


def similarity(model: SentenceTransformer, pairs: ScoredPairs) -> dict[str, float]:
    """Correlate cosine similarity with human scores in sentence-transformers' evaluator."""
    evaluator = EmbeddingSimilarityEvaluator(
        pairs.first, pairs.second, pairs.scores, main_similarity="cosine", batch_size=64, write_csv=False
    )
    metrics = evaluator(model)
    return {name: float(metrics[f"{name}_cosine"]) for name in ("pearson", "spearman")}


def tfidf_similarity(pairs: ScoredPairs) -> dict[str, float]:
    """Correlate TF-IDF similarity with human scores."""
    return score_similarity(TfidfScores([*pairs.first, *pairs.second]), pairs)


def score_similarity(scores: PairScores, pairs: ScoredPairs) -> dict[str, float]:
    """Correlate scores with human ones; ``scores`` covers the first texts, then the second texts."""
    first = np.arange(len(pairs.first))
    predicted = scores.pairs(np.column_stack([first, len(first) + first]))
    statistics = {"pearson": pearsonr, "spearman": spearmanr}
    return {name: float(correlate(predicted, pairs.scores).statistic) for name, correlate in statistics.items()}


def tfidf_transfer_accuracy(task: TransferTask) -> float:
    """Run :func:`transfer` with TF-IDF vectors."""
    return transfer_accuracy(fit_tfidf([*task.first, *task.second]).transform, task, TFIDF_INVERSE_L2)


def transfer_accuracy(embed: Callable[[Sequence[str]], Features], task: TransferTask, inverse_l2: float = 1.0) -> float:
    """Return the accuracy of a logistic regression on frozen vectors, as in SentEval.

    The features of a pair are |u - v| and u * v, concatenated. Tasks without a split use 10-fold cross-validation.
    """
    rows = embed(task.first)
    if task.second:
        second_rows = embed(task.second)
        product = rows.multiply(second_rows) if issparse(rows) else rows * second_rows
        rows = (hstack if issparse(rows) else np.hstack)([abs(rows - second_rows), product])
    rows = rows.tocsr() if issparse(rows) else rows
    head = LogisticRegression(C=inverse_l2, max_iter=1000)
    labels = np.asarray(task.labels)
    if task.learn:
        fitted = head.fit(rows[: task.learn], labels[: task.learn])
        return float(fitted.score(rows[task.learn :], labels[task.learn :]))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return float(cross_val_score(head, rows, labels, cv=folds).mean())
