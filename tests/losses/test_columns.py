from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from losses_support import columns_of, cut
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses import column_merging_disabled

from simlte_st.losses.base import IGNORE, LABELS, encode_columns, merge_columns, split_embeddings
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
