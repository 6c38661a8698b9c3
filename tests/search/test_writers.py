from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer
from support import write_jsonl

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError
from simlte_st.files import hold
from simlte_st.search import Index, add, encoder, searcher, store, words
from simlte_st.search.store import Store


def test_index_allows_one_writer(index: Index, corpus: list[Document]) -> None:
    lock = hold(index.folder)
    try:
        for write in (lambda: index.add(corpus), lambda: index.delete(["d1"])):
            with pytest.raises(ConfigurationError, match="is already working"):
                write()
        assert len(index.search(corpus[0].text)) == 10  # readers are not blocked
    finally:
        lock.release()


KILLED = """
import os, signal, sys
from simlte_st.search import Index, encoder
from simlte_st.search.encoder import Encoder
from simlte_st.search.store import Store
encoder.BATCH, log, merges = 4, open({log!r}, "a"), []
def encode(self, texts, batch_size=32, original=Encoder.encode):
    print(*texts, sep="\\n", file=log, flush=True)
    return original(self, texts, batch_size)
def merge(self, rows, original=Store.merge):
    merges.append(rows)
    if len(merges) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    original(self, rows)
Encoder.encode, Store.merge = encode, merge
model, source, folder = sys.argv[1:]
Index.create(folder, model, exist_ok=True).add(source)
"""


def test_sigkill_loses_at_most_one_batch(
    corpus: list[Document],
    encoder_path: Path,
    tmp_path: Path,
    encoded: list[str],
) -> None:
    source, log = tmp_path / "source.jsonl", tmp_path / "log"
    rows = [{"id": f"{one.id}-{copy}", "text": f"{one.text} {'Ba.' * copy}"} for copy in range(2) for one in corpus]
    write_jsonl(source, rows)
    program = [sys.executable, "-c", KILLED.format(log=str(log))]
    killed = subprocess.run([*program, str(encoder_path), str(source), str(tmp_path / "index")], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(Index.open(tmp_path / "index")) == 8
    again = Index.create(tmp_path / "index", encoder_path, exist_ok=True)
    report = again.add(source)
    assert (report.added, report.replaced, report.unchanged) == (12, 0, 8)
    times = Counter([*log.read_text().splitlines(), *encoded])
    assert sorted(times) == sorted(row["text"] for row in rows)
    assert sum(times.values()) - len(times) == 4


class Killed(BaseException):
    """An error that no code of this package handles, like a killing signal."""


def test_command_killed_at_any_step_can_be_repeated(
    corpus: list[Document],
    model: SentenceTransformer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contents: Callable[[Index], list[Any]],
) -> None:
    monkeypatch.setattr(encoder, "BATCH", 4)
    monkeypatch.setattr(store, "APPROXIMATE_FROM", 8)
    steps, last = list[str](), [10_000]

    def step(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def stopped(*args: Any, **options: Any) -> Any:
            if len(steps) == last[0]:
                raise Killed
            steps.append(name)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, stopped)

    for name in ("_make_index", "add_columns", "merge", "tidy", "delete"):
        step(Store, name)
    step(add, "count_index_words")
    for module in (store, words, encoder, add):
        step(module, "write_json")

    def made(name: str) -> Index:
        Index.create(tmp_path / name, model, parts=True, exist_ok=True).add(corpus)
        return Index.open(tmp_path / name, model)

    def hits(index: Index) -> list[Any]:
        modes: tuple[Any, ...] = ("dense", "text", "hybrid")
        return [[*map(repr, index.search(corpus[3].text[:80], mode=mode, explain=True))] for mode in modes]

    whole, count = made("whole"), len(steps)
    assert {"_make_index", "add_columns", "merge", "tidy", "count_index_words", "write_json"} <= set(steps)
    expected = contents(whole), hits(whole)
    for moment in range(count):
        steps.clear()
        last[0] = moment
        with pytest.raises(Killed):
            made(str(moment))
        last[0] = 10_000
        again = made(str(moment))
        assert (contents(again), hits(again)) == expected, moment


def test_search_is_consistent_during_writes(
    index: Index, corpus: list[Document], model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, find = Index.open(index.folder, model), searcher.find_matches
    before = [[hit.id for hit in index.search(one.text, top_k=10)] for one in corpus[:2]]

    def found(*args: Any) -> Any:
        matches = find(*args)
        writer.delete(["d3", "d4"])
        return matches

    with monkeypatch.context() as patch:
        patch.setattr(searcher, "find_matches", found)
        hits = index.search(corpus[0].text, top_k=10, explain=True)
        assert [hit.id for hit in hits] == before[0]
        assert all(hit.metadata["year"] for hit in hits)
        assert [hit.sentences for hit in hits if hit.id == "d3"], "explained by its own text"
    assert {"d3", "d4"}.isdisjoint(hit.id for hit in index.search(corpus[1].text, top_k=10))


def test_writers_keep_earlier_writes_of_others(
    index: Index, corpus: list[Document], documents: list[str], model: SentenceTransformer
) -> None:
    other = Index.open(index.folder, model)
    index.add([Document("n1", documents[20], metadata={"late": 1})])
    report = other.add([Document("n2", documents[21], metadata={"late": 2, "later": "x"})])
    assert report.documents == 12
    again = Index.open(index.folder, model)
    assert again.columns == index.columns == other.columns == ["year", "kind", "late", "later"]
    assert [one.metadata["late"] for one in again.documents(["n1", "n2"]) if one.metadata] == [1, 2]


def test_single_changes_leave_few_files_and_versions(
    static_model: SentenceTransformer, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, folder = Index.create(tmp_path / "single.index", static_model), Path("/proc/self/fd")
    index.add([Document(f"d{number}", text) for number, text in enumerate(documents[:30])])
    reader = Index.open(index.folder, static_model)
    before, open_files = reader._store.snapshot(), list[int]()
    for number in range(100):
        report = index.add([Document(f"n{number}", f"{documents[number % 30]} neu{number}")])
        assert (report.documents, report.vectors) == (number + 31, number + 31)
        assert reader.search(f"neu{number}", mode="text", top_k=1)[0].id == f"n{number}", "at once"
        if folder.exists() and number in (9, 99):
            open_files.append(sum("single.index" in os.path.realpath(each) for each in folder.iterdir()))
    assert open_files[1:] <= [count + 2 for count in open_files[:1]]
    table = Store.open(index.folder)._table
    assert table.stats()["fragment_stats"]["num_fragments"] <= store._MIN_FILES + 1
    assert table.version < 150, "a commit for each, and few of joining them"
    assert len(before.rows("true", ["id", "text", "vector"])) == 30, "a search that has begun finds its files"
    monkeypatch.setattr(store, "_OLD", timedelta(milliseconds=1))
    for number in range(100):
        assert index.delete([f"n{number}"]) == 1
    versions = [*(index.folder / "documents.lance" / "_versions").glob("*.manifest")]
    assert len(versions) <= store._MAX_FILES
    assert reader.search(documents[7], top_k=1)[0].id == "d7"


def test_concurrent_create_fails_for_one_writer(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, load, made = tmp_path / "index", encoder.Encoder, list[Index]()

    def overtaken(*args: Any) -> Any:  # after the first check of the folder
        if not made:
            monkeypatch.setattr("simlte_st.search.encoder.Encoder", load)
            made.append(Index.create(folder, model))
            made[0].add([Document("a", "Ba bun bis.")])
        return load(*args)

    monkeypatch.setattr("simlte_st.search.encoder.Encoder", overtaken)
    with pytest.raises(ConfigurationError, match="already exists"):
        Index.create(folder, model)
    assert len(Index.open(folder, model)) == 1
