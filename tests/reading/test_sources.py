"""Sources: files and folders, and lists of these."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from reading_support import texts, texts_and_skipped

from simlte_st.errors import DataError
from simlte_st.reading.documents import Document, read_documents


def test_folder_is_read_in_order_with_paths_as_ids(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a/b/c.TXT", "é.txt", "notes.xls", "LICENSE", ".hidden.txt", ".git/x.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")
    os.symlink(tmp_path, tmp_path / "loop")
    reader = read_documents(tmp_path, metadata=True, label_column="folder")
    files = {"a/b/c.TXT": ("a/b", "c"), "a/z.md": ("a", "z"), "b.txt": (None, "b"), "é.txt": (None, "é")}
    assert list(reader) == [
        Document(name, f"text of {name}", folder, metadata={"folder": folder, "file": file})
        for name, (folder, file) in files.items()
    ]
    with pytest.raises(DataError, match="no column 'kind'"):
        list(read_documents(tmp_path, label_column="kind"))
    assert reader.report.ignored == {"hidden": 2, "no suffix": 1, "linked folder": 1, ".xls": 1}
    assert reader.report.skipped == {}


def test_unreadable_and_huge_files_are_skipped(tmp_path: Path) -> None:
    os.symlink(tmp_path / "gone", tmp_path / "broken.txt")
    (tmp_path / "good.txt").write_text("good")
    with (tmp_path / "huge.txt").open("wb") as file:
        file.truncate(10**12)  # sparse: reading it would take all memory
    assert texts_and_skipped(tmp_path) == (["good"], {"unreadable": 1, "too long": 1})


def test_pipe_named_like_a_table_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="pipe or a device"):
        read_documents(tmp_path / "a.jsonl")


def test_circular_links_and_folders_named_like_files(tmp_path: Path) -> None:
    os.symlink(tmp_path / "self.txt", tmp_path / "self.txt")
    os.symlink(tmp_path / "two.md", tmp_path / "one.txt")
    os.symlink(tmp_path / "one.txt", tmp_path / "two.md")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "folder.txt" / "in.txt").write_text("read")
    os.symlink("..", tmp_path / "folder.txt" / "up")
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["folder.txt/in.txt"]
    assert reader.report.skipped == {"unreadable": 3}
    assert reader.report.ignored == {"linked folder": 1, "no suffix": 1}
    for name in ("self.txt", "one.txt"):
        with pytest.raises(DataError, match="no file"):
            texts(tmp_path / name)


def test_pipes_and_devices_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "good.txt").write_text("good")
    os.symlink(folder / "good.txt", folder / "in.txt")
    os.symlink("/dev/zero", folder / "device.txt")
    os.mkfifo(folder / "pipe.txt")
    assert texts_and_skipped(folder) == (["good", "good"], {"pipe, socket or device": 2})


def test_model_folders_are_ignored(tmp_path: Path) -> None:
    for name in ("a.txt", "model/README.md", "model/vocab.txt", "model.run/base/vocab.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for folder in ("model", "model.run/base"):
        (tmp_path / folder / "modules.json").write_text("[]")
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["a.txt"]
    assert reader.report.ignored == {"model folder": 2}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders, each with a file of the same name, and two tables, all in the current folder."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(f"a of {folder}")
    (tmp_path / "b.csv").write_text("text\nfirst\nsecond\n")
    (tmp_path / "c.jsonl").write_text('{"id": "x", "text": "third"}\n{"id": "y"}\n')
    (tmp_path / "d.jsonl").write_text('{"id": "x", "text": "fourth"}\n{"id": "x", "text": "fifth"}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ids(*sources: str) -> list[str]:
    return [document.id for document in read_documents(list(sources))]


def test_generated_ids_name_the_source(here: Path) -> None:
    assert ids("one", "b.csv") == ["one/a.txt", "b.csv:0", "b.csv:1"]
    assert ids("one", "two") == ["one/a.txt", "two/a.txt"]
    assert ids("one/a.txt", "two/a.txt", "b.csv")[:3] == ["one/a.txt", "two/a.txt", "b.csv:0"], "whatever their order"
    assert ids("two/a.txt", "one/a.txt") == ["two/a.txt", "one/a.txt"]
    assert ids(str(here / "one"), "two/") == ["one/a.txt", "two/a.txt"], "but not of where it lies"
    assert ids("one/a.txt", "b.csv")[0] == "a.txt"
    assert ids("one") == ["a.txt"], "one source needs no name"
    assert ids("b.csv", "b.csv") == ["b.csv:0", "b.csv:1", "b.csv:0#2", "b.csv:1#2"]


@pytest.mark.parametrize("items", [["b.csv", "nothing.csv"], [Path("one"), "what is this"]])
def test_missing_files_in_a_list_are_an_error(here: Path, items: list[str]) -> None:
    with pytest.raises(DataError, match=f"no file or folder '{items[1]}'"):
        read_documents(items)


@pytest.mark.parametrize("items", [["nothing.csv", "neither.csv"], ["A text that stands alone."], ["a text", "one"]])
def test_texts_that_look_like_paths_stay_texts(here: Path, items: list[str]) -> None:
    assert texts(items) == items


def test_list_of_paths_is_read_as_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("one")
    (tmp_path / "b.jsonl").write_text('{"id": "a.txt", "text": "two"}\n')
    (tmp_path / "c.csv").write_text("body\nthree\n")
    places = [tmp_path / name for name in ("folder", "b.jsonl", "c.csv")]
    for source in (places, tuple(map(str, places))):
        reader = read_documents(source)
        assert [item.text for item in reader] == [item.text for item in reader] == ["one", "two", "three"]
        assert [item.id for item in reader] == ["folder/a.txt", "a.txt", "c.csv:0"]
    assert texts(["b.jsonl", "c.csv"]) == ["b.jsonl", "c.csv"], "texts, where no files are called so"
