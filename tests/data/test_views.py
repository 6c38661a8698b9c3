"""DocSplit: what is dealt, with which probability, from which generator, and how much of a document is seen."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import letters, texts
from scipy.stats import chisquare
from views_support import make

from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.sentences import PunktSegmenter, segment_document
from simlte_st.data.views import (
    DocSplit,
    Span,
    ViewPair,
    ViewSpans,
    draw_views,
    has_two_words,
    render,
    view_rng,
    whole_sentences,
)


@st.composite
def segmented(draw: st.DrawFn) -> SegmentedDocument:
    tokens = draw(st.lists(st.integers(1, 12), min_size=2, max_size=16))
    starts = draw(st.sets(st.integers(1, len(tokens) - 1)))
    return make(tokens, (0, *sorted(starts)), draw(st.text(max_size=5)))


VIEWS = st.builds(DocSplit, p=st.floats(0.05, 0.95))


@settings(max_examples=400)
@given(
    segmented(),
    st.builds(DocSplit, p=st.floats(0.05, 0.95)),
    st.one_of(st.none(), st.integers(1, 80)),
    st.integers(0, 1000),
)
def test_views_are_disjoint_ordered_nonempty_and_complete(
    document: SegmentedDocument, view: DocSplit, budget: int | None, epoch: int
) -> None:
    assert view.accepts(document)
    sides = view.draw(document, budget, view_rng(0, epoch, document.id))
    first, second = ([piece.sentence for piece in side] for side in sides)
    assert all(piece == Span(piece.sentence) for side in sides for piece in side)
    assert first
    assert second
    assert first == sorted(set(first))
    assert second == sorted(set(second))
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
    assert pair.tokens == sum(document.tokens)
    kept = [sum(document.tokens[sentence] for sentence in side) for side in (first, second)]
    assert pair.seen == sum(kept if budget is None else (min(budget, size) for size in kept))


def sides_by_epoch(view: DocSplit, document: SegmentedDocument, draws: int, budget: int | None = None) -> list[str]:
    """Draw in many epochs; each draw as a string that tells the side of each sentence, such as ``ABBA.``."""
    found = []
    for epoch in range(draws):
        letters = ["."] * len(document.sentences)
        for side, letter in zip(view.draw(document, budget, view_rng(3, epoch, document.id)), "AB", strict=True):
            for piece in side:
                letters[piece.sentence] = letter
        found.append("".join(letters))
    return found


@pytest.mark.parametrize("p", [0.5, 0.3, 0.8])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_draw_has_the_conditional_distribution_exactly(p: float, count: int) -> None:
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


@pytest.mark.parametrize("p", [0.5, 0.3])
def test_sentences_are_dealt_independently(p: float) -> None:
    count, draws = 14, 4000  # so many that a side is hardly ever empty (0.3: 0.7 ** 14 = 0.7 %)
    sides = sides_by_epoch(DocSplit(p=p), make([1] * count), draws)
    expected = {"AA": p * p, "AB": p * (1 - p), "BA": p * (1 - p), "BB": (1 - p) ** 2}
    pvalues = []
    for one, other in itertools.combinations(range(count), 2):
        found = Counter(side[one] + side[other] for side in sides)
        pvalues.append(chisquare([found[key] for key in expected], [draws * x for x in expected.values()]).pvalue)
    assert min(pvalues) > 1e-3 / len(pvalues)
    assert 0.2 < sum(pvalue < 0.5 for pvalue in pvalues) / len(pvalues) < 0.8


def test_an_uneven_split_leaves_room_for_the_larger_view() -> None:
    for p in (0.2, 0.8):
        assert {len(dealt.replace(".", "")) for dealt in sides_by_epoch(DocSplit(p=p), make([1] * 90), 50, 20)} == {25}


def test_one_sentence_is_halved_at_the_middle_word() -> None:
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
        assert pair == ViewPair("d", *halves, tokens=4, seen=4)


def test_views_depend_on_seed_epoch_and_id_only() -> None:
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
    assert len({pair.anchor for pair in alone.values() if pair}) == 20  # another id, another draw
    for other in ({"seed": 2, "epoch": 2}, {"seed": 1, "epoch": 3}, {"seed": 2, "epoch": 1}):
        assert all(draw_views(document, view, **other) != alone[document.id] for document in documents)


def test_the_scheme_of_generators_is_stable() -> None:
    """Whoever changes this changes what every seed means: runs could not be repeated or resumed."""
    rng = view_rng(7, 3, "doc")
    assert [rng.getrandbits(32) for _ in range(3)] == [3870031325, 796895718, 3844913893]
    assert sides_by_epoch(DocSplit(), make([1] * 16), 2) == ["AABBBBABBAABABBA", "AAABAAABBAABAAAB"]


@dataclass(frozen=True)
class Fixed:
    """A view without chance, for counting."""

    sides: ViewSpans

    def accepts(self, document: SegmentedDocument) -> bool:
        return True

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        return self.sides


@pytest.mark.parametrize(
    ("first", "second", "budget", "seen"),
    [
        ([0, 2], [1, 3], None, 40),
        ([0, 2], [1, 3], 20, 40),
        ([0, 2], [1, 3], 15, 30),  # truncated in both
        ([0, 1, 2], [3], 15, 25),  # truncated in one
        ([0, 1], [0, 1], None, 20),  # the same twice counts once
        ([0, 1, 2], [2], 20, 30),  # cut in the first, there in the second
        ([0, 1, 2], [2, 3], 15, 30),  # cut in both: half of 1, all of 2, half of 3
        ([Span(0, 0, 5)], [Span(0, 5, 10)], None, 10),  # halves add up
        ([Span(0, 0, 5)], [Span(0, 5, 10)], 2, 4),
        ([Span(0, 0, 6)], [Span(0, 4, 9)], None, 9),  # an overlap counts once
        ([Span(0, 0, 2), Span(0, 3, 10)], [Span(0, 0, 1), Span(0, 2, 3)], 100, 10),
        ([Span(0, 9, 10), Span(1), Span(2, 0, 1)], [Span(3, 4, 6)], None, 14),
    ],
)
def test_tokens_and_seen(first: list[int | Span], second: list[int | Span], budget: int | None, seen: int) -> None:
    sides = tuple([piece if isinstance(piece, Span) else Span(piece) for piece in side] for side in (first, second))
    pair = draw_views(make([10, 10, 10, 10]), Fixed(sides), budget=budget)  # type: ignore[arg-type]
    assert pair is not None
    assert (pair.tokens, pair.seen) == (40, seen)


def test_rendering_keeps_sentences_and_cuts_at_words() -> None:
    document = SegmentedDocument("d", ("A  b\nc d.", "E f"), (0,), (4, 2))
    assert render(document, whole_sentences([1, 0])) == "E f A  b\nc d."
    assert render(document, [Span(0, 1, 3), Span(1, 0, 1)]) == "b\nc E"
    assert render(document, []) == ""


@settings(max_examples=60)
@given(st.lists(texts, min_size=2, max_size=5, unique=True), st.integers(0, 5), st.integers(0, 5), st.randoms())
def test_views_of_odd_texts_have_all_of_them_and_are_alike_in_every_worker(
    odd: list[str], seed: int, epoch: int, draw: Random
) -> None:
    documents = [segment_document(Document(f"d{n}", text), PunktSegmenter()) for n, text in enumerate(odd)]
    pairs = {each.id: draw_views(each, DocSplit(), seed=seed, epoch=epoch) for each in documents}
    for document in documents:
        pair = pairs[document.id]
        assert (pair is not None) == DocSplit().accepts(document) == has_two_words(document)
        if pair is not None:
            assert sorted(letters(pair.anchor + pair.positive)) == sorted(letters("".join(document.sentences)))
    # Workers get other documents, in another order, and have drawn other numbers before.
    share = draw.sample(documents, draw.randint(1, len(documents)))
    random.seed(draw.random())
    assert [draw_views(each, DocSplit(), seed=seed, epoch=epoch) for each in share] == [pairs[e.id] for e in share]
