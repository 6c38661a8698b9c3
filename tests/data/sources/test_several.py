"""Several sources: ids that tell them apart, and lists that are neither all paths nor all texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_support import texts

from simlte_st.data.documents import read_documents
from simlte_st.errors import DataError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders with a file of the same name each, and two tables; the current folder is around them."""
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


def test_made_ids_tell_the_source(here: Path) -> None:
    assert ids("one", "b.csv") == ["one/a.txt", "b.csv:0", "b.csv:1"]
    assert ids("one", "two") == ["one/a.txt", "two/a.txt"]
    assert ids("one/a.txt", "two/a.txt") == ["one/a.txt", "two/a.txt"], "more of the path where the names are the same"
    assert ids(str(here / "one"), "two/") == ["one/a.txt", "two/a.txt"], "but not of where it lies"
    assert ids("one/a.txt", "b.csv")[0] == "a.txt"
    assert ids("one") == ["a.txt"], "one source needs no name"
    assert ids("b.csv", "b.csv") == ["b.csv:0", "b.csv:1", "b.csv:0#2", "b.csv:1#2"]


def test_given_ids_stay_unless_they_are_taken(here: Path) -> None:
    reader = read_documents(["c.jsonl", "d.jsonl"])
    assert [document.id for document in reader] == ["x", "d.jsonl:x", "d.jsonl:x#2"]
    assert reader.report.repaired == {"duplicate id": 2}
    assert reader.report.examples["duplicate id"][0] == "d.jsonl, line 1: 'x' became 'd.jsonl:x'"


def test_the_report_tells_the_source(here: Path) -> None:
    (here / "one" / "empty.txt").write_text("")
    reader = read_documents(["c.jsonl", "one"])
    list(reader)
    assert reader.report.examples == {"missing column": ["c.jsonl, line 2: no 'text'"], "empty": ["one/empty.txt"]}


@pytest.mark.parametrize(
    "items",
    [
        ["b.csv", "nothing.csv"],
        ["nothing", "one"],
        [Path("b.csv"), "nothing.csv"],
        ["b.csv", "c.jsonl", "nothing with spaces.csv"],
        ["b.csv", "c.jsonl", "what is this"],
    ],
)
def test_names_of_files_that_are_not_there_are_not_learned(here: Path, items: list[str]) -> None:
    missing = next(item for item in items if not Path(item).exists())
    with pytest.raises(DataError, match=rf"There is no file or folder '{missing}' \(item .*are these paths\?"):
        read_documents(items)


@pytest.mark.parametrize(
    "items",
    [
        ["nothing.csv", "neither.csv"],
        ["one", "a text of more words", "and another one"],
        ["A text that stands alone."],
        ["one", "word " * 100, "word " * 100],
    ],
)
def test_texts_stay_texts(here: Path, items: list[str]) -> None:
    assert texts(items) == items


def test_a_list_of_paths_is_no_list_of_texts(tmp_path: Path) -> None:
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
    with pytest.raises(DataError, match="There is no file"):
        read_documents([*places, tmp_path / "nothing.csv"])
