"""Indices that were copied in part, or whose files are damaged: an error that says which, or the same as before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.cli.main import main
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, StoreError
from simlte_st.search import Index, store
from simlte_st.search.damage import ADVICE, store_errors

DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(b"\0" * path.stat().st_size),
}


@pytest.fixture
def whole(parted: Index, corpus: list[Document], documents: list[str], monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index with an approximate index, deleted and replaced documents, and vectors of sentences."""
    monkeypatch.setattr(store, "APPROXIMATE_FROM", 20)
    parted.delete(["d7"])
    parted.add([Document(f"{'d' if number == 8 else 'n'}{number}", documents[number + 12]) for number in range(8, 13)])
    parted.search(corpus[0].text, explain=True)
    return parted


def found(folder: Path, model: SentenceTransformer, query: str) -> list[Any]:
    index = Index.open(folder, model)
    hits = [index.search(query, mode=mode, explain=True) for mode in ("dense", "text", "hybrid")]
    return [[*map(repr, each)] for each in (*hits, index.link(["d2"], top_k=5))] + [index.table().to_pydict()]


def test_a_damaged_file_is_an_error_or_makes_no_difference(
    whole: Index, corpus: list[Document], model: SentenceTransformer, tmp_path: Path
) -> None:
    query, half = corpus[3].text[:100], tmp_path / "half"
    before = found(whole.folder, model, query)
    kinds: dict[tuple[str, str], Path] = {}  # the newest of each kind: older ones may be in no version that is read
    for path in sorted(whole.folder.rglob("*"), key=lambda path: path.stat().st_mtime_ns):
        if path.is_file() and path.parent.name != "_transactions":
            kinds[path.suffix, path.name if "_indices" in path.parts else path.parent.name] = path
    refused = set()
    for number, path in enumerate(kinds.values()):
        for name in ("missing", ("half", "empty", "zeros")[number % 3]):
            shutil.copytree(whole.folder, half)
            DAMAGES[name](half / path.relative_to(whole.folder))
            told, after = "", before
            try:
                after = found(half, model, query)
            except StoreError as error:
                told = str(error)
                refused.add(path.suffix)
            assert after == before, (name, path)
            assert not told or (str(half) in told and "copy it again" in told), (name, path, told)
            shutil.rmtree(half)
    assert refused >= {".lance", ".manifest", ".idx", ".json"}, refused


def test_what_was_written_last_is_missed(whole: Index, model: SentenceTransformer, tmp_path: Path) -> None:
    half = tmp_path / "half"
    shutil.copytree(whole.folder, half)
    newest = min((half / "documents.lance" / "_versions").glob("*.manifest"))  # LanceDB counts down
    newest.unlink()
    with pytest.raises(StoreError, match=r"lacks what was written last.* copy it again"):
        Index.open(half, model)


@pytest.mark.parametrize("name", ["settings.json", "punkt.json", "words.json"])
@pytest.mark.parametrize("content", ["", '{"format": 3, "mod', "[]", "{}", '{"format": 3}', "\0\0\0"])
def test_json_of_an_index_that_is_damaged(
    index: Index, corpus: list[Document], model: SentenceTransformer, name: str, content: str
) -> None:
    (index.folder / name).write_text(content)
    if (name, content) == ("words.json", "{}"):
        return  # an index that has counted nothing
    with pytest.raises(StoreError, match=name):
        Index.open(index.folder, model).search(corpus[0].text, explain=True)
    if name == "punkt.json":
        with pytest.raises(StoreError, match=name):
            index.add([Document("new", "ba bun")])


def test_sentence_ends_are_not_learned_anew_for_an_index_that_has_lost_them(index: Index) -> None:
    (index.folder / "punkt.json").unlink()
    for read in (lambda: index.add([Document("new", "ba bun")]), lambda: index.search("ba bun", explain=True)):
        with pytest.raises(StoreError, match=r"punkt\.json cannot be read"):
            read()


@pytest.mark.parametrize("name", ["words.json", "punkt.json", "sentences.lance"])
def test_a_folder_with_a_part_of_an_index_becomes_no_other_index(
    whole: Index, model: SentenceTransformer, tmp_path: Path, name: str
) -> None:
    half = tmp_path / "half"
    half.mkdir()
    source = whole.folder / name
    if source.is_dir():
        shutil.copytree(source, half / name)
    else:
        shutil.copy(source, half)
    for use in (lambda: Index.open(half, model), lambda: Index.create(half, model, exist_ok=True)):
        with pytest.raises(StoreError, match=r"no whole index .*settings\.json is missing.*copy it again"):
            use()


def test_every_command_says_so_without_a_traceback(
    corpus: list[Document], encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, empty, source = tmp_path / "named", tmp_path / "empty", tmp_path / "source.jsonl"
    Index.create(place, encoder_path).add(corpus)
    folder = str(place)
    empty.mkdir()
    source.write_text('{"id": "x", "text": "Ba bun."}\n')
    commands = {
        "search": ["search", folder, "ba bun"],
        "link": ["link", folder, "d1"],
        "serve": ["serve", folder],
        "explore": ["explore", folder, "--output", str(tmp_path / "map.html")],
        "index": ["index", str(encoder_path), str(source), "--output", folder],
    }

    def told(command: list[str]) -> str:
        assert main(command) == 1
        text = capsys.readouterr().err
        assert "Traceback" not in text
        assert "should not happen" not in text
        return " ".join(text.split())

    settings = place / "settings.json"
    right = settings.read_text()
    newer = json.dumps({**json.loads(right), "format": 99})
    for content, message in ((right[:50], "settings.json is truncated"), (newer, "newer version")):
        settings.write_text(content)
        for command in commands.values():
            assert message in told(command)
    settings.write_text(right)
    shutil.rmtree(place / "documents.lance" / "data")
    for command in commands.values():
        assert "copy it again" in told(command)
    for name in ("search", "link", "serve", "explore"):
        commands[name][1] = str(empty)
        assert told(commands[name])


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    for error in (OSError(28, "No space left on device"), RuntimeError("lance error: no room (os error 28)")):
        with pytest.raises(StoreError, match="cannot be written") as told, store_errors(tmp_path, "written"):
            raise error
        assert ADVICE not in str(told.value)


def test_an_index_that_is_there_says_how_to_add(index: Index, model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="add to the one that is there"):
        Index.create(index.folder, model)
