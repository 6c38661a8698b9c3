"""The cache of token ids: made once, found again, never half there."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import make_document, make_tokenizer
from tokenizers_support import byte_level, crossing
from transformers import BertConfig

from simlte_st.data import token_cache, token_parts
from simlte_st.data.document import Document
from simlte_st.data.segmenters import PunktSegmenter
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.data.token_corpus import TokenCorpus
from simlte_st.errors import ConfigurationError, EmptyCorpusError, ModelError

DOCUMENTS = [Document(f"d{number}", make_document(number, sentences=4)) for number in range(13)]
PUNKT = PunktSegmenter()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test, and parts of five documents."""
    monkeypatch.setenv("SIMLTE_ST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(token_parts, "_MOST_DOCUMENTS", 5)
    return tmp_path / "home" / "tokens"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the parts that are written."""
    names: list[str] = []
    write = token_cache.write_part

    def noting(path: Path, *arguments: Any) -> int:
        differ = write(path, *arguments)
        names.append(path.stem)
        return differ

    monkeypatch.setattr(token_cache, "write_part", noting)
    return names


def content(corpus: TokenCorpus) -> list[tuple[str, list[int], list[int]]]:
    return [(document.id, document.ids.tolist(), document.tokens) for document in corpus]


def test_a_corpus_is_made_once(place: Path, written: list[str]) -> None:
    first = tokenize_corpus(iter(DOCUMENTS), make_tokenizer(), segmenter=PUNKT)
    assert len(written) == 3
    assert [document.id for document in first] == [f"d{number}" for number in range(13)]
    files = {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}
    again = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PunktSegmenter())
    assert again.path == first.path
    assert content(again) == content(first)
    assert len(written) == 3
    after = {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}
    assert {path: time for path, time in after.items() if path.suffix != ".lock"} == {
        path: time for path, time in files.items() if path.suffix != ".lock"
    }


def test_the_name_tells_documents_apart(written: list[str]) -> None:
    tokenizer = make_tokenizer()
    renamed = [*DOCUMENTS[:12], Document("other", DOCUMENTS[12].text)]
    changed = [*DOCUMENTS[:12], Document("d12", DOCUMENTS[12].text + " Ba.")]
    turned = [*DOCUMENTS[:11], DOCUMENTS[12], DOCUMENTS[11]]
    moved = [Document("d", "ab"), Document("dc", "b")], [Document("da", "b"), Document("d", "cb")]
    corpora = [
        tokenize_corpus(documents, tokenizer, segmenter=PUNKT)
        for documents in (DOCUMENTS, renamed, changed, turned, *moved)
    ]
    assert len({corpus.path for corpus in corpora}) == 6
    assert len(written) == 3 + 1 + 1 + 1 + 1 + 1  # only the last part is another
    labelled = [Document(document.id, document.text, "a class") for document in DOCUMENTS]
    assert tokenize_corpus(labelled, tokenizer, segmenter=PUNKT).path == corpora[0].path


def test_a_corpus_that_has_grown_is_tokenized_at_its_end_only(written: list[str]) -> None:
    tokenize_corpus(DOCUMENTS[:10], make_tokenizer(), segmenter=PUNKT)
    assert len(written) == 2
    grown = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT)
    assert len(written) == 3
    assert len(grown) == 13


def test_the_folder_tells_settings_apart(place: Path) -> None:
    class Lines:
        fingerprint = "lines 1"

        def __call__(self, text: str) -> list[str]:
            return text.splitlines()

    settings: list[dict[str, Any]] = [
        {"tokenizer": make_tokenizer(), "segmenter": PUNKT},
        {"tokenizer": byte_level(), "segmenter": PUNKT},
        {"tokenizer": make_tokenizer(), "segmenter": PunktSegmenter.learn(["Dr. Ba came. See Dr. Bo. Dr. Bun."] * 9)},
        {"tokenizer": make_tokenizer(), "segmenter": "nupunkt"},
        {"tokenizer": make_tokenizer(), "segmenter": Lines()},
    ]
    folders = {tokenize_corpus(DOCUMENTS, **each).path.parent.parent for each in settings}
    assert len(folders) == 5
    Lines.fingerprint = "lines 2"
    folders.add(tokenize_corpus(DOCUMENTS, **settings[-1]).path.parent.parent)
    assert len(folders) == 6
    assert {folder.parent for folder in folders} == {place}
    assert all(json.loads((folder / "settings.json").read_text())["format"] == 1 for folder in folders)


def test_a_segmenter_that_nobody_knows_needs_a_folder_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="fingerprint"):
        tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=str.splitlines)
    corpus = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=str.splitlines, directory=tmp_path / "own")
    assert corpus.path.is_relative_to(tmp_path / "own")
    assert [len(document.tokens) for document in corpus] == [1] * 13


def test_bad_settings_are_told_before_anything_is_read(place: Path) -> None:
    def never() -> Iterator[Document]:
        raise AssertionError("read")
        yield

    with pytest.raises(ConfigurationError, match="Unknown segmenter"):
        tokenize_corpus(never(), make_tokenizer(), segmenter="spacy")
    with pytest.raises(ModelError, match="not a fast tokenizer"):
        tokenize_corpus(never(), BertConfig())  # type: ignore[arg-type]
    assert not place.exists()


def test_no_documents_are_no_corpus(place: Path) -> None:
    with pytest.raises(EmptyCorpusError, match="no documents"):
        tokenize_corpus([], make_tokenizer(), segmenter=PUNKT)
    assert not list(place.rglob("*.arrow"))
    assert not list(place.rglob("corpora/*"))


def test_an_interrupted_build_goes_on_where_it_stopped(place: Path, written: list[str]) -> None:
    def breaking() -> Iterator[Document]:
        yield from DOCUMENTS[:12]
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        tokenize_corpus(breaking(), make_tokenizer(), segmenter=PUNKT)
    assert len(written) == 2
    assert not list(place.rglob("corpora/*"))
    corpus = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT)
    assert len(written) == 3
    assert len(corpus) == 13


def test_a_part_is_there_as_a_whole_or_not_at_all(
    place: Path, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaking:
        fingerprint = "breaking"
        left = 7

        def __call__(self, text: str) -> list[str]:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return [text]

    with pytest.raises(KeyboardInterrupt):
        tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=Breaking())
    parts = list(place.rglob("parts/*"))
    assert [path.stem for path in parts] == written
    assert len(parts) == 1
    # A process that is killed has no time to take its leavings away; whoever comes next does.
    rest = parts[0].with_name(f".{parts[0].name}.x1y2.tmp")
    rest.mkdir()
    (rest / parts[0].name).write_bytes(parts[0].read_bytes()[:100])
    parts[0].unlink()
    Breaking.left = 99
    assert len(tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=Breaking())) == 13
    assert not rest.exists()


@pytest.mark.parametrize("damage", ["cut off", "empty", "foreign"])
def test_a_damaged_part_is_made_again(written: list[str], damage: str) -> None:
    corpus = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT)
    wanted = content(corpus)
    part = next(corpus.path.parent.parent.glob(f"parts/{written[1]}.arrow"))
    data = part.read_bytes()
    part.write_bytes({"cut off": data[: len(data) // 2], "empty": b"", "foreign": b"x" * 500}[damage])
    again = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT)
    assert written[3:] == [written[1]]
    assert content(again) == wanted


def test_punkt_learns_once_from_the_same_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nltk.data.path", [])
    texts = [f"Dr. Smith saw number {number} there. He left it to Dr. Jones. They slept." for number in range(20)]
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    first = tokenize_corpus(iter(documents), make_tokenizer())
    assert [len(document.tokens) for document in first] == [3] * 20
    monkeypatch.setattr(PunktSegmenter, "learn", None)
    assert tokenize_corpus(iter(documents), make_tokenizer()).path == first.path


def test_memory_holds_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    seen = []
    write = token_cache.write_part

    def stream() -> Iterator[Document]:
        nonlocal read
        for document in DOCUMENTS:
            read += 1
            yield document

    def noting(*arguments: Any) -> int:
        seen.append(read)
        return write(*arguments)

    monkeypatch.setattr(token_cache, "write_part", noting)
    tokenize_corpus(stream(), make_tokenizer(), segmenter=PUNKT)
    assert seen == [5, 10, 13]


def test_parts_are_bounded_by_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_parts, "_MOST_CHARACTERS", 100)
    documents = [Document(str(size), "x" * size) for size in (60, 30, 10, 99, 1, 500, 7)]
    parts = [[int(document.id) for document in part] for part in token_parts.in_parts(documents)]
    assert parts == [[60, 30, 10], [99, 1], [500], [7]]


def test_groups_of_a_part_make_no_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    documents = [*DOCUMENTS, Document("blank", " "), Document("one", "Ba"), Document("kanji", "漢字。漢字。")]
    corpora = []
    for name, size in (("one", 10**9), ("several", 1), ("some", 300)):
        monkeypatch.setattr(token_parts, "_GROUP_CHARACTERS", size)
        corpora.append(tokenize_corpus(documents, byte_level(), segmenter=PUNKT, directory=tmp_path / name))
    fields = [
        [
            [getattr(document, field).tolist() for field in token_parts.SCHEMA.names[1:]]
            for document in corpus
            if document.id != "blank"
        ]
        for corpus in corpora
    ]
    assert fields[0] == fields[1] == fields[2]
    assert corpora[0][13].tokens == []


def test_tokens_across_seams_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT)
        assert "seams" not in caplog.text
        assert "Tokenized 3 of 3 parts" in caplog.text
        tokenize_corpus([Document("a", "One two. One two."), Document("b", "Ba.")], crossing(), segmenter=PUNKT)
    assert "in 1 of the documents looked at" in caplog.text


def test_progress_counts_documents_found_and_made(capsys: pytest.CaptureFixture[str]) -> None:
    tokenize_corpus(DOCUMENTS[:10], make_tokenizer(), segmenter=PUNKT)
    assert capsys.readouterr().err == ""
    tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT, progress=True, total=13)
    assert "13/13" in capsys.readouterr().err


class Slow:
    """A segmenter that takes its time."""

    fingerprint = "slow"

    def __call__(self, text: str) -> list[str]:
        time.sleep(0.01)
        return PUNKT(text)


def build(names: Any, log: Path) -> None:
    """Build the corpus in a process of its own, and note which parts it made."""
    write = token_cache.write_part

    def noting(path: Path, *arguments: Any) -> int:
        differ = write(path, *arguments)
        with log.open("a") as file:
            file.write(f"{path.stem}\n")
        return differ

    token_cache.write_part = noting
    names.put(str(tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=Slow()).path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test hands its settings on by forking")
def test_processes_that_build_the_same_corpus_share_the_work(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    names = context.Queue()
    processes = [context.Process(target=build, args=(names, tmp_path / "log")) for _ in range(3)]
    for process in processes:
        process.start()
    paths = {names.get(timeout=60) for _ in processes}
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(paths) == 1
    made = (tmp_path / "log").read_text().split()
    assert len(made) == len(set(made)) == 3
    alone = tokenize_corpus(DOCUMENTS, make_tokenizer(), segmenter=PUNKT, directory=tmp_path / "alone")
    assert content(TokenCorpus(paths.pop())) == content(alone)


def test_threads_share_the_work_too(written: list[str]) -> None:
    threads = [
        threading.Thread(target=tokenize_corpus, args=(DOCUMENTS, make_tokenizer()), kwargs={"segmenter": Slow()})
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(written) == len(set(written)) == 3
