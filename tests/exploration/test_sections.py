from __future__ import annotations

from support import make_document

from simlte_st.exploration.sections import MEMBERS, differences, duplicate_groups


def test_groups_come_with_what_differs() -> None:
    texts = [make_document(number) for number in range(8)]
    corpus = [*texts, f"{texts[2]} More.", texts[5].upper(), *(f"{texts[0]} {word}" for word in "abcdefg")]
    duplicates = duplicate_groups(corpus, 0.75)
    assert duplicates.groups[8] == 2
    assert [len(group.members) for group in duplicates.shown] == [8, 2, 2]
    assert len(duplicates.shown[0].differences) == MEMBERS
    assert duplicates.shown[0].differences[0][-1] == ("new", "a")


def test_differences_are_words_with_their_neighbours() -> None:
    words = [f"w{number}" for number in range(60)]
    other = [*words[:30], "changed", *words[31:]]
    assert differences(" ".join(words), " ".join(other)) == [
        ("gap", ""),
        ("same", " ".join(words[24:30])),
        ("gone", "w30"),
        ("new", "changed"),
        ("same", " ".join(words[31:37])),
        ("gap", ""),
    ]
    assert differences("one two", "one\n two") == []
    assert differences("", "a b") == [("new", "a b")]
    many = " ".join(f"{word} x{number}" for number, word in enumerate(words))
    assert differences(many, " ".join(words))[-1] == ("gap", "")
    assert ("gone", "天") in differences("今天很好", "今很好")
