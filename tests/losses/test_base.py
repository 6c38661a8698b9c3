from __future__ import annotations

import math
from contextlib import nullcontext
from itertools import permutations

import pytest
import torch
from losses_support import columns_of, cut
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses import column_merging_disabled
from torch import Tensor

from simlte_st.losses.base import IGNORE, LABELS, BatchMetrics, encode_columns, merge_columns, split_embeddings
from simlte_st.losses.masked_language_model import TokenMasker


def test_merged_columns_keep_their_labels(model: SentenceTransformer, documents: list[str]) -> None:
    masker = TokenMasker(model.tokenizer, 0.5)
    columns = columns_of(model, documents, 3)
    widths = [column["input_ids"].shape[1] for column in columns]
    assert len(set(widths)) > 1
    masked = []
    for number, column in enumerate(columns):
        ids, labels = masker(column, (0, number))
        masked.append({**column, "input_ids": ids, LABELS: labels})
    merged = merge_columns(masked)
    assert merged is not None
    assert merged["input_ids"].shape == (18, max(widths))
    for number, (column, width) in enumerate(zip(masked, widths, strict=True)):
        rows = slice(6 * number, 6 * number + 6)
        for name in ("input_ids", "attention_mask", LABELS):
            assert torch.equal(merged[name][rows, :width], column[name])
        assert not merged["attention_mask"][rows, width:].any()
        assert (merged[LABELS][rows, width:] == IGNORE).all()


def test_columns_that_are_not_merged(model: SentenceTransformer, documents: list[str]) -> None:
    short, long = ([text[:12] for text in cut(documents)[0]], cut(documents)[1])
    columns = [model.preprocess(texts) for texts in (short, long)]
    assert merge_columns(columns) is not None
    assert merge_columns(columns, max_padding=1.1) is None
    assert merge_columns([columns[1], columns[1]], max_padding=1.1) is not None
    assert merge_columns(columns[:1]) is None
    assert merge_columns([columns[0], {**columns[1], "token_type_ids": None}]) is None
    flat = {"input_ids": torch.arange(6).unsqueeze(0), "cu_seq_lens_q": torch.tensor([0, 2, 6])}
    assert merge_columns([flat, flat]) is None
    with column_merging_disabled():
        assert merge_columns(columns) is None


@pytest.mark.parametrize("merged", [True, False])
def test_embeddings_of_each_column(model: SentenceTransformer, documents: list[str], merged: bool) -> None:
    model.eval()
    columns = columns_of(model, documents, 3)
    with nullcontext() if merged else column_merging_disabled():
        outputs = encode_columns(model, columns)
    assert len(outputs) == (1 if merged else 3)
    embeddings = split_embeddings(outputs, 3)
    for column, found in zip(columns, embeddings, strict=True):
        assert "sentence_embedding" not in column
        torch.testing.assert_close(found, model(dict(column))["sentence_embedding"])


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


def test_metrics_average_batches_and_take_resets_them() -> None:
    metrics = BatchMetrics()
    assert metrics.take() == {}
    batches = [batch(seed, rows) for seed, rows in ((1, 4), (2, 9), (3, 2))]
    for embeddings in batches:
        metrics.update(embeddings)
    values = [naive(*embeddings) for embeddings in batches]
    assert len({*values[0].values(), 0.0}) == 4
    # Metrics are rounded to four digits.
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
