from __future__ import annotations

import os
import re
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
from support import write_jsonl

from benchmarks.datasets import load_benchmark, loading
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError

ROWS = [{"id": f"d{n}", "text": f"Text {n}.", "label": f"class {n % 2}"} for n in range(20)]


@pytest.mark.parametrize("name", ["fakenews", "20news", "arxiv", "nyt", "bbc"])
@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_every_data_set_takes_a_plain_table(tmp_path: Path, name: str, form: str) -> None:
    path = tmp_path / f"table.{form}"
    dataset = datasets.Dataset.from_list(ROWS)
    {"jsonl": dataset.to_json, "csv": dataset.to_csv, "parquet": dataset.to_parquet}[form](str(path))
    benchmark = load_benchmark(name, path)
    assert benchmark.name == name
    assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [tuple(row.values()) for row in ROWS]
    assert benchmark.source == str(path)
    assert len(benchmark.train) == 16
    assert len(benchmark.test) == 4
    assert sorted(benchmark.test["label"][:]) == ["class 0"] * 2 + ["class 1"] * 2
    assert "20%" in benchmark.split_origin
    assert benchmark.rows.column_names == ["id", "text", "label", "split"]


def test_the_split_of_the_source_is_kept(tmp_path: Path) -> None:
    splits = ["training", "DEV", "test", None, "", "holdout"]
    path = write_jsonl(tmp_path / "a.jsonl", [{**row, "split": splits[n % 6]} for n, row in enumerate(ROWS[:6])])
    benchmark = load_benchmark("bbc", path)
    assert benchmark.rows["split"][:] == ["train", "validation", "test", None, None]
    assert benchmark.report.skipped == {"unknown split": 1}
    assert benchmark.split_origin == "of the data set"
    assert [len(benchmark.part(name)) for name in ("train", "validation", "test")] == [1, 1, 1]
    assert benchmark.test["id"][:] == ["d2"]
    with pytest.raises(ConfigurationError, match=r"'dev'.* train, validation, test"):
        benchmark.part("dev")


def test_a_folder_of_tables_named_after_the_splits(tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    folder.mkdir()
    write_jsonl(folder / "test.jsonl", [{"text": "t", "label": 1, "label_text": "yes"}])
    write_jsonl(folder / "train.jsonl", [{"text": "a", "label": 0, "label_text": "no"}, {"text": "b", "label": 1}])
    (folder / "readme.txt").write_text("About.")
    benchmark = load_benchmark("20news", folder)
    assert [(item.id, item.text, item.label, item.split) for item in benchmark.documents()] == [
        ("train-0", "a", "no", "train"),
        ("train-1", "b", None, "train"),
        ("test-0", "t", "yes", "test"),
    ]


def test_class_labels_have_their_names(tmp_path: Path) -> None:
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    dataset = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, -1]}, features=features)
    dataset.to_parquet(str(tmp_path / "a.parquet"))
    benchmark = load_benchmark("nyt", tmp_path / "a.parquet")
    assert benchmark.rows["label"][:] == ["yes", "no", None]


def test_a_split_that_is_made(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    first = load_benchmark("bbc", path)
    sides = {item.id: item.split for item in first.documents()}
    assert {
        item.id: item.split for item in load_benchmark("bbc", path, cache_dir=tmp_path / "again").documents()
    } == sides
    write_jsonl(path, ROWS[::-1])
    assert {item.id: item.split for item in load_benchmark("bbc", path).documents()} == sides
    other = load_benchmark("bbc", path, seed=1, test_share=0.5)
    assert len(other.test) == 10
    assert re.search("50% .*seed 1", other.split_origin)


def test_it_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    report = load_benchmark("bbc", path).report
    stored = list((home / "benchmarks").iterdir())
    assert [folder.name.split("-")[0] for folder in stored] == ["bbc"]
    with monkeypatch.context() as patch:
        patch.setattr(loading.DocumentReader, "__iter__", None)
        again = load_benchmark("bbc", path)
        assert again.report == report
        assert len(again) == 20
    # a file that has changed is read anew, even if it is as long as before
    write_jsonl(path, [{**row, "text": row["text"].replace("Text", "Word")} for row in ROWS])
    os.utime(path, ns=(1, 1))
    assert next(load_benchmark("bbc", path).documents()).text == "Word 0."


@pytest.mark.parametrize("name", ["report.json", "documents.arrow"])
@pytest.mark.parametrize("left", [0, 0.5, None])
def test_what_is_damaged_is_made_anew(
    tmp_path: Path, home: Path, name: str, left: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ROWS)
    texts = [document.text for document in load_benchmark("bbc", path).documents()]
    [folder] = (home / "benchmarks").iterdir()
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if left is not None:
        (folder / name).write_bytes(content[: int(left * len(content))])
    assert [document.text for document in load_benchmark("bbc", path).documents()] == texts
    assert "damaged" in caplog.text
    assert (folder / name).stat().st_size == len(content)


def test_an_interrupted_reading_leaves_nothing(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(datasets.Dataset.from_list(ROWS).data.table, path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match="truncated"):
        load_benchmark("bbc", path)
    write_jsonl(tmp_path / "b.jsonl", [{"text": " ", "label": "a"}])
    with pytest.raises(EmptyCorpusError, match="empty"):
        load_benchmark("bbc", tmp_path / "b.jsonl")
    write_jsonl(tmp_path / "c.jsonl", ROWS)
    with (tmp_path / "c.jsonl").open("a") as file:
        file.write("[" * 10)
    assert len(load_benchmark("bbc", tmp_path / "c.jsonl")) == 20
    assert [name.split("-")[0] for name in os.listdir(home / "benchmarks")] == ["bbc"]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'imdb'.* fakenews, 20news, arxiv, nyt"):
        load_benchmark("imdb")
    with pytest.raises(DataError, match=r"nowhere.*kaggle\.com.*CC0.*arxiv-metadata-oai-snapshot"):
        load_benchmark("arxiv", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"'fakenews'.*FakeNewsCorpus.*Apache-2\.0.*path="):
        load_benchmark("fakenews")
    with pytest.raises(DataError, match=r"news_cleaned\*\.csv, news\.csv, train\.\* and test\.\*"):
        load_benchmark("fakenews", tmp_path)
    (tmp_path / "notes.txt").write_text("a")
    with pytest.raises(DataError, match="not a table"):
        load_benchmark("bbc", tmp_path / "notes.txt")


def test_many_documents_are_held_in_small_batches(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": f"{n}", "label": n % 3} for n in range(3000)])
    benchmark = load_benchmark("nyt", path)
    assert [item.text for item in benchmark.documents()] == [str(n) for n in range(3000)]
    assert benchmark.rows.data.column("text").num_chunks == 12
    assert [str(int(text) % 3) for text in benchmark.test["text"][:]] == benchmark.test["label"][:]
    assert len(benchmark.test) == 600
