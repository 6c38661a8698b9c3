"""The order of a stream: the same for every reader and start, in the memory of one buffer."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.reading.document import Document, text_key
from simlte_st.reading.documents import Shards, read_documents
from simlte_st.views import document_stream
from simlte_st.views.document_stream import DocumentStream, StreamedViews, shard_order, usable_by
from simlte_st.views.views import DocSplit, InverseCloze, draw_views
from simlte_st.words.sentences import estimate_tokens, segment_document

DOCUMENTS, BATCH = 103, 4
TEXTS = [f"This is text {number}. It goes on. And it ends." for number in range(DOCUMENTS)]

Make = Callable[..., DocumentStream]


def segmenter(text: str) -> list[str]:
    return re.split(r"(?<=\.)", text)


def sharded(texts: list[str], shards: int = 5) -> Shards:
    return read_documents(Dataset.from_dict({"text": texts}).to_iterable_dataset(num_shards=shards), stream=True)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(document_stream, "BUFFER", 16)

    def make(texts: list[str] = TEXTS, **options: Any) -> DocumentStream:
        options = {"seed": 3, "usable": lambda document: True, "batch_size": BATCH, **options}
        return DocumentStream(sharded(texts), **options)

    return make


def taken(stream: DocumentStream, rows: Any) -> list[str]:
    return [stream[row][0].text for row in rows]


def test_each_pass_shuffles_all_documents_into_full_batches(make: Make) -> None:
    stream, whole = make(), DOCUMENTS - DOCUMENTS % BATCH
    passes = [[stream[row] for row in range(number * whole, (number + 1) * whole)] for number in range(3)]
    assert [{epoch for _, epoch in each} for each in passes] == [{0}, {1}, {2}]
    orders = [[document.text for document, _ in each] for each in passes]
    for order in orders:
        assert len(set(order)) == whole
    assert set.union(*map(set, orders)) == set(TEXTS), "what is left of one pass comes in another"
    assert all(first != second for first, second in itertools.combinations([TEXTS[:whole], *orders], 2))
    first = [TEXTS.index(text) for text in orders[0][:16]]
    assert first != sorted(first)
    assert taken(make(seed=4), range(whole)) != orders[0]


def test_order_does_not_depend_on_the_start(make: Make, tmp_path: Path) -> None:
    rows, path = range(2 * DOCUMENTS), tmp_path / "stream.json"
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
    monkeypatch.setattr(document_stream, "BUFFER_CHARACTERS", 8 * len(TEXTS[0]))
    opened.clear()
    assert len(taken(make(), range(8))) == 8
    with pytest.raises(DataError, match="the second shard"):
        taken(make(), range(8, 24))


def test_held_out_and_duplicate_documents_are_skipped(make: Make) -> None:
    texts = [*TEXTS[:40], TEXTS[3], TEXTS[39], "", "word", *TEXTS[40:80], TEXTS[50]]
    view = DocSplit()
    stream = make(texts, excluded_keys={text_key(TEXTS[3])}, usable=usable_by(view, segmenter))
    counts = Counter(taken(stream, range(76)))
    assert TEXTS[3] not in counts
    counted = stream.usage(76)
    assert counts.total() == counted.documents == 76
    assert counted.passes == 1
    assert max(counts.values()) <= 2
    whole = make(texts[:40] * 2)
    assert taken(whole, range(16)) == list(dict.fromkeys(taken(whole, range(16))))


def test_usage_counts_documents_and_passes(make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "stream.json"
    stream = make([*TEXTS, " "], path=path)
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
        make(TEXTS[:7], excluded_keys=set(map(text_key, TEXTS[:4])))[0]


def test_usable_by_segments_only_unclear_documents() -> None:
    cut = []

    def counting(text: str) -> list[str]:
        cut.append(text)
        return segmenter(text)

    for view, uncut in ((DocSplit(), 2), (InverseCloze(), 0)):
        usable, judged = usable_by(view, counting), cut.copy()
        texts = [" One two. Three.", "Only one sentence", "word"]
        accepted = [usable(Document("a", text)) for text in texts]
        assert accepted == [view.accepts(segment_document(Document("a", text), segmenter)) for text in texts]
        assert len(cut) - len(judged) == len(texts) - uncut


def test_rows_are_views_of_their_pass_and_document(make: Make) -> None:
    stream = make()
    settings: dict[str, Any] = {"seed": 3, "budget": 30, "segmenter": segmenter, "count_tokens": estimate_tokens}
    dataset = StreamedViews(stream, DocSplit(), **settings).rows(150)
    assert len(dataset) == 150
    views = dataset[98:102]
    for number, row in enumerate(range(98, 102)):
        document, epoch = stream[row]
        assert epoch == row // 100
        pair = draw_views(segment_document(document, segmenter), DocSplit(), seed=3, epoch=epoch, budget=30)
        assert pair is not None
        assert (views["anchor"][number], views["positive"][number]) == (pair.anchor, pair.positive)

    class Fickle(DocSplit):
        def accepts(self, document: Any) -> bool:
            return len(document.tokens) < 2

    with pytest.raises(DataError, match="accepts the beginning"):
        StreamedViews(stream, Fickle(), **settings).rows(1)[0]
