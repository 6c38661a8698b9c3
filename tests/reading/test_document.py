"""Words and keys of a document's text."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator

import pytest
import regex
from hypothesis import given, settings
from odd_texts import letters, texts

from simlte_st.reading.document import LONGEST_WORD, count_words, median_words, peek, text_key, word_spans
from simlte_st.words.languages import UNSPACED


@settings(max_examples=200)
@given(texts)
def test_words_cover_all_but_white_space(text: str) -> None:
    spans = word_spans(text)
    assert "".join(text[start:stop] for start, stop in spans) == letters(text)
    assert all(0 < stop - start <= LONGEST_WORD for start, stop in spans)
    assert count_words(text) == len(spans)


def test_words_of_scripts_without_spaces() -> None:
    assert count_words("the cat sat") == 3
    assert count_words("今天天气很好") == 6
    assert count_words("GPU很快 yes") == 4
    assert count_words("x" * (2 * LONGEST_WORD)) == 2
    assert count_words("x" * (2 * LONGEST_WORD + 1)) == 3


def test_analyzer_agrees_on_scripts_without_spaces() -> None:
    everything = "".join(map(chr, [*range(0x20, 0xD800), *range(0xE000, sys.maxunicode + 1)]))
    unspaced = regex.findall(rf"(?V1)[[{UNSPACED}]&&[\p{{L}}\p{{N}}]]", everything)
    assert [letter for letter in unspaced if count_words(f"a{letter}a") != 3] == []
    marks = regex.findall(rf"(?V1)[[{UNSPACED}]&&\p{{M}}]", everything)
    known = [mark for mark in marks if mark < "\U00010000" and unicodedata.category(mark) != "Cn"]
    assert [mark for mark in known if count_words(f"ก{mark}ก") != 2] == []
    assert count_words("ab12 é ünï कखग") == 4


def test_text_keys() -> None:
    assert text_key("a") == text_key("a") != text_key("b")
    assert text_key("é") == -3811523526868657873  # the same everywhere
    assert -(2**63) <= text_key("a") < 2**63


def test_median_words() -> None:
    assert [median_words(["word " * count for count in counts]) for counts in ([9, 9, 500], [1, 300, 400])] == [9, 300]


@pytest.mark.parametrize(("enough", "taken"), [(5, 1), (6, 2), (1000, 4)])
def test_peek_returns_the_full_stream(enough: int, taken: int) -> None:
    words = ["aaaaa", "bbbbb", "ccccc", "ddddd"]
    read = []

    def stream() -> Iterator[str]:
        for word in words:
            read.append(word)
            yield word

    first, everything = peek(stream(), len, enough)
    assert first == words[:taken]
    assert read == words[:taken]  # no more than asked for
    assert list(everything) == words
    assert read == words
