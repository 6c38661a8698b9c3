from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import platformdirs
import pytest
from safetensors import SafetensorError

from simlte_st import files
from simlte_st.data import read_documents
from simlte_st.errors import ConfigurationError, DamagedFileError, DiskFullError
from simlte_st.files import (
    atomic_path,
    changes,
    check_apart,
    check_free,
    check_place,
    hold,
    nearest_place,
    raise_if_full,
    read_json,
    write_json,
)
from simlte_st.files import home as home_folder
from simlte_st.models.names import models_folder


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    with atomic_path(target) as path:
        path.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    with pytest.raises(RuntimeError), atomic_path(target) as path:  # noqa: PT012
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "new"
    assert [entry.name for entry in target.parent.iterdir()] == ["file.txt"]


def test_a_directory_replaces_a_full_directory(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    with atomic_path(target) as path:
        path.mkdir()
        (path / "new").write_text("new")
    assert [entry.name for entry in target.iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def write_model(path: Path, content: str) -> None:
    path.mkdir()
    (path / "modules.json").write_text(content)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_the_old_model_is_back_after_an_error_between_the_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    target, rename = tmp_path / "model", os.replace
    write_model(target, "old")

    def broken(source: Any, destination: Any) -> None:
        if Path(source).name == "model" and Path(destination) == target:
            raise error
        rename(source, destination)

    monkeypatch.setattr(os, "replace", lambda *paths: rename(*paths) if "before" in str(paths[0]) else broken(*paths))
    with pytest.raises(error), atomic_path(target) as path:
        write_model(path, "new")
    assert (target / "modules.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["model"]


def test_nothing_is_lost_when_another_process_writes_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, rename = tmp_path / "model", os.replace
    write_model(target, "old")

    def overtaken(source: Any, destination: Any) -> None:
        rename(source, destination)
        if Path(source) == target:
            write_model(target, "another process's")

    monkeypatch.setattr(os, "replace", overtaken)
    with pytest.raises(ConfigurationError, match="another process"), atomic_path(target) as path:
        write_model(path, "new")
    found = {file.read_text() for file in tmp_path.rglob("modules.json")}
    assert found == {"old", "new", "another process's"}
    assert (target / "modules.json").read_text() == "another process's"


def test_what_a_killed_process_left_is_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    target = tmp_path / "model"
    write_model(target, "old")
    code = f"""
import os, signal
from pathlib import Path
from simlte_st.files import atomic_path
rename = os.replace
def killed(source, destination):
    if Path(source).parent != Path({str(tmp_path)!r}):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, destination)
os.replace = killed
with atomic_path({str(target)!r}) as path:
    path.mkdir()
    (path / "modules.json").write_text("new")
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    assert not target.exists(), "it was killed between the two renames"
    with pytest.raises(ConfigurationError, match="exists already"):
        check_free(target, overwrite=False)
    assert "old version" in caplog.text
    assert (target / "modules.json").read_text() == "old"
    [left] = tmp_path.glob(".model.*.tmp")
    assert (left / "model" / "modules.json").read_text() == "new"
    caplog.clear()
    with atomic_path(target) as path:
        assert str(left) in caplog.text
        write_model(path, "newest")
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "interrupted"])
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_files_that_belong_together_are_all_old_or_all_new(tmp_path: Path, moment: int, killed: bool) -> None:
    first, second = targets = [tmp_path / "page.html", tmp_path / "page.parquet"]
    for path in targets:
        path.write_text("old")
    stop = "os.kill(os.getpid(), signal.SIGKILL)" if killed else "raise KeyboardInterrupt"
    code = f"""
import os, signal
from pathlib import Path
from simlte_st import files
rename, renamed = os.replace, []
def broken_off(*paths):
    if len(renamed) == {moment}:
        {stop}
    renamed.append(rename(*paths))
os.replace = broken_off
first, second = Path({str(first)!r}), Path({str(second)!r})
with files.atomic_path(first, second) as path:
    path.write_text("new")
    path.with_name(second.name).write_text("new")
    if {moment} == 2:
        {stop}
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode != 0
    files.restore(first)
    assert {path.read_text() for path in targets} == {"old" if moment == 2 else "new"}
    with atomic_path(first, second) as path:
        for each in targets:
            path.with_name(each.name).write_text("newest")
    assert {path.read_text() for path in targets} == {"newest"}
    assert sorted(os.listdir(tmp_path)) == ["page.html", "page.parquet"]


def test_what_another_process_is_writing_is_not_touched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with atomic_path(tmp_path / "a.txt") as first:
        first.write_text("first")
        with atomic_path(tmp_path / "a.txt") as second:
            second.write_text("second")
        assert not caplog.records
    assert (tmp_path / "a.txt").read_text() == "first"


def test_only_models_are_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for overwrite in (False, True):
        check_free(target, overwrite)
    target.mkdir()
    check_free(target, overwrite=False)
    (target / "thesis.txt").write_text("years")
    for overwrite, message in ((False, "exists already"), (True, r"modules\.json")):
        with pytest.raises(ConfigurationError, match=message):
            check_free(target, overwrite)
    with pytest.raises(ConfigurationError, match=r"modules\.json"):
        check_free(target / "thesis.txt", overwrite=True)
    (target / "modules.json").write_text("[]")
    check_free(target, overwrite=True)


def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_place(tmp_path / "new" / "deep" / "output")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="not a folder"):
        check_place(tmp_path / "file" / "output")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(ConfigurationError, match="written in"):
            check_place(tmp_path / "output")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(ConfigurationError, match="is full"):
        check_free(tmp_path / "output", overwrite=False)


def test_an_output_does_not_hold_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "all" / "texts"
    source.mkdir(parents=True)
    monkeypatch.chdir(source)
    (tmp_path / "link").symlink_to(tmp_path / "all")
    for output in (source, source.parent, Path("."), Path(".."), tmp_path / "link"):
        for given in (source, str(source), "."):
            with pytest.raises(ConfigurationError, match="holds the documents"):
                check_apart(given, output)
    for output in (source / "model", tmp_path / "all" / "texts2", Path("../model")):
        check_apart(source, output)
    check_apart(["a text"], source)
    with pytest.raises(ConfigurationError, match="holds the documents"):
        check_apart(["a text", source], source)
    check_apart("hub:name", source)


def test_an_output_does_not_hold_what_a_reader_reads(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    paths = [tmp_path / "texts", tmp_path / "texts" / "a.txt", tmp_path / "b.csv", tmp_path / "c.jsonl"]
    for path in paths[1:]:
        path.write_text("text\n")
    for given in (*paths, [*paths[:2]], [*map(str, paths)], [paths[2], paths[3]]):
        reader = read_documents(given)
        assert [*reader.places] == [Path(each) for each in (given if isinstance(given, list) else [given])]
        for place in reader.places:
            for output in (place, place.parent):
                with pytest.raises(ConfigurationError, match="holds the documents"):
                    check_apart(reader, output)
        check_apart(reader, tmp_path / "other")
    check_apart(read_documents(["a text", "another"]), paths[0])


def test_what_is_read_as_a_document_does_not_stand_among_them(tmp_path: Path) -> None:
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    for output in (tmp_path / "texts" / "pile.html", tmp_path / "texts" / "deep" / "pile.html"):
        check_apart(tmp_path / "texts", output)
        for given in (tmp_path / "texts", read_documents(tmp_path / "texts"), ["a text", str(tmp_path / "texts")]):
            with pytest.raises(ConfigurationError, match="of the documents"):
                check_apart(given, output, is_document=True)
    check_apart(tmp_path / "texts", tmp_path / "pile.html", is_document=True)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "folder/.."])
def test_what_is_no_name_is_no_place_to_write(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="not name a file"):
        check_place(Path(name))


def test_a_work_folder_has_one_process(tmp_path: Path) -> None:
    lock = hold(tmp_path / "m.run")
    with pytest.raises(ConfigurationError, match=r"This process is already .*m\.run"):
        hold(tmp_path / "m.run")
    for number, told in (("123", r" \(number 123\)"), ("", "")):  # as another one writes it
        (tmp_path / "m.run" / "process").write_text(number)
        with pytest.raises(ConfigurationError, match=rf"Another process{told} is .*m\.run"):
            hold(tmp_path / "m.run")
    lock.release()
    code = f"import os, signal; from simlte_st.files import hold; from pathlib import Path; " \
           f"lock = hold(Path({str(tmp_path / 'm.run')!r})); os.kill(os.getpid(), signal.SIGKILL)"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    hold(tmp_path / "m.run").release()


@pytest.mark.parametrize("content", [b"", b'{"a": 1, "b', b"\0" * 20, b'{"a": "\xff"}'])
def test_json_that_is_cut_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.json is truncated or damaged"):
        read_json(tmp_path / "a.json")


def test_json_round_trip_keeps_unicode(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "Größe", "values": [1, 2.5, None]})
    assert read_json(tmp_path / "a.json") == {"name": "Größe", "values": [1, 2.5, None]}
    assert "Größe" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_json_has_no_numbers_that_are_none(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": float("nan"), "b": [1.5, (float("inf"), -float("inf"))], "c": {"d": 1}})
    assert read_json(tmp_path / "a.json") == {"a": None, "b": [1.5, [None, None]], "c": {"d": 1}}
    assert "NaN" not in (tmp_path / "a.json").read_text()


def test_the_variable_decides(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home_folder() == home
    assert models_folder() == home / "models"
    monkeypatch.setenv("SIMLTE_ST_HOME", "~/somewhere")
    assert home_folder() == Path.home() / "somewhere"


def test_without_it_the_platforms_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("SIMLTE_ST_HOME") if value is None else monkeypatch.setenv("SIMLTE_ST_HOME", value)
        assert home_folder() == platformdirs.user_cache_path("simlte_st", appauthor=False)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_full_disk_is_a_sentence_whoever_met_it(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    free = shutil.disk_usage(tmp_path)._replace(free=4096)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: free)
    said = rf"^{re.escape(str(target))} could not be written: the disk is full\. "
    with pytest.raises(DiskFullError, match=said), atomic_path(target) as path:  # noqa: PT012
        path.mkdir()
        raise error
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    assert (target / "old").read_text() == "old"
    chained = ValueError("while saving")
    chained.__context__ = error
    with pytest.raises(DiskFullError):
        raise_if_full(chained, target)


def test_another_error_is_no_full_disk(tmp_path: Path) -> None:
    for error in (
        OSError(errno.EACCES, "Permission denied"),
        RuntimeError("inline_container: no archive"),
        KeyError(1),
    ):
        raise_if_full(error, tmp_path / "not" / "there")


def test_json_holds_what_names_of_files_are_read_with(tmp_path: Path) -> None:
    latin = os.fsdecode(b"caf\xe9")
    write_json(tmp_path / "a.json", {latin: [latin, "\ud83d\ude00", 1.5]})
    assert read_json(tmp_path / "a.json") == {"caf\ufffd": ["caf\ufffd", "\U0001f600", 1.5]}
    assert not changes(read_json(tmp_path / "a.json"), {latin: (latin, "\ud83d\ude00", 1.5)})
    assert changes({"a": 1}, {"a": 2}) == {"a": "a: was 1, is 2"}
    assert changes({"a": True}, {"a": False}) == {"a": "a: was True, is False"}
    assert changes({}, {"a": False, "b": True}) == {"b": "b: was not given, is True"}, "a switch that there was not yet"


def test_a_name_that_is_no_utf8_is_no_place_to_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="UTF-8"):
        check_place(tmp_path / os.fsdecode(b"caf\xe9"))


def test_the_nearest_place_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("")
    (tmp_path / "Papers").mkdir()
    assert "'papers.csv'" in nearest_place(tmp_path / "paper.csv")
    assert "'Papers'" in nearest_place(tmp_path / "paper.csv", Path.is_dir)
    assert nearest_place(tmp_path / "quite-another") == ""
    assert nearest_place(tmp_path / "not" / "there") == ""
