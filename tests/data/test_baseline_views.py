"""The views that DocSplit is compared with, and all views by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from views_support import draws, make

from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.sentences import PunktSegmenter, segment_document
from simlte_st.data.views import VIEWS, Crop, DocSplit, Identity, InverseCloze, View, ViewPair, draw_views, make_view
from simlte_st.errors import ConfigurationError


def words_in(document: SegmentedDocument) -> list[str]:
    return " ".join(document.sentences).split()


def test_duplicate_is_the_same_text_twice() -> None:
    document = make([5, 6, 7])
    text = " ".join(document.sentences)
    assert set(draws(document, Identity(), 5)) == {ViewPair("doc", text, text, tokens=18, seen=18)}
    long = draws(make([5] * 20), Identity(), 200, budget=12)
    assert all(pair.anchor == pair.positive and len(pair.anchor.split()) == 10 for pair in long)
    assert all(pair.seen == 10 for pair in long)
    assert {word for pair in long for word in pair.anchor.split()} == set(words_in(make([5] * 20)))


def test_duplicate_of_a_sentence_takes_every_sentence_in_time() -> None:
    document = make([5, 6, 7])
    pairs = draws(document, Identity(unit="sentence"), 100, budget=3)
    assert all(pair.anchor == pair.positive for pair in pairs)
    counts = Counter(pair.anchor for pair in pairs)
    assert set(counts) == set(document.sentences)
    assert min(counts.values()) > 15
    with pytest.raises(ConfigurationError, match="unit='word'"):
        Identity(unit="word")  # type: ignore[arg-type]


@settings(max_examples=150)
@given(
    st.lists(st.integers(1, 15), min_size=2, max_size=15),
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
    st.one_of(st.none(), st.integers(1, 100)),
)
def test_crops_are_spans_of_bounded_length(tokens: list[int], one: float, other: float, budget: int | None) -> None:
    document = make(tokens)
    words = words_in(document)
    view = Crop(least=min(one, other), most=max(one, other))
    for pair in draws(document, view, 3, budget):
        for text in (pair.anchor, pair.positive):
            crop = text.split()
            start = words.index(crop[0])
            assert crop == words[start : start + len(crop)]
            assert 1 <= len(crop) <= max(1, round(view.most * len(words)))
            if budget is None:
                assert len(crop) >= max(1, round(view.least * len(words)))
            else:
                assert len(crop) <= budget
                assert len(crop) >= min(budget, max(1, round(view.least * len(words))))


def test_crops_have_every_length_and_place() -> None:
    document = make([10] * 10)
    words = words_in(document)
    pairs = draws(document, Crop(), 800)
    lengths = Counter(len(pair.anchor.split()) for pair in pairs)
    assert set(lengths) == set(range(5, 51))
    starts = [words.index(pair.anchor.split()[0]) for pair in pairs if len(pair.anchor.split()) <= 20]
    assert min(starts) <= 2
    assert max(starts) >= 80
    assert pairs[0].anchor.split()[-1] in words
    # the end of the document is reached too
    assert any(pair.anchor.endswith(words[-1]) for pair in pairs)


def test_crops_are_independent_and_may_overlap() -> None:
    pairs = draws(make([10] * 10), Crop(), 600)
    assert sum(pair.anchor != pair.positive for pair in pairs) > 590
    overlaps = [bool(set(pair.anchor.split()) & set(pair.positive.split())) for pair in pairs]
    assert 0.2 < sum(overlaps) / len(overlaps) < 0.8
    first = [len(pair.anchor.split()) for pair in pairs]
    second = [len(pair.positive.split()) for pair in pairs]
    means = sum(first) / 600, sum(second) / 600
    spread = (sum((x - means[0]) ** 2 for x in first) * sum((y - means[1]) ** 2 for y in second)) ** 0.5
    correlation = sum((x - means[0]) * (y - means[1]) for x, y in zip(first, second, strict=True)) / spread
    assert abs(correlation) < 0.12  # three standard errors


def test_crops_of_long_documents_fit_the_budget_in_tokens() -> None:
    # two tokens a word: twenty tokens are ten words
    document = SegmentedDocument("d", tuple("a b c d e" for _ in range(40)), (0,), (10,) * 40)
    assert max(len(pair.anchor.split()) for pair in draws(document, Crop(), 100, budget=20)) == 10


def test_inverse_cloze_is_a_sentence_and_its_context() -> None:
    document = make([2, 3, 4, 5])
    pairs = draws(document, InverseCloze(), 2000)
    kept = 0
    for pair in pairs:
        index = document.sentences.index(pair.anchor)
        context = [sentence for i, sentence in enumerate(document.sentences) if i != index]
        if pair.positive == " ".join(document.sentences):
            kept += 1
        else:
            assert pair.positive == " ".join(context)
        assert (pair.tokens, pair.seen) == (14, 14)
    assert 160 < kept < 240
    chosen = Counter(pair.anchor for pair in pairs)
    assert all(430 < chosen[sentence] < 570 for sentence in document.sentences)


ALL: list[View] = [DocSplit(), Identity(), Crop(), InverseCloze()]
CHINESE = "今天天气很好，我们去公园散步。你想一起来吗？我觉得这是一个很好的主意！" * 5


@pytest.mark.parametrize("view", ALL, ids=repr)
@pytest.mark.parametrize("budget", [None, 8])
@pytest.mark.parametrize(
    "text", ["One sentence of a few words.", "Word", "漢", CHINESE, "x" * 5000, "- - -"], ids=ascii
)
def test_every_view_works_or_refuses(view: View, text: str, budget: int | None) -> None:
    document = segment_document(Document("d", text), PunktSegmenter())
    for epoch in range(20):
        pair = draw_views(document, view, epoch=epoch, budget=budget)
        assert (pair is not None) == view.accepts(document)
        if pair is not None:
            assert pair.anchor.strip()
            assert pair.positive.strip()
            assert set("".join((pair.anchor + pair.positive).split())) <= set(text)
            assert 0 < pair.seen <= pair.tokens


@pytest.mark.parametrize("view", ALL, ids=repr)
def test_what_every_view_accepts(view: View) -> None:
    assert view.accepts(make([5, 5]))
    assert view.accepts(make([5])) == (not isinstance(view, InverseCloze))
    assert view.accepts(make([1])) == isinstance(view, Identity)
    assert not view.accepts(SegmentedDocument("d", (), (), ()))


@pytest.mark.parametrize("name", VIEWS)
def test_views_by_name_are_frozen_and_tell_their_settings(name: str) -> None:
    view = make_view(name)
    assert isinstance(view, View)
    assert view == make_view(name) == eval(repr(view), {kind.__name__: kind for kind in VIEWS.values()})
    assert hash(view) == hash(make_view(name))
    with pytest.raises(AttributeError):
        view.p = 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("simcse", {}, "Unknown view 'simcse': use one of docsplit, identity, crop"),
        ("docsplit", {"probability": 0.5}, "'docsplit' has no setting probability=: it has p="),
        ("docsplit", {"p": 0.0}, "p=0.0"),
        ("docsplit", {"p": float("nan")}, "p=nan"),
        ("crop", {"least": 0.0}, "least=0.0"),
        ("crop", {"least": 0.6}, "least=0.6"),
        ("crop", {"most": 1.1}, "most=1.1"),
        ("inverse-cloze", {"keep_sentence": 1.5}, "keep_sentence=1.5"),
    ],
)
def test_wrong_names_and_settings_are_refused(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_view(name, **wrong)
