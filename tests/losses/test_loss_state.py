from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
from torch import Tensor

from simlte_st.losses.base import BatchMetrics


def naive(anchors: Tensor, positives: Tensor) -> dict[str, float]:
    a = [(row / row.norm()).double() for row in anchors.detach()]
    b = [(row / row.norm()).double() for row in positives.detach()]
    pairs = list(permutations(range(len(a)), 2))
    kernels = [math.exp(-2 * float((side[i] - side[j]).square().sum())) for side in (a, b) for i, j in pairs]
    return {
        "alignment": sum(float((x - y).square().sum()) for x, y in zip(a, b, strict=True)) / len(a),
        "mean_cosine": sum(float(a[i] @ b[j]) for i, j in pairs) / len(pairs),
        "uniformity": math.log(sum(kernels) / len(kernels)),
    }


def batch(seed: int, rows: int, columns: int = 2) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(rows, 6, generator=generator) + 1.0
    # Vectors of any length; positives are near their anchors.
    return [3.0 * first + column * torch.randn(rows, 6, generator=generator) for column in range(columns)]


def test_metrics_match_loops() -> None:
    metrics = BatchMetrics()
    embeddings = batch(0, 7)
    metrics.update(embeddings)
    taken = metrics.take()
    assert taken == pytest.approx(naive(*embeddings), abs=6e-5)  # rounded to four digits
    assert len({*taken.values(), 0.0}) == 4


def test_metrics_average_batches_and_take_resets_them() -> None:
    metrics = BatchMetrics()
    assert metrics.take() == {}
    batches = [batch(seed, rows) for seed, rows in ((1, 4), (2, 9), (3, 2))]
    for embeddings in batches:
        metrics.update(embeddings)
    values = [naive(*embeddings) for embeddings in batches]
    assert metrics.take() == pytest.approx({n: sum(v[n] for v in values) / 3 for n in values[0]}, abs=6e-5)
    assert metrics.take() == {}
    metrics.update(batches[0])
    assert metrics.take() == pytest.approx(values[0], abs=6e-5)


def test_batch_of_one_document_has_no_pairs() -> None:
    metrics = BatchMetrics()
    single, whole = batch(4, 1), batch(5, 5)
    alignment = float((single[0] / single[0].norm() - single[1] / single[1].norm()).square().sum())
    metrics.update(single)
    assert metrics.take() == pytest.approx({"alignment": alignment}, abs=6e-5)
    # It does not count among the batches with negatives either.
    metrics.update(whole)
    metrics.update(single)
    expected = naive(*whole)
    expected["alignment"] = (expected["alignment"] + alignment) / 2
    assert metrics.take() == pytest.approx(expected, abs=6e-5)
