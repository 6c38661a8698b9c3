"""The benchmarks that train, at sizes at which their numbers mean nothing: that they run, and what they write."""

from __future__ import annotations

import importlib
import json
import pkgutil
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from support import make_document

import benchmarks
from benchmarks import batching, chunk_mean, equal_time, longformer, records, training, training_sides, views
from simlte_st.evaluation import ClassificationProbeEvaluator, tfidf_few_shot
from simlte_st.files import read_json
from simlte_st.models.names import packaged_base_installed


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "posts.parquet"
    rows = [
        {"text": f"{make_document(number % 3)} {make_document(9 + number)}", "label": "abc"[number % 3],
         "split": "train" if number < 30 else "test"}
        for number in range(45)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture(autouse=True)
def results(encoder_path: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tiny models in place of the packaged one; results go to a folder of the test's own."""
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    for module in (batching, equal_time, training_sides, views):
        monkeypatch.setattr(module, "PACKAGED_BASE", str(encoder_path))
    for module in (chunk_mean, equal_time, views):
        probe = partial(ClassificationProbeEvaluator, head="logistic", draws=2)
        monkeypatch.setattr(module, "ClassificationProbeEvaluator", probe)
        monkeypatch.setattr(module, "tfidf_few_shot", partial(tfidf_few_shot, draws=2))
    monkeypatch.setattr(training_sides, "packaged_base_path", lambda: bert_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    return tmp_path / "results"


@pytest.mark.parametrize("module", [found.name for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")])
def test_every_module_can_be_imported(module: str) -> None:
    importlib.import_module(module)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_sides_of_a_training_step(posts: Path, tmp_path: Path, dtype: str) -> None:
    command = ["--data", str(posts), "--lengths", "32", "--documents", "24", "--batch-size", "4", "--repeats", "1"]
    command += ["--large", "8", "--parts", "time", "outside", "large", "--output", str(tmp_path)]
    training.main([*command, "--bf16" if dtype == "bfloat16" else "--no-bf16"])
    [row] = read_json(tmp_path / "training.json")["rows"]
    assert (row["source"], row["tokens"], row["dtype"]) == ("posts.parquet", 32, dtype)
    assert row["time"]["environment"]["dtype"] == dtype
    assert all(0 < share < 1 for share in row["time"]["share_making_batches"].values())
    assert 30 < row["time"]["tokens_per_document"] <= 64
    assert 0 < row["outside"]["share"] < 1
    assert row["large"]["ratio"] > 0
    assert f"## posts.parquet, 32 tokens a view, {dtype}" in (tmp_path / "training.md").read_text()


def test_views(posts: Path, tmp_path: Path, results: Path) -> None:
    command = ["--data", str(posts), "--steps", "1", "--batch-size", "4", "--tokens", "32", "--test-posts", "9"]
    command += ["--work", str(tmp_path / "work"), "--only", "base", "Crop (Contriever)"]
    views.main(command)
    views.main([*command, "--report"])
    record = read_json(results / "views.json")
    assert record["environment"]["dtype"] == "float32"
    assert {run["name"] for run in record["runs"]} == {"base", "Crop (Contriever)"}
    assert "1 steps of 4 documents" in (results / "views.md").read_text()
    with pytest.raises(SystemExit, match="other settings"):
        views.main([*command, "--bf16"])


def test_settings_at_equal_cost(posts: Path, tmp_path: Path, results: Path) -> None:
    command = ["--data", str(posts), "--steps", "1", "--tokens", "32", "--read", "32", "--shots", "2"]
    command += ["--documents", "20", "--pool", "12", "--test-documents", "12", "--work", str(tmp_path / "work")]
    command += ["--only", "base", equal_time.PAPERS, "random, 32"]
    equal_time.main(command)
    equal_time.main([*command, "--report"])
    runs = read_json(results / "equal_time.json")["runs"]
    assert {run["name"] for run in runs} == {"TF-IDF", "base", equal_time.PAPERS, "random, 32"}
    page = (results / "equal_time.md").read_text()
    assert "## posts, 1 steps" in page
    assert "--seconds 240 --steps 1 --tokens 32" in page
    equal_time.main([*command, "--only", equal_time.PAPERS, "--bf16"])
    assert [path.name for path in sorted((tmp_path / "work").iterdir())] == [
        "posts, 1 steps",
        "posts, 1 steps, bfloat16",
    ]


def test_ways_to_make_batches(posts: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "LENGTHS", (32, 64))
    batching.main(["--data", str(posts), "--documents", "40"])
    assert len(read_json(results / "batching_padding.json")["rows"]) == 14


@pytest.mark.skipif(not packaged_base_installed(), reason="the packaged base model is not installed")
def test_long_documents(posts: Path, tmp_path: Path, results: Path) -> None:
    command = ["--data", str(posts), "--limit", "12", "--shots", "1", "--skip-cost", "--work", str(tmp_path / "work")]
    chunk_mean.main([*command, "--tokens", "512", "--only", "first 256 tokens"])
    record = json.loads((results / "chunk_mean.json").read_text())
    assert set(record) == {"TF-IDF", "first 256 tokens"}
    assert record["first 256 tokens"]["documents"] == 12
    with pytest.raises(SystemExit, match="other settings"):
        chunk_mean.main([*command, "--tokens", "1024"])


@pytest.mark.skipif(not packaged_base_installed(), reason="the packaged base model is not installed")
def test_the_longformers_cost(
    posts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(longformer.Bench, "memory", lambda bench: None)
    sizes = {"vocab_size": 1100, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    monkeypatch.setattr(longformer, "SIZE", {**longformer.SIZE, **sizes, "intermediate_size": 32})
    command = ["--repeats", "1", "--length", "128", "--window", "8", "--lengths-from", str(posts), "--threads", "1"]
    longformer.main([*command, "--output", str(tmp_path)])
    record = read_json(tmp_path / "longformer.json")
    rows = {row["measure"]: row for row in record["rows"]}
    assert len(rows) == 10
    assert record["options"]["lengths_from"] == posts.name
    layer = rows["one attention layer, forward, 128 tokens"]
    assert layer["ratio"] == pytest.approx(layer["seconds"]["transformers"][0] / layer["seconds"]["simlte_st"][0])
    longer = rows["time from 128 to 512 tokens, forward"]
    assert longer["ratio"] == pytest.approx(longer["seconds"]["512 tokens"][0] / longer["seconds"]["128 tokens"][0])
    assert "| one attention layer, forward, 128 tokens " in (tmp_path / "longformer.md").read_text()
    capsys.readouterr()
    longformer.main(["--peak", "ours", "--length", "128", "--window", "8", "--threads", "1"])  # in a process of its own
    assert json.loads(capsys.readouterr().out)["bytes"] > 0
