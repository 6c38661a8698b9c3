"""Every form a corpus comes in, on real files: sound ones, damaged ones, and what is told of them."""

from __future__ import annotations

import errno
import gzip
import json
import os
import pickle
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from reading_support import packed, texts

from simlte_st.data.documents import read_documents
from simlte_st.data.sources import parse_hub
from simlte_st.errors import DataError

# Text files


def test_a_folder_is_read_in_order_with_paths_for_ids(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a/b/c.TXT", "é.txt", "notes.xls", "LICENSE", ".hidden.txt", ".git/x.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")
    os.symlink(tmp_path, tmp_path / "loop")
    reader = read_documents(tmp_path)
    assert [(document.id, document.text) for document in reader] == [
        (name, f"text of {name}") for name in ("a/b/c.TXT", "a/z.md", "b.txt", "é.txt")
    ]
    assert reader.report.ignored == {"hidden": 2, "no suffix": 1, "linked folder": 1, ".xls": 1}
    assert reader.report.skipped == {}


def test_a_single_text_file_and_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "one.md"
    path.write_bytes(b"one\r\n\r\ntwo\rthree\n")
    (document,) = read_documents(str(path))
    assert (document.id, document.text) == ("one.md", "one\n\ntwo\nthree\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-be-bom"])
def test_byte_order_marks_are_obeyed_and_removed(tmp_path: Path, encoding: str) -> None:
    text = "naïve Ωmega"
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-bom" else text.encode(encoding)
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "a.jsonl").write_bytes(
        b"\xfe\xff" + '{"text": "naïve Ωmega"}\n'.encode("utf-16-be")
        if encoding == "utf-16-be-bom"
        else '{"text": "naïve Ωmega"}\n'.encode(encoding)
    )
    (tmp_path / "a.csv").write_bytes(
        b"\xfe\xff" + "text,n\nnaïve Ωmega,1\n".encode("utf-16-be")
        if encoding == "utf-16-be-bom"
        else "text,n\nnaïve Ωmega,1\n".encode(encoding)
    )
    for suffix in ("txt", "jsonl", "csv"):
        assert texts(tmp_path / f"a.{suffix}") == [text]


def test_a_named_encoding_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("café".encode("latin-1"))
    (tmp_path / "b.txt").write_bytes("plain".encode("latin-1"))
    assert texts(tmp_path, encoding="latin-1") == ["café", "plain"]
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["b.txt"]
    assert reader.report.skipped == {"wrong encoding": 1}
    assert reader.report.examples["wrong encoding"] == ["a.txt: not valid utf-8 at byte 3 (0xe9)"]
    assert "--encoding" in reader.report.summary()
    (tmp_path / "a.jsonl").write_bytes('{"text": "Ωmega"}\n{"text": "b"}\n'.encode("utf-16-le"))
    assert texts(tmp_path / "a.jsonl", encoding="utf-16-le") == ["Ωmega", "b"]
    (tmp_path / "u.txt").write_bytes("Ωmega".encode("utf-16-le"))
    assert texts(tmp_path / "u.txt", encoding="utf-16-le") == ["Ωmega"]


def test_binary_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(50))
    (tmp_path / "b.txt").write_bytes(bytes(range(1, 32)) * 10)
    (tmp_path / "c.txt").write_bytes(bytes(range(1, 30)) * 3 + b"\xff\xc0" * 5)
    (tmp_path / "d.txt").write_text("A form feed\f and \x1b[1mcolours\x1b[0m are text.")
    (tmp_path / "e.txt").write_text("")
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["d.txt"]
    assert reader.report.skipped == {"binary": 3, "empty": 1}
    assert reader.report.examples["binary"][0].startswith("a.txt: NUL byte at 8")


def test_unreadable_and_huge_files_do_not_end_the_run(tmp_path: Path) -> None:
    os.symlink(tmp_path / "gone", tmp_path / "broken.txt")
    (tmp_path / "good.txt").write_text("good")
    with (tmp_path / "huge.txt").open("wb") as file:
        file.truncate(10**12)  # sparse: reading it would take all memory
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["good.txt"]
    assert reader.report.skipped == {"unreadable": 1, "too long": 1}


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_called_a_table_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="is a pipe or a device"):
        read_documents(tmp_path / "a.jsonl")


