from __future__ import annotations

import numpy as np
import pytest
from evaluation_support import on_circle
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.papers.linking import PRINTED_LINKS, PRINTED_RANKS, measure_linking, ranks_for
from simlte_st.evaluation import CosineScores


def test_metrics_by_hand() -> None:
    # Posts 0 to 3 at 0, 20, 50 and 90 degrees; articles 4 and 5 at 10 and 55, 6 about nothing. By nearness: 5-2 (5),
    # 4-0 and 4-1 (10), 5-1 and 5-3 (35), 4-2 (40), ...
    scores = on_circle([0, 20, 50, 90, 10, 55, 200])
    result = measure_linking(scores, [(0, 4), (1, 5), (2, 5)], posts=4, ranks=(1, 2, 3, 5, 100))
    # 4-0 is a link; 4-1 is equally near but is not one, so it ranks first.
    assert result["r_precision"] == {1: 1.0, 2: 0.5, 3: pytest.approx(2 / 3), 5: pytest.approx(3 / 5), 100: 3 / 12}
    assert result["mrp"] == pytest.approx(np.mean([1, 1 / 2, 2 / 3, 3 / 5, 1 / 4]))
    assert result["map"] == pytest.approx((1 / 2 + (1 + 2 / 3) / 2) / 2), "an article without posts is asked nothing"


def test_averages_match_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 4))
    links = np.column_stack([np.arange(40), 40 + rng.integers(10, size=40)])
    metrics = measure_linking(CosineScores(vectors), links, posts=40)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found, truth = unit[40:] @ unit[:40].T, np.zeros((10, 40), dtype=bool)
    truth[links[:, 1] - 40, links[:, 0]] = True
    some = truth.any(axis=1)
    expected = average_precision_score(truth[some].T, found[some].T, average="macro")
    assert metrics["map"] == pytest.approx(expected)
    assert metrics["map_low"] < metrics["map"] < metrics["map_high"]
    assert metrics["roc_auc"] == pytest.approx(roc_auc_score(truth.ravel(), found.ravel()))


def test_ranks_scale_with_the_number_of_links() -> None:
    assert ranks_for(PRINTED_LINKS) == PRINTED_RANKS
    assert ranks_for(330) == (5, 10, 20, 50, 100, 200, 300)
    assert ranks_for(10) == (1, 2, 3, 6, 9)
