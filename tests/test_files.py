from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from simlte_st.data import read_documents
from simlte_st.errors import ConfigurationError, DamagedFileError, DiskFullError
from simlte_st.files import (
    atomic_path,
    changes,
    check_apart,
    check_free,
    check_place,
    hold,
    read_json,
    valid_unicode,
    write_json,
)
from simlte_st.files import home as home_folder


def test_files_are_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = Path("~", "file.txt")
    with atomic_path(target) as path:
        path.write_text("new")
        assert not target.exists()
        assert path.is_absolute(), "or Arrow would expand a leading ~"
    assert target.read_text() == "new"
    with pytest.raises(RuntimeError), atomic_path(target) as path:  # noqa: PT012
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "new"
    assert [entry.name for entry in target.parent.iterdir()] == ["file.txt"]


def test_several_files_are_written_together(tmp_path: Path) -> None:
    page, table = tmp_path / "page.html", tmp_path / "page.parquet"
    for text in ("old", "new"):
        with atomic_path(page, table) as path:
            path.write_text(text)
            path.with_name(table.name).write_text(text)
    with pytest.raises(RuntimeError), atomic_path(page, table) as path:  # noqa: PT012
        path.with_name(table.name).write_text("half")
        raise RuntimeError
    assert {page.read_text(), table.read_text()} == {"new"}
    assert len(os.listdir(tmp_path)) == 2


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    for name in ("a", "b"):
        (tmp_path / "disk" / f"old-{name}").write_text("old")
        (tmp_path / name).symlink_to(tmp_path / "disk" / f"old-{name}")
    (tmp_path / "c").symlink_to(tmp_path / "disk" / "new")
    with atomic_path(tmp_path / "a", tmp_path / "b") as path:
        path.write_text("a")
        path.with_name("b").write_text("b")
    write_json(tmp_path / "c", 1)
    assert [path.read_text() for path in sorted((tmp_path / "disk").iterdir())] == ["1\n", "a", "b"]
    assert all((tmp_path / name).is_symlink() for name in "abc")


def test_directory_replaces_a_non_empty_directory(tmp_path: Path) -> None:
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
def test_old_model_is_restored_if_a_rename_fails(
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


def test_weights_have_the_permissions_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    with atomic_path(tmp_path / "model") as folder:
        folder.mkdir()
        save_file({"weight": torch.zeros(1)}, folder / "model.safetensors")
    assert (tmp_path / "model" / "model.safetensors").stat().st_mode == (tmp_path / "a.json").stat().st_mode


def test_only_models_are_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for overwrite in (False, True):
        check_free(target, overwrite)
    target.mkdir()
    check_free(target, overwrite=False)
    (target / "thesis.txt").write_text("years")
    for overwrite, message in ((False, "already exists"), (True, r"modules\.json")):
        with pytest.raises(ConfigurationError, match=message):
            check_free(target, overwrite)
    with pytest.raises(ConfigurationError, match=r"modules\.json"):
        check_free(target / "thesis.txt", overwrite=True)
    (target / "modules.json").write_text("[]")
    check_free(target, overwrite=True)


def test_unwritable_places_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_place(tmp_path / "new" / "deep" / "output")
    for name in ("", ".", "..", "/", "folder/.."):
        with pytest.raises(ConfigurationError, match="not name a file"):
            check_place(Path(name))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="not a writable folder"):
        check_place(tmp_path / "file" / "output")
    with monkeypatch.context() as patch:
        for number, kind in ((errno.EROFS, ConfigurationError), (errno.ENOSPC, DiskFullError)):
            error = OSError(number, os.strerror(number))
            patch.setattr(tempfile, "mkdtemp", Mock(side_effect=error))
            with pytest.raises(kind, match="output cannot be written"):
                check_place(tmp_path / "output")


def test_output_must_not_contain_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "all" / "texts"
    source.mkdir(parents=True)
    (source / "a.txt").write_text("text\n")
    monkeypatch.chdir(source)
    (tmp_path / "link").symlink_to(tmp_path / "all")
    for output in (source, source.parent, Path("."), Path(".."), tmp_path / "link"):
        for given in (source, ".", ["a text", source], read_documents(source), read_documents([source / "a.txt"])):
            with pytest.raises(ConfigurationError, match="would overwrite the input documents"):
                check_apart(given, output)
    for output in (source / "model", tmp_path / "all" / "texts2", Path("../model")):
        check_apart(source, output)
    check_apart(["a text"], source)
    check_apart("hub:name", source)


def test_work_folder_allows_one_process(tmp_path: Path) -> None:
    lock = hold(tmp_path / "m.run")
    with pytest.raises(ConfigurationError, match=r"is already working in .*m\.run"):
        hold(tmp_path / "m.run")
    lock.release()
    code = f"import os, signal; from simlte_st.files import hold; from pathlib import Path; " \
           f"lock = hold(Path({str(tmp_path / 'm.run')!r})); os.kill(os.getpid(), signal.SIGKILL)"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    hold(tmp_path / "m.run").release()


@pytest.mark.skipif(os.name == "nt", reason="needs flock")
def test_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    with pytest.raises(ConfigurationError, match=r"m\.run is on a file system without locks"):
        hold(tmp_path / "m.run")


@pytest.mark.parametrize("content", [b"", b'{"a": 1, "b', b"\0" * 20, b'{"a": "\xff"}'])
def test_truncated_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.json is truncated or damaged"):
        read_json(tmp_path / "a.json")


def test_home_variable_sets_the_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home_folder() == home
    monkeypatch.setenv("SIMLTE_ST_HOME", "~/somewhere")
    assert home_folder() == Path.home() / "somewhere"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_full_disk_gives_a_clear_error(error: Exception, tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    said = rf"^{re.escape(str(target))} cannot be written: the disk is full\. "
    with pytest.raises(DiskFullError, match=said), atomic_path(target) as path:  # noqa: PT012
        path.mkdir()
        raise error
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    assert (target / "old").read_text() == "old"


def test_json_replaces_undecodable_characters(tmp_path: Path) -> None:
    latin = os.fsdecode(b"caf\xe9")
    write_json(tmp_path / "a.json", {latin: [latin, "\ud83d\ude00", 1.5, float("nan")]})
    assert read_json(tmp_path / "a.json") == {"caf\ufffd": ["caf\ufffd", "\U0001f600", 1.5, None]}
    assert not changes(read_json(tmp_path / "a.json"), {latin: (latin, "\ud83d\ude00", 1.5, float("inf"))})
    assert changes({"a": 1}, {"a": 2}) == {"a": "a: was 1, is 2"}
    assert changes({}, {"b": True}) == {"b": "b: was not given, is True"}


def test_import_without_a_home_directory() -> None:
    code = "import os, pwd; os.environ.clear(); pwd.getpwuid = {}.__getitem__; import simlte_st.files as files, nltk; "
    asked = [sys.executable, "-c", f"{code}print(files.home())"]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout.startswith("/nonexistent")


def test_bytes_kept_as_surrogates_are_read_as_utf8() -> None:
    texts = ["Größe 日本語".encode().decode("ascii", "surrogateescape"), "\ud83d\ude00", "a\ud800b", "a\udcffb"]
    assert [*map(valid_unicode, texts)] == ["Größe 日本語", "😀", "a\ufffdb", "a\ufffdb"]
