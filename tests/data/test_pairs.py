"""Rows to pairs: the round trip, and the warning when nobody tells the epoch."""

from __future__ import annotations

import json
import logging

import pytest
from support import make_tokenizer

from simlte_st.data.document import SegmentedDocument
from simlte_st.data.epochs import EpochClock
from simlte_st.data.pairs import COLUMNS, PairDrawer, from_row, to_row
from simlte_st.data.tokenized_document import TokenizedDocument, tokenize_document
from simlte_st.data.tokens import SentenceTokenizer
from simlte_st.data.views import DocSplit, draw_sides, draw_views


def make(number: int, sentences: int = 6) -> SegmentedDocument:
    texts = tuple(f"d{number} s{index}." for index in range(sentences))
    return SegmentedDocument(f"doc {number}", texts, (0, 2)[: max(1, sentences - 1)], (3,) * sentences)


def test_rows_round_trip_through_json() -> None:
    document = SegmentedDocument("größe\x00", ("A b.", "今天。"), (0, 1), (3, 4))
    row = to_row(document)
    assert tuple(row) == COLUMNS
    assert from_row(row) == document
    assert from_row(json.loads(json.dumps(row))) == document
    assert hash(from_row(row)) == hash(document)  # tuples again, not lists


def test_pairs_are_those_of_draw_views() -> None:
    documents = [make(number) for number in range(5)]
    clock = EpochClock(4)
    drawer = PairDrawer(DocSplit(p=0.3), seed=9, budget=6, clock=clock)
    for epoch in (4, 2):
        clock.epoch = epoch
        assert drawer.draw([to_row(document) for document in documents]) == [
            draw_views(document, DocSplit(p=0.3), seed=9, epoch=epoch, budget=6) for document in documents
        ]


def test_rows_that_the_view_refuses_are_left_out() -> None:
    rows = [to_row(make(0)), to_row(make(1, sentences=1)), to_row(make(2))]
    assert [pair.id for pair in PairDrawer(DocSplit(single="skip")).draw(rows)] == ["doc 0", "doc 2"]
    assert [pair.id for pair in PairDrawer().draw(rows)] == ["doc 0", "doc 1", "doc 2"]


def tokenized(number: int, sentences: int = 6) -> TokenizedDocument:
    document = make(number, sentences)
    return tokenize_document(document.id, document.sentences, document.paragraphs, SentenceTokenizer(make_tokenizer()))


def test_pairs_of_tokens_are_drawn_as_those_of_texts() -> None:
    documents = [tokenized(number) for number in range(5)]
    clock = EpochClock(4)
    drawer = PairDrawer(DocSplit(p=0.3), seed=9, budget=6, clock=clock)
    for epoch in (4, 2):
        clock.epoch = epoch
        pairs = drawer.draw_tokens(documents)
        assert [pair.anchor.document for pair in pairs] == [pair.positive.document for pair in pairs] == documents
        assert [(pair.anchor.pieces, pair.positive.pieces) for pair in pairs] == [
            draw_sides(document, DocSplit(p=0.3), seed=9, epoch=epoch, budget=6) for document in documents
        ]
    refusing = PairDrawer(DocSplit(single="skip"))
    assert [pair.anchor.document.id for pair in refusing.draw_tokens([tokenized(0, 1), tokenized(1)])] == ["doc 1"]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "callbacks=[views.callback]" in record.getMessage()]


def test_warns_once_when_epochs_pass_that_no_trainer_tells(caplog: pytest.LogCaptureFixture) -> None:
    rows = [to_row(make(number)) for number in range(4)]
    drawer = PairDrawer(documents=4)
    with caplog.at_level(logging.WARNING):
        drawer.draw(rows[:2])
        drawer.draw(rows[2:])
        assert warnings(caplog) == []  # one epoch
        drawer.draw(rows[:1])
        assert len(warnings(caplog)) == 1
        for _ in range(5):
            drawer.draw(rows)
            drawer.draw_tokens([tokenized(0)])
        assert len(warnings(caplog)) == 1
        PairDrawer(documents=1).draw_tokens([tokenized(0), tokenized(1)])
    assert len(warnings(caplog)) == 2


def test_does_not_warn_when_a_trainer_tells_or_the_size_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    rows = [to_row(make(number)) for number in range(4)]
    connected = PairDrawer(documents=4)
    connected.clock.on_train_begin(None, None, None)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            connected.draw(rows)
            PairDrawer(documents=4).draw(rows)
        unknown = PairDrawer()
        for _ in range(3):
            unknown.draw(rows)
    assert warnings(caplog) == []
