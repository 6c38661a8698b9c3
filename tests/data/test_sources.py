"""Every form a corpus comes in, on real files: sound ones, damaged ones, and what is told of them."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simlte_st.data.documents import read_documents
from simlte_st.data.sources import parse_hub
from simlte_st.errors import DataError, EmptyCorpusError, MissingExtraError

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
zstd = importlib.import_module(ZSTD)


def texts(source: Any, **settings: Any) -> list[str]:
    return [document.text for document in read_documents(source, **settings)]


def packed(path: Path, data: bytes) -> Path:
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
    path.write_bytes(data)
    return path


# Text files


def test_a_folder_is_read_in_order_with_paths_for_ids(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a/b/c.TXT", "é.txt", "notes.pdf", "LICENSE", ".hidden.txt", ".git/x.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")
    os.symlink(tmp_path, tmp_path / "loop")
    reader = read_documents(tmp_path)
    assert [(document.id, document.text) for document in reader] == [
        (name, f"text of {name}") for name in ("a/b/c.TXT", "a/z.md", "b.txt", "é.txt")
    ]
    assert reader.report.ignored == {"hidden": 2, "no suffix": 1, "linked folder": 1, ".pdf": 1}
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
    assert reader.report.skipped == {"unreadable": 1, "longer than max_characters": 1}


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
    assert reader.report.skipped == {"longer than max_characters": 1}


# CSV and TSV


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz"])
def test_separated_values(tmp_path: Path, suffix: str) -> None:
    mark = "," if ".csv" in suffix else "\t"
    data = f'id{mark} text {mark}n\na{mark}"one, ""quoted""\nsecond\tline"{mark}1\r\nb{mark}two{mark}2\n'
    reader = read_documents(packed(tmp_path / f"c{suffix}", data.encode()), label_column="n")
    assert [(document.id, document.text, document.label) for document in reader] == [
        ("a", 'one, "quoted"\nsecond\tline', "1"),
        ("b", "two", "2"),
    ]


def test_bad_csv_rows_are_counted_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(
        b"text,n\none,1\ntoo few\ntoo,many,2\n\ncaf\xe9,3\n"
        b'"bad"quote,4\n"lines\n\xe9",5\n,6\nnul\0,7\ntwo,8\n"never closed,9\nthree,10\n'
    )
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "one"), ("7", "nul"), ("8", "two")]
    assert reader.report.skipped == {
        "wrong number of fields": 2,
        "wrong encoding": 2,
        "malformed row": 2,
        "empty": 1,
    }
    assert reader.report.ignored == {"blank line": 1}
    assert reader.report.repaired == {"NUL characters removed": 1}
    assert reader.report.examples["wrong number of fields"] == ["line 3: 1 instead of 2", "line 4: 3 instead of 2"]
    assert reader.report.examples["wrong encoding"][1].startswith("lines 8 to 9: ")
    # what an unclosed quote swallowed is told by its lines
    assert reader.report.examples["malformed row"][1].startswith("lines 13 to 1")


def test_the_only_csv_column_with_words_is_the_text(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("stars,review\n5,good\n1.5,bad\n")
    assert texts(path) == ["good", "bad"]
    path.write_text("title,review\na,good\n")
    with pytest.raises(DataError, match="title, review"):
        texts(path)


def test_unusable_csv_headers(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id;text\n1;a\n")
    with pytest.raises(DataError, match="separated by ';'"):
        texts(path)
    path.write_text("text,text\na,b\n")
    with pytest.raises(DataError, match="more than one column called 'text'"):
        texts(path)
    path.write_bytes(b"caf\xe9,text\na,b\n")
    with pytest.raises(DataError, match=r"header.*not valid utf-8.*--encoding"):
        texts(path)
    path.write_text("text,n\na,1\n")
    with pytest.raises(DataError, match=r"no column 'body'.*text, n"):
        texts(path, text_column="body")
    path.write_text("")
    with pytest.raises(EmptyCorpusError):
        texts(path)
    path.write_bytes(b"title,review\ncaf\xe9,good\n")  # not that the columns cannot be told, which the encoding hides
    with pytest.raises(EmptyCorpusError, match="1 wrong encoding"):
        texts(path)


# Broken files


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("how", ["truncated", "corrupt"])
def test_a_broken_file_is_named_with_the_documents_read_before(tmp_path: Path, suffix: str, how: str) -> None:
    # Text that hardly compresses, so that a cut in the middle leaves rows on both sides.
    words = [os.urandom(60).hex() for _ in range(4000)]
    lines = [json.dumps({"text": word}) for word in words] if "json" in suffix else ["text", *words]
    path = packed(tmp_path / f"c{suffix}", ("\n".join(lines) + "\n").encode())
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] if how == "truncated" else data[:middle] + os.urandom(2000) + data[middle + 2000 :])
    reader = read_documents(path)
    read: list[str] = []
    with pytest.raises(DataError, match=rf"c{suffix} is truncated, corrupt.*documents? had been read before") as error:
        read.extend(document.text for document in reader)
    count = reader.report.documents
    assert f"; {count:,} document" in str(error.value)
    assert not isinstance(error.value, EmptyCorpusError)
    assert not reader.report.finished
    assert count > (1000 if how == "truncated" else -1)


def test_the_rows_looked_ahead_are_given_before_the_break(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"text": os.urandom(30_000).hex()}) + "\n" for _ in range(20)).encode()
    path = packed(tmp_path / "c.jsonl.gz", rows)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    documents = iter(read_documents(path))
    assert len(next(documents).text) == 60_000


def test_files_that_are_not_what_their_names_say(tmp_path: Path) -> None:
    for name in ("c.jsonl.gz", "c.jsonl.zst", "c.parquet"):
        (tmp_path / name).write_text('{"text": "a"}\n')
        with pytest.raises(DataError, match=rf"{name} is truncated, corrupt.*; 0 documents"):
            texts(tmp_path / name)


def test_compressed_files_of_several_parts(tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".zst", zstd.compress)):
        one, two = (pack(b'{"text": "%s"}\n' % name) for name in (b"one", b"two"))
        path = tmp_path / f"c.jsonl{suffix}"
        path.write_bytes(one + two)
        assert texts(path) == ["one", "two"]
        path.write_bytes(one + two[:-3])
        documents = iter(read_documents(path))
        assert next(documents).text == "one"
        with pytest.raises(DataError, match="truncated, corrupt"):
            list(documents)


def test_zst_of_the_longest_window(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.zst"
    # As `zstd --long=31` packs. A stream, since a file of known size has a window no larger than that.
    with zstd.open(path, "wb", options={zstd.CompressionParameter.window_log: 31}) as file:
        file.write(b'{"text": "long"}\n')
    with pytest.raises(OSError, match="too much memory"), pa.input_stream(path) as stream:
        stream.read()  # why pyarrow does not read these files here
    assert texts(path) == ["long"]


def test_zst_without_the_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "c.jsonl.zst", b'{"text": "a"}\n')
    monkeypatch.setitem(sys.modules, ZSTD, None)
    with pytest.raises(MissingExtraError, match=r"simlte-st\[zstd\]"):
        texts(path)


# Parquet


def test_parquet_reads_the_needed_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.parquet"
    number = 1000
    table = pa.table({"doc_id": list(range(number)), "text": [f"t{n}" for n in range(number)], "big": ["x"] * number})
    pq.write_table(table, path, row_group_size=300)
    asked: list[list[str]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, **settings: Any) -> Any:
        asked.append(settings["columns"])
        return original(self, *args, **settings)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [(str(n), f"t{n}") for n in range(number)]
    assert asked == [["text", "doc_id"]]
    assert reader.report.id_column == "doc_id"


def test_parquet_rows_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    bad = pa.Array.from_buffers(
        pa.string(), 4, [None, pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 3, 4))),
                         pa.py_buffer(b"a\xff\xfez")],
    )  # fmt: skip
    pq.write_table(pa.table({"text": bad}), path)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "a"), ("3", "z")]
    assert reader.report.skipped == {"wrong encoding": 1, "empty": 1}
    pq.write_table(pa.table({"text": ["a", None]}), path)
    reader = read_documents(path)
    assert len(list(reader)) == 1
    assert reader.report.skipped == {"not a string": 1}


def test_parquet_columns_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"n": [1], "review": pa.array(["good"]).dictionary_encode()}), path)
    assert texts(path) == ["good"]
    with pytest.raises(DataError, match=r"no column 'body'.*n, review"):
        texts(path, text_column="body")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features).to_parquet(str(path))
    assert [document.label for document in read_documents(path, label_column="label")] == ["yes", "no"]


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": [os.urandom(50).hex() for _ in range(500)]}), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"c\.parquet is truncated"):
        texts(path)


def test_a_parquet_file_broken_in_a_later_row_group(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    values = [os.urandom(50).hex() for _ in range(1000)]
    pq.write_table(pa.table({"text": values}), path, row_group_size=500, compression="snappy", use_dictionary=False)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    reader = read_documents(path)
    read: list[str] = []
    with pytest.raises(DataError, match=r"; (384|500) documents had been read before"):
        read.extend(document.text for document in reader)


# datasets and the hub

FEATURES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]), "n": datasets.Value("int64")}
)
ROWS = {"text": ["a", "b", "c"], "label": [1, 0, -1], "n": [1, 2, 3]}


@pytest.mark.parametrize("streaming", [False, True])
def test_a_dataset(streaming: bool) -> None:
    dataset = datasets.Dataset.from_dict(ROWS, features=FEATURES)
    source = dataset.to_iterable_dataset() if streaming else dataset.with_format("numpy")
    reader = read_documents(source, label_column="label")
    for _ in range(2):
        assert [(document.id, document.text, document.label) for document in reader] == [
            ("0", "a", "yes"),
            ("1", "b", "no"),
            ("2", "c", None),
        ]
    with pytest.raises(DataError, match=r"no column 'body'.*text, label, n"):
        texts(source, text_column="body")


def test_a_stream_without_features() -> None:
    source = datasets.IterableDataset.from_generator(lambda: iter([{"id": "x", "body": "a"}, {"id": "y", "body": 1}]))
    assert source.features is None
    reader = read_documents(source)
    assert [(document.id, document.text) for document in reader] == [("x", "a")]
    assert reader.report.skipped == {"not a string": 1}
    assert len(list(reader)) == 1


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
    with pytest.raises(DataError, match=r"owner/name on the Hub cannot be reached \(OfflineModeIsEnabled\)"):
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


# Data frames


def make_frame(library: str, rows: dict[str, list[Any]]) -> Any:
    if library == "pyarrow":
        return pa.table(rows)
    return pytest.importorskip(library).DataFrame(rows)


LIBRARIES = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_data_frame(library: str) -> None:
    frame = make_frame(library, {"doc_id": [7, 8, 9], "n": [1, 2, 3], "body": ["a", None, "c"], "class": [1, 0, None]})
    reader = read_documents(frame, label_column="class")
    for _ in range(2):
        assert [(document.id, document.text) for document in reader] == [("7", "a"), ("9", "c")]
        assert reader.report.skipped == {"not a string": 1}
    assert [document.label for document in reader][1] is None
    assert (reader.report.text_column, reader.report.id_column) == ("body", "doc_id")
    with pytest.raises(DataError, match=r"no column 'nope'.*doc_id, n, body, class"):
        texts(frame, text_column="nope")
    with pytest.raises(DataError, match=r"hold strings: a, b\."):
        texts(make_frame(library, {"a": ["x"], "b": ["y"], "n": [1]}))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_of_a_data_frame(library: str) -> None:
    column = make_frame(library, {"body": ["a", None, "c"]})["body"]
    reader = read_documents(column)
    for _ in range(2):
        assert [document.text for document in reader] == ["a", "c"]
    assert reader.report.skipped == {"not a string": 1}
    with pytest.raises(DataError, match=r"bare string, which has no columns, so text_column='body'"):
        texts(column, text_column="body")


def test_other_columns_of_strings() -> None:
    numpy = pytest.importorskip("numpy")
    dataset = datasets.Dataset.from_dict({"body": ["a", "b"]})
    for column in (dataset["body"], dataset.to_iterable_dataset()["body"], numpy.array(["a", "b"])):
        assert texts(column) == ["a", "b"]
        assert {type(text) for text in texts(column)} == {str}


def test_odd_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({0: ["a", 3, "c"], "day": pandas.to_datetime(["2020-01-01"] * 3)}, index=list("xyz"))
    reader = read_documents(mixed)
    assert [(document.id, document.text) for document in reader] == [("0", "a"), ("2", "c")]
    assert reader.report.text_column == "0"
    nullable = pandas.DataFrame({"text": ["a", "b"], "class": pandas.array([1, None], dtype="Int64")})
    reader = read_documents(nullable, label_column="class")
    assert [document.label for document in reader] == ["1", None]
    assert reader.report.repaired == {}
    assert texts(pandas.DataFrame({"text": pandas.Categorical(["a", "b", "a"])})) == ["a", "b", "a"]
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(DataError, match="more than one column called 'text'"):
        texts(twice)
    with pytest.raises(EmptyCorpusError, match="the DataFrame holds no usable document"):
        texts(pandas.DataFrame({"text": []}))
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"LazyFrame is no source.*collect a LazyFrame"):
        read_documents(polars.DataFrame({"text": ["a"]}).lazy())
