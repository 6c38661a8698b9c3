from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tagger_support import FakeTagger

from benchmarks.papers.redundancy import BUCKETS, measure_redundancy, nouns_and_verbs, redundancy_table, repetition
from benchmarks.papers.tagging import SpacyTagger
from simlte_st.data import Document

# Nouns: cat, cat, cats, dogs, Mary, mary; verbs: sees, saw. N = 8; distinct: cat, dog, mary, see, so D = 4.
EXAMPLE = "The cat sees the cat. Cats saw dogs with Mary, mary is big."
KNOWN = {
    "cat": ("NOUN", "cat"), "cats": ("NOUN", "cat"), "dogs": ("NOUN", "dog"), "noun": ("NOUN", "noun"),
    "mary": ("PROPN", "Mary"), "sees": ("VERB", "see"), "saw": ("VERB", "see"), "is": ("AUX", "be"),
    "big": ("ADJ", "big"),
}  # fmt: skip


def test_worked_example() -> None:
    found = nouns_and_verbs(FakeTagger(KNOWN).tag(EXAMPLE))
    assert [lemma for _, lemma in found] == ["cat", "see", "cat", "cat", "see", "dog", "mary", "mary"]
    assert repetition(found) == 8 / 4


def test_worked_example_with_spacy() -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed (the extra pos)")
    tagger = SpacyTagger()
    # Nouns: dog, man, dogs, men, dog; verbs: chased, three times. N = 8; distinct: dog, man, chase, so D = 3.
    text = "The dog chased a man. The dogs chased two men. The dog has chased him."
    result = measure_redundancy([Document("a", text)], tagger)
    assert result["all"]["mean"] == pytest.approx(8 / 3)


@given(st.lists(st.sampled_from("abcdefgh")))
def test_repetition_has_bounds(lemmas: list[str]) -> None:
    value = repetition(lemmas)
    if not lemmas:
        assert value is None
        return
    assert value is not None
    assert 1 <= value <= len(lemmas)
    assert (value == 1) == (len(set(lemmas)) == len(lemmas))
    assert (value == len(lemmas)) == (len(set(lemmas)) == 1)


def documents_of(*lengths: int) -> list[Document]:
    return [Document(str(length), " ".join(["noun"] * length)) for length in lengths]


def test_documents_fall_into_the_papers_buckets() -> None:
    result = measure_redundancy(documents_of(1, 50, 51, 100, 101, 200, 201, 300, 301, 1000), FakeTagger(KNOWN))
    # One lemma only: the redundancy is the number of words.
    assert [bucket["mean"] for bucket in result["buckets"]] == [25.5, 75.5, 150.5, 250.5, 650.5]
    assert [bucket["documents"] for bucket in result["buckets"]] == [2] * 5
    assert list(BUCKETS) == ["0-50", "51-100", "101-200", "201-300", "more than 300"]


def test_documents_without_nouns_and_verbs_are_skipped() -> None:
    documents = [*documents_of(4), Document("none", "very much so"), Document("marks", "?!")]
    result = measure_redundancy(documents, FakeTagger(KNOWN))
    assert (result["all"]["mean"], result["all"]["documents"]) == (4, 1)
    nothing = measure_redundancy([Document("none", "so")], FakeTagger())
    assert nothing["all"]["mean"] is None
    assert "| all" in redundancy_table(nothing)
