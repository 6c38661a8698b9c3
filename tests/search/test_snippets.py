from __future__ import annotations

import pytest

from simlte_st.search.hits import shortened, snippet

TEXT = (
    "First words say nothing. " * 20
    + "Floods came to the northern valleys in spring.\n\nNobody helped. "
    + "End. " * 100
)


def test_a_snippet_is_where_most_words_are() -> None:
    piece = snippet(TEXT, "flooding in the north valley", ["en"], 100)
    assert "Floods came to the northern valleys in spring. Nobody" in piece
    assert piece.startswith("… ")
    assert piece.endswith(" …")
    assert len(piece) <= 104
    assert snippet(TEXT, "nothing", ["en"]).startswith("First words say nothing.")


def test_without_the_words_it_is_the_beginning() -> None:
    assert snippet("A short text.", "elephants", ["en"]) == "A short text."
    assert snippet("", "a", ["en"]) == ""
    assert snippet(TEXT, "elephants", ["en"], 30) == "First words say nothing. …"


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("Rates rise.", 11, "Rates rise."),
        ("Rates rise again.", 12, "Rates rise …"),
        ("Rates rise again.", 10, "Rates rise …"),
        ("Rates\nrise again.", 8, "Rates …"),
        ("天气很好今天天气", 4, "天气很好 …"),
        ("天 " + "气" * 60, 50, "天 " + "气" * 48 + " …"),
    ],
)
def test_a_shortened_text_ends_with_a_word_and_says_that_it_goes_on(text: str, length: int, shown: str) -> None:
    assert shortened(text, length) == shown
