from __future__ import annotations

from simlte_st.index.snippets import snippet

TEXT = (
    "First words say nothing. " * 20
    + "Floods came to the northern valleys in spring.\n\nNobody helped. "
    + "End. " * 100
)


def test_a_snippet_is_where_most_words_are() -> None:
    piece = snippet(TEXT, "flooding in the north valley", 100)
    assert "Floods came to the northern valleys in spring. Nobody" in piece
    assert piece.startswith("… ")
    assert piece.endswith(" …")
    assert len(piece) <= 104
    assert snippet(TEXT, "nothing").startswith("First words say nothing.")


def test_without_the_words_it_is_the_beginning() -> None:
    assert snippet("A short text.", "elephants") == "A short text."
    assert snippet("", "a") == ""
    assert snippet(TEXT, "elephants", 30) == "First words say nothing. …"
