from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simlte_st.analysis.alignment import CLASSES, WordWeight, align, class_of
from simlte_st.analysis.readings import Reading
from simlte_st.analysis.tagging import TaggedWord


def reading(tokens: list[tuple[int, int, float]], special: tuple[float, float] = (0.0, 0.0)) -> Reading:
    spans = [(0, 0), *((start, stop) for start, stop, _ in tokens), (0, 0)]
    return Reading(
        spans=np.array(spans, dtype=np.int64),
        special=np.array([True] + [False] * len(tokens) + [True]),
        weights=np.array([special[0], *(weight for _, _, weight in tokens), special[1]]),
        length=len(tokens),
    )


def test_subwords_are_summed_and_classes_told() -> None:
    # "Don't unbelievable cats run."  as spaCy has it: Do|n't|unbelievable|cats|run|.
    words = [
        TaggedWord(0, 2, "AUX", "do"),
        TaggedWord(2, 5, "PART", "not"),
        TaggedWord(6, 18, "ADJ", "unbelievable"),
        TaggedWord(19, 23, "NOUN", "cat"),
        TaggedWord(24, 27, "VERB", "run"),
        TaggedWord(27, 28, "PUNCT", "."),
    ]
    # As BERT has it: don|'|t|un|##believ|##able|cats|run|.
    tokens = [
        (0, 3, 0.09),
        (3, 4, 0.01),
        (4, 5, 0.02),
        (6, 8, 0.1),
        (8, 14, 0.05),
        (14, 18, 0.05),
        (19, 23, 0.2),
        (24, 27, 0.1),
        (27, 28, 0.08),
    ]
    aligned = align(reading(tokens, (0.1, 0.2)), words)
    expected = [
        WordWeight(0, 2, "others", 0.06),  # two of the three characters of "don"
        WordWeight(2, 5, "others", 0.03 + 0.01 + 0.02),
        WordWeight(6, 18, "adjectives", 0.2),
        WordWeight(19, 23, "nouns", 0.2),
        WordWeight(24, 27, "verbs", 0.1),
        WordWeight(27, 28, "punctuation", 0.08),
    ]
    assert [word[:3] for word in aligned.words] == [word[:3] for word in expected]
    assert [word.weight for word in aligned.words] == pytest.approx([word.weight for word in expected])
    counts, weights = aligned.sums()
    assert dict(zip(CLASSES, counts, strict=True)) == {
        "nouns": 1,
        "verbs": 1,
        "adjectives": 1,
        "others": 2,
        "punctuation": 1,
        "special tokens": 2,
    }
    assert weights == pytest.approx([0.2, 0.1, 0.2, 0.12, 0.08, 0.3])
    assert weights.sum() == pytest.approx(1)


def test_words_that_were_not_read_are_left_out() -> None:
    words = [TaggedWord(place, place + 1, "NOUN", "x") for place in range(0, 10, 2)]
    aligned = align(reading([(2, 3, 0.5), (4, 5, 0.5)]), words)
    assert [(word.start, word.weight) for word in aligned.words] == [(2, 0.5), (4, 0.5)]


def test_a_token_in_no_word_counts_as_punctuation() -> None:
    aligned = align(reading([(0, 1, 0.25), (1, 3, 0.75)]), [TaggedWord(0, 1, "NOUN", "x")])
    assert aligned.between == 0.75
    assert aligned.sums()[1].tolist() == [0.25, 0, 0, 0, 0.75, 0]


def test_several_tokens_of_one_character() -> None:
    # Byte-level tokens of one character all have its offsets.
    aligned = align(
        reading([(0, 1, 0.25), (0, 1, 0.25), (2, 3, 0.5)]), [TaggedWord(0, 1, "X", ""), TaggedWord(2, 3, "VERB", "")]
    )
    assert [word.weight for word in aligned.words] == [0.5, 0.5]


def test_classes() -> None:
    names = {"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs", "ADJ": "adjectives"}
    others = dict.fromkeys(("AUX", "ADV", "PRON", "DET", "ADP", "NUM", "INTJ", "CCONJ", "SCONJ", "PART", "X"), "others")
    marks = dict.fromkeys(("PUNCT", "SYM", "SPACE"), "punctuation")
    for pos, name in {**names, **others, **marks}.items():
        assert class_of(pos) == name


def spans(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Draw spans that do not overlap, with and without gaps."""
    cuts = st.lists(st.integers(0, most), min_size=2, max_size=20, unique=True).map(sorted)
    pairs = cuts.map(lambda places: list(itertools.pairwise(places)))
    return pairs.flatmap(lambda all_pairs: st.lists(st.sampled_from(all_pairs), unique=True).map(sorted))


@given(spans(40), spans(40), st.data())
def test_no_attention_is_lost(words: list[tuple[int, int]], tokens: list[tuple[int, int]], data: st.DataObject) -> None:
    raw = data.draw(st.lists(st.integers(1, 100), min_size=len(tokens) + 2, max_size=len(tokens) + 2))
    weights = np.array(raw) / sum(raw)
    read = reading(
        [(start, stop, weight) for (start, stop), weight in zip(tokens, weights[1:-1], strict=True)],
        (weights[0], weights[-1]),
    )
    aligned = align(read, [TaggedWord(start, stop, "NOUN", "") for start, stop in words])
    assert aligned.sums()[1].sum() == pytest.approx(1)
    for word in aligned.words:
        # A word gets at most what the tokens have that touch it, and all that those have that lie inside.
        touching = sum(w for start, stop, w in _own(read) if start < word.stop and stop > word.start)
        inside = sum(w for start, stop, w in _own(read) if start >= word.start and stop <= word.stop)
        assert inside - 1e-9 <= word.weight <= touching + 1e-9


def _own(read: Reading) -> list[tuple[int, int, float]]:
    own = ~read.special
    return [(int(a), int(b), float(w)) for (a, b), w in zip(read.spans[own], read.weights[own], strict=True)]
