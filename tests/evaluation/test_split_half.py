from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import SplitHalfEvaluator, alignment, bootstrap_interval, split_half_retrieval, uniformity


def test_hand_made_case() -> None:
    # Angles in degrees. Query 0 finds its own; query 1 is nearer to B 2 than to B 1; query 2 ranks its own third.
    angles_a, angles_b = np.deg2rad([0.0, 40.0, 10.0]), np.deg2rad([1.0, 90.0, 55.0])
    a = np.stack([np.cos(angles_a), np.sin(angles_a)], axis=1) * [[1.0], [5.0], [0.1]]  # lengths must not matter
    b = np.stack([np.cos(angles_b), np.sin(angles_b)], axis=1)
    result = split_half_retrieval(a, b)
    assert result.ranks.tolist() == [1, 3, 2]
    assert result.top1 == pytest.approx(1 / 3)
    assert result.mrr == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert result.documents == 3
    assert (result.mrr_low, result.mrr_high) == bootstrap_interval([1, 1 / 3, 1 / 2])
    assert (result.top1_low, result.top1_high) == bootstrap_interval([1, 0, 0])
    assert result.alignment == pytest.approx(alignment(a, b))
    assert result.uniformity == pytest.approx((uniformity(a) + uniformity(b)) / 2)


def test_against_a_double_loop_and_any_chunk() -> None:
    generator = np.random.default_rng(0)
    a = generator.normal(size=(37, 6)).astype(np.float32)
    b = a + generator.normal(size=(37, 6)).astype(np.float32)
    cosine = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    ranks = [1 + sum(cosine[i][j] >= cosine[i][i] for j in range(37) if j != i) for i in range(37)]
    for chunk in (1, 10, 37, 1000):
        assert split_half_retrieval(a, b, chunk=chunk).ranks.tolist() == ranks
    assert 1 / 37 < split_half_retrieval(a, b).top1 < 1.0


def test_perfect_model() -> None:
    x = np.random.default_rng(1).normal(size=(20, 8))
    result = split_half_retrieval(x, 3 * x)
    assert result.top1 == result.mrr == result.mrr_low == result.top1_high == 1.0
    assert result.alignment == pytest.approx(0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [3, 384, 767])
def test_collapsed_model_scores_at_chance_at_best(dtype: type, dim: int) -> None:
    point = np.random.default_rng(2).normal(size=dim).astype(dtype)
    result = split_half_retrieval(np.tile(point, (203, 1)), np.tile(point, (203, 1)), chunk=50)
    assert result.top1 == 0.0
    assert result.mrr == pytest.approx(1 / 203)
    assert result.uniformity == pytest.approx(0.0, abs=1e-9)


def test_collapsed_to_zero_and_random_models() -> None:
    assert split_half_retrieval(np.zeros((10, 4)), np.zeros((10, 4))).mrr == pytest.approx(0.1)
    generator = np.random.default_rng(3)
    result = split_half_retrieval(generator.normal(size=(500, 16)), generator.normal(size=(500, 16)))
    assert result.top1 < 0.02
    assert result.mrr < 0.04


def test_copies_of_a_document_count_as_lost() -> None:
    b = np.eye(4)
    b[1] = b[0]
    assert split_half_retrieval(b, b).ranks.tolist() == [2, 2, 1, 1]


def test_refusals() -> None:
    x = np.eye(3)
    with pytest.raises(DataError, match="at least 2 documents"):
        split_half_retrieval(x[:1], x[:1])
    with pytest.raises(DataError, match="one shape"):
        split_half_retrieval(x, x[:2])
    with pytest.raises(DataError, match="not finite"):  # NaN compares false with everything, which would rank first
        split_half_retrieval(x * np.nan, x)
    with pytest.raises(ConfigurationError):
        split_half_retrieval(x, x, chunk=0)
    with pytest.raises(DataError, match="2 anchors but 1 positives"):
        SplitHalfEvaluator(["a", "b"], ["a"])
    with pytest.raises(DataError, match="at least 2 documents"):
        SplitHalfEvaluator(["a"], ["a"])


def test_evaluator(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer],
    labelled_texts: tuple[list[str], list[str]],
    tmp_path: Path,
) -> None:
    model = tiny_model_for_evaluation()
    anchors = labelled_texts[0]
    positives = [" ".join(reversed(text.split())) for text in anchors]
    evaluator = SplitHalfEvaluator(anchors, positives, name="held_out", batch_size=7)
    metrics = evaluator(model, output_path=str(tmp_path))
    expected = split_half_retrieval(model.encode(anchors), model.encode(positives))
    assert metrics == pytest.approx({f"held_out_{k}": v for k, v in expected.metrics().items()}, abs=0.02)
    assert evaluator.primary_metric == "held_out_mrr"
    assert metrics["held_out_documents"] == 60
    assert metrics["held_out_mrr_low"] <= metrics["held_out_mrr"] <= metrics["held_out_mrr_high"]
    assert metrics["held_out_top1"] > 0.3  # the same words, so even random weights find them
    assert evaluator.last_result is not None
    assert len(evaluator.last_result.ranks) == 60
    with open(tmp_path / "split_half_held_out_results.csv", newline="", encoding="utf-8") as file:
        header, row = csv.reader(file)
    assert header[:2] == ["epoch", "steps"]
    assert len(header) == len(row) == 11
    assert evaluator(model) == metrics
    assert evaluator.get_config_dict() == {"documents": 60, "seed": 0}


def test_evaluator_length_and_dimension(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer],
) -> None:
    model = tiny_model_for_evaluation()
    # The texts only differ after the 16 tokens the model reads by default.
    texts = ["w0 " * 20 + f"w{i} w{i}" for i in range(1, 9)]
    assert SplitHalfEvaluator(texts, texts)(model)["top1"] == 0.0
    assert SplitHalfEvaluator(texts, texts, max_seq_length=512)(model)["top1"] == 1.0
    assert model.max_seq_length == 16
    evaluator = SplitHalfEvaluator(texts, texts, max_seq_length=512, truncate_dim=4)
    evaluator(model)
    assert evaluator.get_config_dict()["truncate_dim"] == 4
