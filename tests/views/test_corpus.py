"""The corpus on disk: complete or missing, read without loading it; and a stream: the same order for every start."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from datasets.table import MemoryMappedTable

from benchmarks.rivals.train import InverseCloze
from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.reading.document import Document, text_key
from simlte_st.reading.documents import Shards, read_documents
from simlte_st.views import corpus as views_corpus
from simlte_st.views.corpus import DocumentStream, StreamedViews, from_rows, is_usable, shard_order, write_corpus
from simlte_st.views.views import DocSplit, draw_views
from simlte_st.words.sentences import PunktSegmenter, segment_document

TEXTS = ["One two. Three four five.\n\nSix.", "Halved sentence", "Word", "Red fox. Blue cat. Old dog. New cow."]
TEXTS += ["漢字。漢字。"]
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
    counts = {"documents": 4, "sentences": 3 + 1 + 4 + 2, "tokens": sum(sizes), "longest": max(sizes)}
    assert report.to_dict() == {**counts, "left_out": {"too short for two views": 1}}
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


COUNT, BATCH = 103, 4
STREAM_TEXTS = [f"This is text {number}. It goes on. And it ends." for number in range(COUNT)]

Make = Callable[..., DocumentStream]


def segmenter(text: str) -> list[str]:
    return re.split(r"(?<=\.)", text)


segment = partial(segment_document, segmenter=segmenter)


def sharded(texts: list[str], shards: int = 5) -> Shards:
    return read_documents(Dataset.from_dict({"text": texts}).to_iterable_dataset(num_shards=shards), stream=True)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(views_corpus, "BUFFER", 16)

    def make(texts: list[str] = STREAM_TEXTS, **options: Any) -> DocumentStream:
        options = {"seed": 3, "usable": lambda document: True, "batch_size": BATCH, **options}
        return DocumentStream(sharded(texts), **options)

    return make


def taken(stream: DocumentStream, rows: Any) -> list[str]:
    return [stream[row][0].text for row in rows]


def test_each_pass_shuffles_all_documents_into_full_batches(make: Make) -> None:
    stream, whole = make(), COUNT - COUNT % BATCH
    passes = [[stream[row] for row in range(number * whole, (number + 1) * whole)] for number in range(3)]
    assert [{epoch for _, epoch in each} for each in passes] == [{0}, {1}, {2}]
    orders = [[document.text for document, _ in each] for each in passes]
    for order in orders:
        assert len(set(order)) == whole
    assert set.union(*map(set, orders)) == set(STREAM_TEXTS), "what is left of one pass comes in another"
    assert all(first != second for first, second in itertools.combinations([STREAM_TEXTS[:whole], *orders], 2))
    first = [STREAM_TEXTS.index(text) for text in orders[0][:16]]
    assert first != sorted(first)
    assert taken(make(seed=4), range(whole)) != orders[0]


def test_order_does_not_depend_on_the_start(make: Make, tmp_path: Path) -> None:
    rows, path = range(2 * COUNT), tmp_path / "stream.json"
    whole = taken(make(path=path), rows)
    assert taken(make(), rows[1::2]) == whole[1::2], "one of two processes, without marks"
    assert taken(make(path=path), reversed(rows[::7])) == whole[::-1][rows[-1] % 7 :: 7]


def test_reading_resumes_at_a_saved_offset(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = tmp_path / "stream.json", []
    whole = taken(make(path=path), range(90))
    events = Shards.events
    monkeypatch.setattr(Shards, "events", lambda *place: read.append(place[1:]) or events(*place))
    stream = make(path=path)
    assert taken(stream, range(81, 90)) == whole[81:90]
    order = shard_order(5, seed=3, epoch=0)
    assert read[0][0] == order[80 // 21], "the first of 16 documents in the buffer is the 81st"
    assert len(read) < 3


def test_only_one_buffer_is_read_ahead(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, opened = make(), []
    events = Shards.events

    def broken_at_last(self: Shards, shard: int, row: int) -> Any:
        opened.append(shard)
        if len(set(opened)) > 1:
            raise DataError("the second shard is not to be read")
        yield from events(self, shard, row)

    monkeypatch.setattr(Shards, "events", broken_at_last)
    assert len(taken(stream, range(16))) == 16
    with pytest.raises(DataError, match="the second shard"):
        stream[16]
    monkeypatch.setattr(views_corpus, "BUFFER_CHARACTERS", 8 * len(STREAM_TEXTS[0]))
    opened.clear()
    assert len(taken(make(), range(8))) == 8
    with pytest.raises(DataError, match="the second shard"):
        taken(make(), range(8, 24))


def test_held_out_and_duplicate_documents_are_skipped(make: Make) -> None:
    texts = [*STREAM_TEXTS[:40], STREAM_TEXTS[3], STREAM_TEXTS[39], "", "word", *STREAM_TEXTS[40:80], STREAM_TEXTS[50]]
    view = DocSplit()
    stream = make(
        texts, excluded_keys={text_key(STREAM_TEXTS[3])}, usable=partial(is_usable, view=view, segment=segment)
    )
    counts = Counter(taken(stream, range(76)))
    assert STREAM_TEXTS[3] not in counts
    counted = stream.usage(76)
    assert counts.total() == counted.documents == 76
    assert counted.passes == 1
    assert max(counts.values()) <= 2
    whole = make(texts[:40] * 2)
    assert taken(whole, range(16)) == list(dict.fromkeys(taken(whole, range(16))))


def test_usage_counts_documents_and_passes(make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "stream.json"
    stream = make([*STREAM_TEXTS, " "], path=path)
    with caplog.at_level(logging.INFO):
        for row in range(250):
            stream[row]
    [message] = caplog.messages
    assert "100 documents" in message
    for told in (stream, make(path=path)):  # as in another process, which has read nothing
        counted = told.usage(250)
        assert (counted.documents, counted.passes) == (100, 2.5)
        assert told.usage(16).documents == 16


def test_fewer_documents_than_a_batch_is_an_error(make: Make) -> None:
    with pytest.raises(EmptyCorpusError, match="fewer documents"):
        make(STREAM_TEXTS[:7], excluded_keys=set(map(text_key, STREAM_TEXTS[:4])))[0]


def test_is_usable_segments_only_unclear_documents() -> None:
    cut = []

    def counting(text: str) -> list[str]:
        cut.append(text)
        return segmenter(text)

    for view, uncut in ((DocSplit(), 2), (InverseCloze(), 0)):
        segment_counted, judged = partial(segment_document, segmenter=counting), cut.copy()
        texts = [" One two. Three.", "Only one sentence", "word"]
        accepted = [is_usable(Document("a", text), view, segment_counted) for text in texts]
        assert accepted == [view.accepts(segment(Document("a", text))) for text in texts]
        assert len(cut) - len(judged) == len(texts) - uncut


def test_rows_are_views_of_their_pass_and_document(make: Make) -> None:
    stream = make()
    dataset = StreamedViews(stream, DocSplit(), segment, seed=3, budget=30).rows(150)
    assert len(dataset) == 150
    views = dataset[98:102]
    for number, row in enumerate(range(98, 102)):
        document, epoch = stream[row]
        assert epoch == row // 100
        pair = draw_views(segment(document), DocSplit(), seed=3, epoch=epoch, budget=30)
        assert pair is not None
        assert (views["anchor"][number], views["positive"][number]) == (pair.anchor, pair.positive)

    class Fickle(DocSplit):
        def accepts(self, document: Any) -> bool:
            return len(document.tokens) < 2

    with pytest.raises(DataError, match="accepts the beginning"):
        StreamedViews(stream, Fickle(), segment, seed=3, budget=30).rows(1)[0]
