"""The corpus on disk: written once, complete or missing, and read without loading it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from datasets.table import MemoryMappedTable

from simlte_st.errors import EmptyCorpusError
from simlte_st.reading.document import Document
from simlte_st.views.corpus import from_rows, write_corpus
from simlte_st.views.views import DocSplit
from simlte_st.words.sentences import PunktSegmenter, segment_document

TEXTS = [
    "One two. Three four five.\n\nSix.",
    "Halved sentence",
    "Word",
    "Red fox. Blue cat. Old dog. New cow.",
    "漢字。漢字。",
]
DOCUMENTS = [Document(f"d{number}", text) for number, text in enumerate(TEXTS)]


def never() -> Iterator[Document]:
    raise AssertionError("the documents were read again")
    yield


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_corpus_round_trip(tmp_path: Path) -> None:
    corpus, report = write_corpus(iter(DOCUMENTS), tmp_path, view=DocSplit(), segmenter=PunktSegmenter())
    usable = [segment_document(document, PunktSegmenter()) for document in DOCUMENTS if document.text != "Word"]
    assert list(from_rows(corpus[:])) == usable
    assert corpus.column_names == ["id", "sentences", "paragraphs", "tokens"]
    sizes = [sum(document.tokens) for document in usable]
    assert report.to_dict() == {
        "documents": 4,
        "sentences": 3 + 1 + 4 + 2,
        "tokens": sum(sizes),
        "longest": max(sizes),
        "left_out": {"too short for two views": 1},
    }
    assert json.loads((tmp_path / "corpus.json").read_text()) == report.to_dict()
    assert names(tmp_path) == {"corpus.arrow", "corpus.json", "punkt.json"}


def test_complete_corpus_does_not_need_the_documents(tmp_path: Path) -> None:
    corpus, report = write_corpus(DOCUMENTS, tmp_path, view=DocSplit())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again, report_again = write_corpus(never(), tmp_path, view=DocSplit())
    assert again.to_list() == corpus.to_list()
    assert report_again == report
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_corpus_is_memory_mapped(tmp_path: Path) -> None:
    documents = (Document(str(number), f"Sentence {number}. Another one.") for number in range(700))
    corpus, report = write_corpus(documents, tmp_path, view=DocSplit(), segmenter=PunktSegmenter())
    assert isinstance(corpus.data, MemoryMappedTable)
    assert Path(corpus.cache_files[0]["filename"]) == tmp_path / "corpus.arrow"
    assert len(corpus) == report.documents == 700  # several record batches
    assert corpus["id"][:] == [str(number) for number in range(700)]
    assert corpus[699]["sentences"] == ["Sentence 699.", "Another one."]


def test_duplicates_are_dropped_and_counted(tmp_path: Path) -> None:
    copies = [Document(f"copy-{number}", text) for number, text in enumerate(TEXTS)]
    corpus, report = write_corpus([*DOCUMENTS, *copies, Document("other", f"{TEXTS[3]} ")], tmp_path, view=DocSplit())
    assert list(corpus["id"]) == ["d0", "d1", "d3", "d4", "other"], "the first of each text; one letter more is another"
    assert report.left_out == {"too short for two views": 1, "exact duplicate of another document": 5}
    with pytest.raises(EmptyCorpusError, match=r"left out: exact duplicate of another document \(2\)"):
        write_corpus([DOCUMENTS[0]] * 3, tmp_path / "same", view=DocSplit())


def test_punkt_is_learned_from_the_corpus_and_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nltk.data.path", [])
    texts = [f"Dr. Smith saw number {number} there. He left it to Dr. Jones. They slept." for number in range(20)]
    documents = (Document(str(number), text) for number, text in enumerate(texts))  # can be read only once
    corpus, _ = write_corpus(documents, tmp_path, view=DocSplit())
    assert corpus[0]["sentences"] == ["Dr. Smith saw number 0 there.", "He left it to Dr. Jones.", "They slept."]
    assert len(corpus) == 20
    written = PunktSegmenter.from_dict(json.loads((tmp_path / "punkt.json").read_text()))
    assert written.to_dict() == PunktSegmenter.learn(texts).to_dict()


@pytest.mark.parametrize("documents", [[], DOCUMENTS[:1], [DOCUMENTS[0], DOCUMENTS[2], Document("e", "Short")]])
def test_fewer_than_two_usable_documents_is_an_error(tmp_path: Path, documents: list[Document]) -> None:
    expected = {3: "left out: too short", 1: "1 can be used", 0: "no usable document"}[len(documents)]
    for _ in range(2):  # the second call does not treat an incomplete folder as a corpus
        with pytest.raises(EmptyCorpusError, match=expected):
            write_corpus(documents, tmp_path, view=DocSplit())
        assert "corpus.json" not in names(tmp_path)
    corpus, _ = write_corpus(DOCUMENTS, tmp_path, view=DocSplit())
    assert len(corpus) == 4


def test_crash_leaves_no_corpus(tmp_path: Path) -> None:
    written = []

    def breaking() -> Iterator[Document]:
        for number in range(1000):  # more than Punkt learns from, so that record batches are already on disk
            assert not (tmp_path / "corpus.arrow").exists()
            written.append(sum(path.stat().st_size for path in tmp_path.glob(".corpus.arrow.*/*")))
            yield Document(f"old {number}", f"one two three {number}\n" * 100)
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_corpus(breaking(), tmp_path, view=DocSplit(), segmenter=str.splitlines)
    assert written[-1] > 100_000
    assert names(tmp_path) == set()
    corpus, report = write_corpus(DOCUMENTS, tmp_path, view=DocSplit())
    assert list(corpus["id"]) == ["d0", "d1", "d3", "d4"]
    assert report.documents == 4
