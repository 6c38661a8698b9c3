from __future__ import annotations

from typing import Any

from support import make_document

from simlte_st.exploration.duplicates import MAX_COMPARED, compare_duplicates, difference
from simlte_st.views.duplicates import find_duplicates


def words_of(runs: list[tuple[str, str]], kind: str) -> list[str]:
    return [words for run, words in runs if run == kind]


def test_duplicate_groups_have_differences() -> None:
    texts = [make_document(number) for number in range(8)]
    corpus = [*texts, f"{texts[2]} More.", texts[5].upper(), *(f"{texts[0]} {word}" for word in "abcdefg")]
    compared: dict[str, Any] = compare_duplicates(find_duplicates(corpus), 0.75, corpus)
    groups = compared["groups"]
    assert [pairs[0][0] for pairs in groups] == [0, 2, 5], "the largest group first"
    assert [words_of(pair[3], "insert") for pair in groups[0]] == [[word] for word in "abcdefg"[:MAX_COMPARED]]
    assert words_of(groups[1][0][3], "insert") == ["More."]
    assert (groups[2][0][2], groups[2][0][3][0][0]) == (1.0, "delete"), "in other letters"
    assert (compared["below"], compared["more_groups"], compared["more_below"]) == ([], 0, 0)
    words = [f"w{number}" for number in range(3_000)]
    pair = [" ".join(words), " ".join([*words[:2_200], "new"])]
    below: Any = compare_duplicates(find_duplicates(pair), 0.75, pair)["below"]
    assert [(first, row, round(share, 3)) for first, row, share, _ in below] == [(0, 1, 0.733)]
    assert below[0][3][0] == ("equal", " ".join(words[2_194:2_200])), "the first difference, however late"


def test_differences_show_words_in_context() -> None:
    words = [f"w{number}" for number in range(60)]
    around = [("equal", " ".join(words[24:30])), ("equal", " ".join(words[31:37]))]
    changes = [("delete", "w30"), ("insert", "changed")]
    other = " ".join([*words[:30], "changed", *words[31:]])
    assert difference(" ".join(words), other) == [around[0], *changes, around[1]]
    assert difference("one two", "one\n two") == [("equal", "the same words")]
    assert difference("", "a <b>") == [("insert", "a <b>")]
    most = [f"w{number}" for number in range(400)]
    every = [f"{word} x{number}" if number % 20 == 0 else word for number, word in enumerate(most)]
    many = difference(" ".join(every), " ".join(most))
    assert len(words_of(many, "delete")) == 8 == len(words_of(many, "skip")) + 1
    assert words_of(difference("今天很好", "今很好"), "delete") == ["天"]
