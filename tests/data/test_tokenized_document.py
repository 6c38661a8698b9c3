"""Views as token ids: those of the views as text."""

from __future__ import annotations

import functools
import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import texts
from support import make_document
from tokenizers_support import TOKENIZERS

from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.rival_views import Crop, Duplicate, InverseCloze, WordDeletion
from simlte_st.data.segmenters import PunktSegmenter
from simlte_st.data.sentences import segment_document
from simlte_st.data.tokenized_document import TokenizedDocument, TokenView, tokenize_document
from simlte_st.data.tokens import SentenceTokenizer
from simlte_st.data.views import DocSplit, Piece, View, count_seen, draw_sides, render, whole

VIEWS: list[View] = [
    DocSplit(),
    DocSplit(unit="paragraph", window="spread"),
    DocSplit(unit="block", p=0.3, window="head"),
    Duplicate(),
    InverseCloze(keep=0.5),
    WordDeletion(p=0.3),
    Crop(),
]
SPACED = [name for name in TOKENIZERS if name in ("byte_level", "byte_level_split")]
"""To these, white space before a word is part of it, and a text's first word has none."""


@functools.cache
def made(name: str) -> Any:
    return TOKENIZERS[name]()


@functools.cache
def encoder(name: str) -> SentenceTokenizer:
    return SentenceTokenizer(made(name))


def pair(text: str, name: str) -> tuple[SegmentedDocument, TokenizedDocument]:
    """A document as text and as token ids, with the same numbers."""
    segmented = segment_document(Document("d", text), PunktSegmenter())
    tokenized = tokenize_document("d", segmented.sentences, segmented.paragraphs, encoder(name))
    return SegmentedDocument("d", segmented.sentences, segmented.paragraphs, tuple(tokenized.tokens)), tokenized


def ids_of(name: str, text: str) -> list[int]:
    ids: list[int] = made(name)(text, add_special_tokens=False)["input_ids"]
    return ids


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=60)
@given(text=texts, data=st.data())
def test_whole_sentences_give_the_ids_of_their_text(name: str, text: str, data: st.DataObject) -> None:
    segmented, tokenized = pair(text, name)
    chosen = [index for index in range(len(segmented.sentences)) if data.draw(st.booleans())]
    if chosen:
        joined = render(segmented, whole(chosen))
        view = TokenView(tokenized, whole(chosen))
        assert view.ids().tolist() == ids_of(name, joined)
        prompt = ids_of(name, "ba bei:")
        assert [*prompt, *view.ids(opening=False).tolist()] == ids_of(name, f"ba bei: {joined}")


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=40)
@given(text=texts, seed=st.integers(0, 99), budget=st.one_of(st.none(), st.integers(1, 40)))
def test_numbers_are_all_that_views_need(name: str, text: str, seed: int, budget: int | None) -> None:
    segmented, tokenized = pair(text, name)
    assert tokenized.paragraphs == list(segmented.paragraphs)
    assert [tokenized.words(index) for index in range(len(tokenized.tokens))] == [
        segmented.words(index) for index in range(len(segmented.sentences))
    ]
    for view in VIEWS:
        sides = draw_sides(segmented, view, seed=seed, budget=budget)
        assert draw_sides(tokenized, view, seed=seed, budget=budget) == sides
        if sides is not None:
            assert count_seen(tokenized, sides, budget) == count_seen(segmented, sides, budget)


@st.composite
def plain(draw: st.DrawFn) -> str:
    """Text of short words of one alphabet, single spaces between them: all its words are the tokenizer's too."""
    word = st.text("abeiouknr'.,-(1é", min_size=1, max_size=10)
    return " ".join(draw(st.lists(word, min_size=2, max_size=40)))


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=40)
@given(text=plain(), seed=st.integers(0, 99))
def test_pieces_of_sentences_give_the_ids_of_their_text(name: str, text: str, seed: int) -> None:
    segmented, tokenized = pair(text, name)
    for view in (WordDeletion(p=0.4), Crop(), DocSplit()):
        sides = draw_sides(segmented, view, seed=seed)
        assert sides is not None
        for pieces in sides:
            joined = render(segmented, pieces)
            wanted = ids_of(name, joined)
            if name in SPACED and pieces[0].start > 0:
                # Where the view begins inside a sentence, its first word keeps the space before it.
                wanted = ids_of(name, f" {joined}")
            assert TokenView(tokenized, pieces).ids().tolist() == wanted


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=40)
@given(text=texts, seed=st.integers(0, 99))
def test_pieces_share_no_token_and_leave_none_out(name: str, text: str, seed: int) -> None:
    _, tokenized = pair(text, name)
    draw = Random(seed)
    for sentence, size in enumerate(tokenized.tokens):
        words = tokenized.words(sentence)
        cuts = sorted({0, words, *(draw.randint(0, words) for _ in range(3))})
        spans = [tokenized.span(Piece(sentence, *cut)) for cut in itertools.pairwise(cuts)]
        assert (spans[0][0], spans[-1][1]) == tokenized.span(Piece(sentence))
        assert spans[-1][1] - spans[0][0] == size
        assert all(one[1] == other[0] and one[0] <= one[1] for one, other in itertools.pairwise(spans))


def test_what_a_cut_inside_a_long_word_gives() -> None:
    name = "word_piece"
    long = "b" * 30  # two words of ours, one of the tokenizer's
    segmented, tokenized = pair(f"ba {long} bei", name)
    assert segmented.words(0) == 4
    pieces = ([Piece(0, 0, 2)], [Piece(0, 2, 4)])
    ids = [TokenView(tokenized, side).ids().tolist() for side in pieces]
    assert ids[0] + ids[1] == ids_of(name, f"ba {long} bei")
    tail = made(name).convert_ids_to_tokens(ids[1])
    assert tail[0].startswith("##")  # goes on with the word, as the text "bbbbbb bei" would not
    assert made(name).tokenize(render(segmented, pieces[1]))[0][0] == "b"


def test_an_opening_that_reaches_into_the_next_word_is_kept_whole() -> None:
    numbers = [[4, 5, 6, 7], [4], [0], [3], [0, 1, 3], [8, 9, 10], [3], [2]]
    document = TokenizedDocument("d", *(np.array(values, dtype=np.int32) for values in numbers))
    assert TokenView(document, whole([0])).ids().tolist() == [8, 9, 10, 6, 7]
    assert TokenView(document, [Piece(0, 0, 2)]).ids().tolist() == [8, 9, 10, 6]
    # The opening stands for tokens of two words: one of them alone keeps its own.
    assert TokenView(document, [Piece(0, 0, 1)]).ids().tolist() == [4]
    assert TokenView(document, [Piece(0, 1, 3)]).ids().tolist() == [5, 6, 7]
    assert TokenView(document, whole([0])).ids(opening=False).tolist() == [4, 5, 6, 7]
    assert TokenView(document, [Piece(0, 2, 3), Piece(0)]).ids().tolist() == [7, 4, 5, 6, 7]


def test_arrays_are_not_copied_to_be_looked_at() -> None:
    _, tokenized = pair(make_document(0), "word_piece")
    assert TokenView(tokenized, whole([2])).ids().base is None  # a copy, so that nobody writes into the corpus
    begin, end = tokenized.span(Piece(2))
    assert TokenView(tokenized, whole([2])).ids().tolist() == tokenized.ids[begin:end].tolist()
