from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_document
from tagger_support import EndingTagger, FakeTagger

from benchmarks.papers import tagging
from benchmarks.papers.redundancy import BUCKETS, measure_redundancy, nouns_and_verbs, redundancy
from benchmarks.papers.tagging import SpacyTagger
from simlte_st.data import Document
from simlte_st.evaluation import bootstrap_interval

# Nouns: cat, cat, cats, dogs, Mary, mary; verbs: sees, saw. N = 8; distinct: cat, dog, mary, see, so D = 4.
EXAMPLE = "The cat sees the cat. Cats saw dogs with Mary, mary is big."
KNOWN = {
    "cat": ("NOUN", "cat"),
    "cats": ("NOUN", "cat"),
    "dogs": ("NOUN", "dog"),
    "mary": ("PROPN", "Mary"),
    "sees": ("VERB", "see"),
    "saw": ("VERB", "see"),
    "is": ("AUX", "be"),
    "big": ("ADJ", "big"),
    "noun": ("NOUN", "noun"),
}


def test_the_worked_example() -> None:
    found = nouns_and_verbs(FakeTagger(KNOWN).tag([EXAMPLE])[0])
    assert [lemma for _, lemma in found] == ["cat", "see", "cat", "cat", "see", "dog", "mary", "mary"]
    assert redundancy(found) == 8 / 4


def test_the_worked_example_with_spacy() -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed (the extra pos)")
    tagger = SpacyTagger()
    # Nouns: dog, man, dogs, men, dog; verbs: chased, three times. N = 8; distinct: dog, man, chase, so D = 3.
    text = "The dog chased a man. The dogs chased two men. The dog has chased him."
    result = measure_redundancy([Document("a", text)], tagger)
    assert result.all.mean == pytest.approx(8 / 3)


def test_a_noun_and_a_verb_of_one_lemma_are_two() -> None:
    words = FakeTagger({"report": ("NOUN", "report"), "reports": ("VERB", "report")}).tag(["report reports Report"])[0]
    assert redundancy(nouns_and_verbs(words)) == 3 / 2
    assert redundancy(nouns_and_verbs(words, counted={"NOUN"})) == 2
    assert redundancy(nouns_and_verbs(words, counted={"VERB"})) == 1


@given(st.lists(st.sampled_from("abcdefgh")))
def test_the_range_of_the_equation(lemmas: list[str]) -> None:
    value = redundancy(lemmas)
    if not lemmas:
        assert value is None
        return
    assert value is not None
    assert 1 <= value <= len(lemmas)
    assert (value == 1) == (len(set(lemmas)) == len(lemmas))
    assert (value == len(lemmas)) == (len(set(lemmas)) == 1)


def documents_of(*lengths: int) -> list[Document]:
    return [Document(str(length), " ".join(["noun"] * length)) for length in lengths]


def test_documents_fall_into_the_papers_ranges() -> None:
    assert BUCKETS == ((0, 50), (51, 100), (101, 200), (201, 300), (301, None))
    result = measure_redundancy(documents_of(1, 50, 51, 100, 101, 200, 201, 300, 301, 1000), FakeTagger(KNOWN))
    # One lemma only: the redundancy is the number of words.
    assert [bucket.mean for bucket in result.buckets] == [25.5, 75.5, 150.5, 250.5, 650.5]
    assert [bucket.documents for bucket in result.buckets] == [2] * 5
    assert [bucket.name() for bucket in result.buckets] == ["0-50", "51-100", "101-200", "201-300", "more than 300"]
    assert result.all.name() == "all"


def test_means_stay_within_what_the_equation_allows() -> None:
    documents = [Document(str(n), make_document(n, sentences=1 + n % 40)) for n in range(60)]
    tagger = EndingTagger()
    result = measure_redundancy(documents, tagger, seed=3)
    counts = [len(nouns_and_verbs(words)) for words in tagger.tag([document.text for document in documents])]
    filled = [bucket for bucket in result.buckets if bucket.documents]
    assert len(filled) >= 4
    for bucket in (*filled, result.all):
        assert bucket.mean is not None
        assert 1 <= bucket.mean <= max(counts)
    # No range of lengths can stand apart from all together, as the paper's 29 does from its 1.37.
    assert result.all.documents == sum(bucket.documents for bucket in result.buckets)
    total = sum(bucket.documents * (bucket.mean or 0.0) for bucket in result.buckets)
    assert result.all.mean == pytest.approx(total / result.all.documents)


def test_documents_keep_their_words_in_batches_and_are_whatever_is_read_as_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = documents_of(2, 60, 150, 3, 400)
    whole = measure_redundancy(documents, FakeTagger(KNOWN))
    monkeypatch.setattr(tagging, "_BATCH_DOCUMENTS", 2)
    texts = [document.text for document in documents]
    for source in (documents, texts, iter(texts), [{"text": text} for text in texts]):
        assert measure_redundancy(source, FakeTagger(KNOWN)) == whole


def test_intervals_are_the_bootstraps() -> None:
    result = measure_redundancy(documents_of(2, 3, 7), FakeTagger(KNOWN), seed=5)
    assert (result.all.low, result.all.high) == bootstrap_interval([2.0, 3.0, 7.0], seed=5)
    assert result.buckets[0].mean == 4
    alone = measure_redundancy(documents_of(2), FakeTagger(KNOWN))
    assert (alone.all.mean, alone.all.low, alone.all.high) == (2, None, None)


def test_documents_without_nouns_and_verbs_are_counted_and_in_no_mean() -> None:
    documents = [*documents_of(4), Document("none", "very much so"), Document("marks", "?!")]
    result = measure_redundancy(documents, FakeTagger(KNOWN))
    assert (result.all.mean, result.all.documents, result.all.without) == (4, 1, 2)
    assert "2 more have neither" in result.summary()
    nothing = measure_redundancy([Document("none", "so")], FakeTagger())
    assert nothing.all.mean is None
    assert "| all" in nothing.table()


def test_the_result_is_a_table_and_json() -> None:
    result = measure_redundancy(documents_of(2, 60, 70), FakeTagger(KNOWN))
    table = result.table()
    assert "| 51-100 " in table
    assert "65.00 [60.00, 70.00]" in table
    read = json.loads(json.dumps(result.to_dict()))
    assert read["all"]["documents"] == 3
    assert read["tagger"] == {"pipeline": "fake"}
