from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from evaluation_support import on_circle
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sklearn.metrics import ndcg_score

from benchmarks.bm25 import Bm25Scores
from benchmarks.papers.citation_retrieval import citation_retrieval
from simlte_st.evaluation import CosineScores, TfidfScores


def test_metrics_by_hand() -> None:
    # Papers 0 and 1 cite; 2, 3, 4 are cited, and so is 1, by 0. For 0 the pool by nearness is 2, 1, 3, 4; it cites 1
    # and 3: ranks 2 and 3. For 1 (20 degrees) it is 3, 2, 4, itself left out; it cites 2 and 4: ranks 2 and 3.
    scores = on_circle([0, 20, 5, 30, 90])
    result = citation_retrieval(scores, [(0, 1), (0, 3), (1, 2), (1, 4), (0, 3)])
    assert result.pool == 4
    assert result.per_query["mrr"].tolist() == [0.5, 0.5]
    assert result.per_query["recall@10"].tolist() == [1.0, 1.0]
    gain = 1 / np.log2(3) + 1 / np.log2(4)
    assert result.per_query["ndcg@10"] == pytest.approx([gain / (1 + 1 / np.log2(3))] * 2)
    metrics = result.metrics()
    assert metrics["mrr"] == metrics["mrr_low"] == 0.5
    assert (metrics["queries"], metrics["pool"]) == (2.0, 4.0)


def random_case(seed: int, dim: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Papers 0 to 39 cite papers 40 to 199, mostly near ones."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(200, dim)).astype(np.float32)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    links = [
        (citing, 40 + cited)
        for citing in range(40)
        for cited in np.argsort(-(unit[40:] @ unit[citing]) + generator.normal(size=160))[: generator.integers(1, 30)]
    ]
    return x, np.array(links)


def test_metrics_match_sentence_transformers_and_scikit_learn(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, links = random_case(0)
    result = citation_retrieval(CosineScores(x), links)
    pool = np.unique(links[:, 1])
    evaluator = InformationRetrievalEvaluator(
        queries={str(row): str(row) for row in range(40)},
        corpus={str(row): str(row) for row in pool},
        relevant_docs={str(row): {str(b) for a, b in links if a == row} for row in range(40)},
        **{"mrr_at_k": [len(pool)], "ndcg_at_k": [10], "precision_recall_at_k": [10, 100], "write_csv": False},
    )
    monkeypatch.setattr(evaluator, "embed_inputs", lambda _, texts, **options: torch.tensor(x[[*map(int, texts)]]))
    theirs = evaluator(tiny_model_for_evaluation())
    ours = result.metrics()
    assert ours["recall@10"] == pytest.approx(theirs["cosine_recall@10"])
    assert ours["recall@100"] == pytest.approx(theirs["cosine_recall@100"])
    assert ours["mrr"] == pytest.approx(theirs[f"cosine_mrr@{len(pool)}"])
    assert ours["ndcg@10"] == pytest.approx(theirs["cosine_ndcg@10"])
    relevance = np.array([[(a, b) in set(map(tuple, links.tolist())) for b in pool] for a in range(40)])
    scores = CosineScores(x).rows(np.arange(40), pool)
    assert ours["ndcg@10"] == pytest.approx(ndcg_score(relevance, scores, k=10))
    assert 0.05 < ours["recall@10"] < ours["recall@100"] < 1.0


def test_ties_are_lost() -> None:
    links = [(a, 50 + b) for a in range(50) for b in range(50) if (a + b) % 25 == 0]
    for x in (np.zeros((100, 3)), np.tile(np.random.default_rng(0).normal(size=767), (100, 1))):
        result = citation_retrieval(CosineScores(x), links)
        assert result.metrics()["recall@10"] == 0.0
        assert result.per_query["mrr"] == pytest.approx(1 / 49)  # behind all 48 that it does not cite
    texts = ["same words"] * 100
    for scores in (TfidfScores(texts), Bm25Scores(texts)):
        assert citation_retrieval(scores, links).per_query["mrr"] == pytest.approx(1 / 49)