def test_links_in_a_circle_and_folders_called_like_files(tmp_path: Path) -> None:
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
        with pytest.raises(DataError, match="no file or folder"):
            texts(tmp_path / name)


def test_what_may_not_be_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root may read everything, the system's answer is made up."""
    for name in ("good.txt", "secret.txt", "closed/a.txt", "secret.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"text": "a"}')

    def refusing(call: Any) -> Any:
        def answer(path: Any, *args: Any, **options: Any) -> Any:
            if any(part in str(path) for part in ("secret", "closed")):
                raise PermissionError(errno.EACCES, "Permission denied")
            return call(path, *args, **options)

        return answer

    monkeypatch.setattr(Path, "read_bytes", refusing(Path.read_bytes))
    monkeypatch.setattr(Path, "open", refusing(Path.open))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["good.txt"]
    assert reader.report.skipped == {"unreadable": 2}
    assert reader.report.examples["unreadable"] == ["closed/: Permission denied", "secret.txt: Permission denied"]
    with pytest.raises(DataError, match=r"secret\.jsonl is truncated, corrupt or unreadable \(.*Permission denied"):
        texts(tmp_path / "secret.jsonl")


class Runs:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("kind", ["pickle", "zip", "tar.gz"])
def test_pickles_and_archives_are_no_documents(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "two" / "down"
    folder.mkdir(parents=True)
    ran, path = tmp_path / "ran", folder / f"c.{kind}"
    (folder / "in.txt").write_text("text,n\na,1\n")
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Runs(ran)))
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(folder / "in.txt", "../../out.txt")
    else:
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder / "in.txt", "../../out.txt")
    with pytest.raises(DataError, match="unknown kind"):
        texts(path)
    (folder / "in.txt").unlink()
    with pytest.raises(DataError, match=rf"ignored 1: 1 \.{kind.split('.')[-1]}"):
        texts(folder)
    for suffix in (".txt", ".jsonl", ".csv", ".tsv", ".parquet", ".jsonl.gz", ".csv.gz", ".jsonl.zst"):
        renamed = folder / f"renamed{suffix}"
        shutil.copy(path, renamed)
        with pytest.raises(DataError):
            texts(renamed)
    assert [place.name for place in tmp_path.iterdir()] == ["two"], "nothing was run or unpacked"
    assert [place.name for place in folder.parent.iterdir()] == ["down"]


def test_pipes_devices_and_links_that_lead_out_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "good.txt").write_text("good")
    (tmp_path / "secret.txt").write_text("of somebody else")
    os.symlink(tmp_path / "secret.txt", folder / "out.txt")
    os.symlink(folder / "good.txt", folder / "in.txt")
    os.symlink("/dev/zero", folder / "device.txt")
    os.mkfifo(folder / "pipe.txt")
    reader = read_documents(folder)
    assert [document.id for document in reader] == ["good.txt", "in.txt"]
    assert reader.report.skipped == {"pipe, socket or device": 1}
    assert reader.report.ignored == {"link out of the folder": 2}
    assert texts(folder / "out.txt") == ["of somebody else"], "named by the user, it is read"


