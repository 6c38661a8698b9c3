"""The collator: the stock batch, of views that depend on seed, epoch and document only."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

from simlte_st.compat import view_budget
from simlte_st.data.collator import DocSplitCollator
from simlte_st.data.document import Document
from simlte_st.data.epochs import EpochClock
from simlte_st.data.pairs import PairDrawer, from_row, to_row
from simlte_st.data.segmenters import PunktSegmenter
from simlte_st.data.sentences import segment_document, tokenizer_counter
from simlte_st.data.views import DocSplit, draw_views


@pytest.fixture
def rows(model: SentenceTransformer, documents: list[str]) -> list[dict[str, Any]]:
    count = tokenizer_counter(model.tokenizer)
    return [
        to_row(segment_document(Document(f"d{number}", text), PunktSegmenter(), count))
        for number, text in enumerate(documents[:8])
    ]


def collator(model: SentenceTransformer, epoch: int = 0, seed: int = 0, **settings: Any) -> DocSplitCollator:
    drawer = PairDrawer(DocSplit(), seed, view_budget(model), EpochClock(epoch))
    return DocSplitCollator(model.preprocess, drawer=drawer, **settings)


def texts(batch: dict[str, Any], name: str) -> list[tuple[int, ...]]:
    """Token ids of each row, padding aside."""
    ids, mask = batch[f"{name}_input_ids"], batch[f"{name}_attention_mask"]
    return [tuple(row[kept.bool()].tolist()) for row, kept in zip(ids, mask, strict=True)]


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return list(one) == list(other) and all(
        torch.equal(value, other[name]) if torch.is_tensor(value) else value == other[name]
        for name, value in one.items()
    )


@pytest.mark.parametrize("settings", [{}, {"prompts": "ba bei: "}, {"prompts": {"positive": "ba: "}}])
def test_a_batch_is_what_the_stock_collator_makes_of_the_views(
    model: SentenceTransformer, rows: list[dict[str, Any]], settings: dict[str, Any]
) -> None:
    pairs = [draw_views(from_row(row), DocSplit(), seed=5, epoch=2, budget=view_budget(model)) for row in rows]
    stock = SentenceTransformerDataCollator(model.preprocess, **settings)
    expected = stock([{"anchor": pair.anchor, "positive": pair.positive} for pair in pairs if pair])
    batch = collator(model, epoch=2, seed=5, **settings)(rows)
    assert {"anchor_input_ids", "anchor_attention_mask", "positive_input_ids", "positive_attention_mask"} <= set(batch)
    assert equal(batch, expected)
    assert batch["anchor_input_ids"].shape[0] == len(rows)
    assert "label" not in batch


def test_a_batch_is_drawn_from_seed_and_epoch(model: SentenceTransformer, rows: list[dict[str, Any]]) -> None:
    batch = collator(model, epoch=1, seed=2)(rows)
    assert equal(collator(model, epoch=1, seed=2)(rows), batch)
    same = collator(model, epoch=1, seed=2)
    for _ in range(3):  # drawing does not use anything up
        assert equal(same(rows), batch)
    assert not equal(collator(model, epoch=2, seed=2)(rows), batch)
    assert not equal(collator(model, epoch=1, seed=3)(rows), batch)


def test_the_clock_turns_the_page(model: SentenceTransformer, rows: list[dict[str, Any]]) -> None:
    running = collator(model)
    for epoch in (0, 1, 2, 1):
        running.drawer.clock.epoch = epoch
        assert equal(running(rows), collator(model, epoch=epoch)(rows))


def test_a_row_does_not_depend_on_its_batch(model: SentenceTransformer, rows: list[dict[str, Any]]) -> None:
    together = collator(model)(rows)
    order = [5, 2, 7]
    some = collator(model)([rows[index] for index in order])
    for name in ("anchor", "positive"):
        assert texts(some, name) == [texts(together, name)[index] for index in order]
        for index, row in enumerate(rows):
            assert texts(collator(model)([row]), name) == [texts(together, name)[index]]


def test_rows_without_views_leave_the_batch(model: SentenceTransformer, rows: list[dict[str, Any]]) -> None:
    word = to_row(segment_document(Document("w", "ba"), PunktSegmenter()))
    assert equal(collator(model)([rows[0], word, rows[1]]), collator(model)(rows[:2]))


def test_without_a_drawer_it_is_docsplit(model: SentenceTransformer, rows: list[dict[str, Any]]) -> None:
    batch = DocSplitCollator(model.preprocess)(rows)
    expected = DocSplitCollator(model.preprocess, drawer=PairDrawer(DocSplit(), 0, None))(rows)
    assert equal(batch, expected)
