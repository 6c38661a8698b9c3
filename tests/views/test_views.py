"""DocSplit: the split and its probability, its random generator, and how much of a document the views cover."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import letters, texts
from scipy.stats import chisquare
from views_support import draws, make

from simlte_st.errors import ConfigurationError
from simlte_st.reading.document import Document, SegmentedDocument
from simlte_st.views import views
from simlte_st.views.views import VIEWS, Crop, DocSplit, Identity, View, ViewPair, draw_views, make_view
from simlte_st.words.sentences import PunktSegmenter, segment_document


@st.composite
def segmented(draw: st.DrawFn) -> SegmentedDocument:
    tokens = draw(st.lists(st.integers(1, 12), min_size=2, max_size=16))
    starts = draw(st.sets(st.integers(1, len(tokens) - 1)))
    return make(tokens, (0, *sorted(starts)), draw(st.text(max_size=5)))


DOCSPLITS, BUDGETS = st.builds(DocSplit, p=st.floats(0.05, 0.95)), st.none() | st.integers(1, 80)


@settings(max_examples=400)
@given(segmented(), DOCSPLITS, BUDGETS, st.integers(0, 1000))
def test_docsplit_views_partition_the_sentences(
    document: SegmentedDocument, view: DocSplit, budget: int | None, epoch: int
) -> None:
    assert view.accepts(document)
    sides = view.draw(document, budget, views.view_rng(0, epoch, document.id))
    first, second = ([piece.sentence for piece in side] for side in sides)
    assert all(piece == views.Span(piece.sentence) for side in sides for piece in side)
    for side in (first, second):
        assert side == sorted(set(side)) != []
    assert not set(first) & set(second)
    dealt = sorted(first + second)
    room = None if budget is None else round(budget / max(view.p, 1 - view.p))
    if room is None or sum(document.tokens) <= room:
        assert dealt == list(range(len(document.sentences)))
    else:
        assert budget is not None
        taken = sum(document.tokens[sentence] for sentence in dealt)
        assert taken <= room or len(dealt) == 2
        assert dealt == list(range(dealt[0], dealt[-1] + 1))
    pair = draw_views(document, view, seed=0, epoch=epoch, budget=budget)
    assert pair is not None
    assert pair.anchor == " ".join(document.sentences[sentence] for sentence in first)
    assert pair.positive == " ".join(document.sentences[sentence] for sentence in second)
    assert pair.id == document.id


def sides_by_epoch(view: DocSplit, document: SegmentedDocument, draws: int, budget: int | None = None) -> list[str]:
    """Draw in many epochs; return each draw as a string of views by sentence, such as ``ABBA.``."""
    found = []
    for epoch in range(draws):
        letters = ["."] * len(document.sentences)
        for side, letter in zip(view.draw(document, budget, views.view_rng(3, epoch, document.id)), "AB", strict=True):
            for piece in side:
                letters[piece.sentence] = letter
        found.append("".join(letters))
    return found


@pytest.mark.parametrize("p", [0.5, 0.3, 0.8])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_docsplit_has_the_conditional_distribution(p: float, count: int) -> None:
    draws = Counter(sides_by_epoch(DocSplit(p=p), make([3] * count), 6000))
    weights = {
        "".join(dealt): p ** dealt.count("A") * (1 - p) ** dealt.count("B")
        for dealt in itertools.product("AB", repeat=count)
        if len(set(dealt)) == 2
    }
    assert set(draws) == set(weights)
    total = sum(weights.values())
    expected = [6000 * weight / total for weight in weights.values()]
    if p == 0.5:
        assert len(set(expected)) == 1
    assert chisquare([draws[outcome] for outcome in weights], expected).pvalue > 1e-3


def test_uneven_split_leaves_room_for_the_larger_view() -> None:
    for p in (0.2, 0.8):
        assert {len(dealt.replace(".", "")) for dealt in sides_by_epoch(DocSplit(p=p), make([1] * 90), 50, 20)} == {25}


def test_single_sentence_is_halved_at_the_middle_word() -> None:
    view = DocSplit()
    for text, halves in [
        ("one two three four", ("one two", "three four")),
        ("one  two\nthree four five", ("one  two", "three four five")),
        ("one two", ("one", "two")),
        ("今天天气", ("今天", "天气")),
        ("x" * 48, ("x" * 24, "x" * 24)),
    ]:
        document = SegmentedDocument("d", (text,), (0,), (4,))
        assert view.accepts(document)
        pair = draw_views(document, view)
        assert pair == ViewPair("d", *halves)


def test_views_depend_only_on_seed_epoch_and_id() -> None:
    view, count = DocSplit(), 12
    documents = [make([3] * count, name=f"d{number}") for number in range(20)]
    alone = {document.id: draw_views(document, view, seed=1, epoch=2) for document in documents}
    random.seed(99)
    shuffled = random.sample(documents, len(documents))
    between = {}
    for document in shuffled:
        draw_views(documents[0], view, seed=5, epoch=7)  # draws in between
        random.random()
        between[document.id] = draw_views(document, view, seed=1, epoch=2)
    assert between == alone
    assert len({pair.anchor for pair in alone.values() if pair}) == 20  # a different id gives a different draw
    for other in ({"seed": 2, "epoch": 2}, {"seed": 1, "epoch": 3}, {"seed": 2, "epoch": 1}):
        assert all(draw_views(document, view, **other) != alone[document.id] for document in documents)


def test_random_generator_is_stable() -> None:
    """A change here changes the meaning of every seed: runs could not be repeated or resumed."""
    rng = views.view_rng(7, 3, "doc")
    assert [rng.getrandbits(32) for _ in range(3)] == [3870031325, 796895718, 3844913893]
    assert sides_by_epoch(DocSplit(), make([1] * 16), 2) == ["AABBBBABBAABABBA", "AAABAAABBAABAAAB"]


def test_rendering_keeps_sentences_and_cuts_at_words() -> None:
    document = SegmentedDocument("d", ("A  b\nc d.", "E f"), (0,), (4, 2))
    assert views.render(document, views.whole_sentences([1, 0])) == "E f A  b\nc d."
    assert views.render(document, [views.Span(0, 1, 3), views.Span(1, 0, 1)]) == "b\nc E"
    assert views.render(document, []) == ""


@settings(max_examples=60)
@given(st.lists(texts, min_size=2, max_size=5, unique=True), st.integers(0, 5), st.integers(0, 5), st.randoms())
def test_views_of_odd_texts_are_complete_and_reproducible(odd: list[str], seed: int, epoch: int, draw: Random) -> None:
    documents = [segment_document(Document(f"d{n}", text), PunktSegmenter()) for n, text in enumerate(odd)]
    pairs = {each.id: draw_views(each, DocSplit(), seed=seed, epoch=epoch) for each in documents}
    for document in documents:
        pair = pairs[document.id]
        assert (pair is not None) == DocSplit().accepts(document) == views.has_two_words(document)
        if pair is not None:
            assert sorted(letters(pair.anchor + pair.positive)) == sorted(letters("".join(document.sentences)))
    # Workers get different documents in a different order, and have drawn other numbers before.
    share = draw.sample(documents, draw.randint(1, len(documents)))
    random.seed(draw.random())
    assert [draw_views(each, DocSplit(), seed=seed, epoch=epoch) for each in share] == [pairs[e.id] for e in share]


def words_in(document: SegmentedDocument) -> list[str]:
    return " ".join(document.sentences).split()


def test_identity_is_the_same_text_twice() -> None:
    document = make([5, 6, 7])
    text = " ".join(document.sentences)
    assert set(draws(document, Identity(), 5)) == {ViewPair("doc", text, text)}
    long = draws(make([5] * 20), Identity(), 200, budget=12)
    assert all(pair.anchor == pair.positive and len(pair.anchor.split()) == 10 for pair in long)
    assert {word for pair in long for word in pair.anchor.split()} == set(words_in(make([5] * 20)))


def test_identity_of_a_sentence_draws_every_sentence() -> None:
    document = make([5, 6, 7])
    pairs = draws(document, Identity(unit="sentence"), 100, budget=3)
    assert all(pair.anchor == pair.positive for pair in pairs)
    counts = Counter(pair.anchor for pair in pairs)
    assert set(counts) == set(document.sentences)
    assert min(counts.values()) > 15
    with pytest.raises(ConfigurationError, match="unit='word'"):
        Identity(unit="word")  # type: ignore[arg-type]


@settings(max_examples=150)
@given(st.lists(st.integers(1, 15), min_size=2, max_size=15), st.floats(0.01, 1.0), st.floats(0.01, 1.0), BUDGETS)
def test_crops_are_bounded_spans(tokens: list[int], one: float, other: float, budget: int | None) -> None:
    document = make(tokens)
    words = words_in(document)
    view = Crop(least=min(one, other), most=max(one, other))
    for pair in draws(document, view, 3, budget):
        for text in (pair.anchor, pair.positive):
            crop = text.split()
            start = words.index(crop[0])
            assert crop == words[start : start + len(crop)]
            assert 1 <= len(crop) <= max(1, round(view.most * len(words)))
            assert len(crop) <= (budget or len(words))
            assert len(crop) >= min(budget or len(words), max(1, round(view.least * len(words))))


ALL: list[View] = [DocSplit(), Identity(), Crop()]
CHINESE = "今天天气很好，我们去公园散步。你想一起来吗？我觉得这是一个很好的主意！" * 5


@pytest.mark.parametrize("view", ALL, ids=repr)
@pytest.mark.parametrize("budget", [None, 8])
@pytest.mark.parametrize("text", ["A sentence of a few words.", "Word", "漢", CHINESE, "x" * 5000, "- - -"], ids=ascii)
def test_every_view_draws_what_it_accepts(view: View, text: str, budget: int | None) -> None:
    document = segment_document(Document("d", text), PunktSegmenter())
    for epoch in range(20):
        pair = draw_views(document, view, epoch=epoch, budget=budget)
        assert (pair is not None) == view.accepts(document)
        for view_text in (pair.anchor, pair.positive) if pair else ():
            assert set() < set("".join(view_text.split())) <= set(text)


@pytest.mark.parametrize("view", ALL, ids=repr)
def test_views_accept_documents_that_they_can_draw(view: View) -> None:
    assert view.accepts(make([5, 5]))
    assert view.accepts(make([5]))
    assert view.accepts(make([1])) == isinstance(view, Identity)
    assert not view.accepts(SegmentedDocument("d", (), (), ()))


@pytest.mark.parametrize("name", VIEWS)
def test_views_by_name_are_frozen_with_full_repr(name: str) -> None:
    view = make_view(name)
    assert isinstance(view, View)
    assert view == make_view(name) == eval(repr(view), {kind.__name__: kind for kind in VIEWS.values()})
    assert hash(view) == hash(make_view(name))
    with pytest.raises(AttributeError):
        view.p = 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("simcse", {}, "Unknown view 'simcse': choose one of docsplit, identity, crop"),
        ("docsplit", {"p": 0.0}, "p=0.0"),
        ("docsplit", {"p": float("nan")}, "p=nan"),
        ("crop", {"least": 0.0}, "least=0.0"),
        ("crop", {"least": 0.6}, "least=0.6"),
        ("crop", {"most": 1.1}, "most=1.1"),
    ],
)
def test_invalid_names_and_settings_are_refused(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_view(name, **wrong)


least = st.integers(1, 3)


@settings(max_examples=300)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=25), st.integers(1, 200), least, st.integers(0, 2**32))
def test_windows_fill_the_budget(sizes: list[int], budget: int, at_least: int, seed: int) -> None:
    window = views.choose_window(sizes, budget, Random(seed), at_least)
    assert window == list(range(window[0], window[-1] + 1))
    assert set(window) <= set(range(len(sizes)))
    assert len(window) >= min(at_least, len(sizes))
    taken = sum(sizes[index] for index in window)
    if sum(sizes) <= budget:
        assert window == list(range(len(sizes)))
        return
    assert taken <= budget or len(window) == at_least or len(window) == len(sizes)
    # The window is as full as whole sentences allow: neither neighbour of it would fit.
    if window[-1] + 1 < len(sizes):
        assert taken + sizes[window[-1] + 1] > budget
    elif window[0] > 0 and len(window) > at_least:
        assert taken + max(sizes) > budget
    assert window == views.choose_window(sizes, budget, Random(seed), at_least)