def test_models_in_a_folder_are_no_documents(tmp_path: Path) -> None:
    for name in ("a.txt", "model/README.md", "model/vocab.txt", "model.run/base/vocab.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for folder in ("model", "model.run/base"):
        (tmp_path / folder / "modules.json").write_text("[]")
    reader = read_documents(tmp_path)
    assert [document.id for document in reader] == ["a.txt"]
    assert reader.report.ignored == {"model folder": 2}


def test_many_kinds_of_files_make_no_long_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good")
    for number in range(3000):
        (tmp_path / f"a.kind{number}").touch()
    (tmp_path / "b.kind7").touch()
    reader = read_documents(tmp_path)
    assert len(list(reader)) == 1
    summary = reader.report.summary()
    assert "ignored 3,001:\n  2 .kind7\n" in summary
    assert "2,992 of 2,992 other kinds" in summary
    assert len(summary) < 400
    assert len(reader.report.ignored) == 3000


# JSON lines


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".JSONL.GZ"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": f"d{number}", "text": f"tëxt {number}"} for number in range(300)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = tmp_path / f"c{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.lower().endswith("gz") else data)
    if suffix.endswith(".zst"):
        packed(path, data)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [(row["id"], row["text"]) for row in rows]
    assert (reader.report.text_column, reader.report.id_column) == ("text", "id")


def test_bad_json_lines_are_counted_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"text": "one"}\n'
        b'{"text": "cut\n'
        b'"a bare string"\n'
        b"[1]\n"
        b"\n"
        b'{"text": "caf\xe9"}\n'
        b'{"other": 1}\n' + b"[" * 200_000 + b"\n" + b'{"text": ' + b"9" * 5000 + b"}\n"
        b'{"text": "two"}'
    )
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "one"), ("9", "two")]
    assert reader.report.skipped == {
        "malformed JSON": 3,
        "not an object": 2,
        "wrong encoding": 1,
        "missing column": 1,
    }
    assert reader.report.ignored == {"blank line": 1}
    assert reader.report.examples["malformed JSON"][0].startswith("line 2: ")
    assert reader.report.examples["not an object"] == ["line 3: a JSON str", "line 4: a JSON list"]


def test_a_line_beyond_all_bounds_is_passed_over_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "' + "x" * 3_000_000 + '"}\n{"text": "ok"}\n')
    reader = read_documents(path, max_characters=10)
    assert [(document.id, document.text) for document in reader] == [("1", "ok")]
    assert reader.report.skipped == {"too long": 1}


# The hub

FEATURES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]), "n": datasets.Value("int64")}
)
ROWS = {"text": ["a", "b", "c"], "label": [1, 0, -1], "n": [1, 2, 3]}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("hub:imdb", ("imdb", None, "train")),
        ("hub:owner/name:test", ("owner/name", None, "test")),
        ("hub:owner/name:validation_matched", ("owner/name", None, "validation_matched")),
        ("hub:owner/name:en", ("owner/name", "en", "train")),
        ("hub:owner/name:testament", ("owner/name", "testament", "train")),
        ("hub:owner/name:train[:10%]", ("owner/name", None, "train[:10%]")),
        ("hub:owner/name:en:dev[5:10]", ("owner/name", "en", "dev[5:10]")),
        ("hub:owner/name::extra", ("owner/name", None, "extra")),
        ("hub:owner/name:test:", ("owner/name", "test", "train")),
    ],
)
def test_hub_names(source: str, expected: tuple[str, str | None, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_hub(source) == expected
    calls: list[Any] = []

    def load(*args: Any, **settings: Any) -> Any:
        calls.append((args, settings))
        return datasets.Dataset.from_dict(ROWS, features=FEATURES).to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(
        huggingface_hub.HfApi, "dataset_info", lambda self, name, timeout: calls.append((name, timeout))
    )
    reader = read_documents(source)
    assert calls == []
    assert [document.text for document in reader] == [document.text for document in reader] == ["a", "b", "c"]
    name, config, split = expected
    assert calls == [(name, 5), ((name, config), {"split": split, "streaming": True})]
    assert reader.report.source == source


def test_hub_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("hub:", "hub:a:b:c:d"):
        with pytest.raises(DataError, match="hub:NAME"):
            read_documents(source)
    # The tests run offline: it is told before anything is waited for.
    with pytest.raises(DataError, match=r"owner/name on the Hub cannot be reached \(OfflineModeIsEnabled: "):
        texts("hub:owner/name")
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *a, **k: None)

    def missing(*args: Any, **settings: Any) -> Any:
        raise datasets.exceptions.DatasetNotFoundError("doesn't exist on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", missing)
    with pytest.raises(DataError, match=r"owner/name .*\(configuration default, split 'train'\).*doesn't exist"):
        texts("hub:owner/name")

    def rows() -> Any:
        yield {"text": "a"}
        raise ConnectionError("gone")

    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: datasets.IterableDataset.from_generator(rows))
    with pytest.raises(DataError, match=r"hub:owner/name broke off \(.*gone.*\); 1 document had been read"):
        texts("hub:owner/name")
