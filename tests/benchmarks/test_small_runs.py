"""Run the benchmarks that train, at sizes too small for meaningful numbers, and check their output."""

from __future__ import annotations

import importlib
import json
import pkgutil
import shutil
from argparse import Namespace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from support import make_document

import benchmarks
from benchmarks import encode_rates, longformer, longformer_lengths, speed, training
from simlte_st.files import read_json
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_installed


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
def tiny(encoder_path: Path, bert_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny models in place of the packaged one."""
    monkeypatch.setattr(training, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(training, "packaged_base_path", lambda: bert_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)


@pytest.mark.parametrize("module", [found.name for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")])
def test_every_module_can_be_imported(module: str) -> None:
    importlib.import_module(module)


def test_sides_of_a_training_step(
    posts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "run_module", lambda name, **options: {"step": 2**20, "process": 2**21})
    command = ["--data", str(posts), "--lengths", "32", "--documents", "24", "--batch-size", "4", "--repeats", "1"]
    training.main([*command, "--output", str(tmp_path), "--bf16"])
    [row] = read_json(tmp_path / "training.json")["rows"]
    assert (row["source"], row["tokens"], row["environment"]["dtype"]) == ("posts.parquet", 32, "bfloat16")
    assert all(len(turns) == 1 and turns[0] > 0 for turns in row["turns"].values())
    assert all(rate > 0 for rate in row["documents_per_second"].values())
    page = (tmp_path / "training.md").read_text()
    assert "## posts.parquet, 32 tokens per view, bfloat16" in page
    assert all(f"| {side} " in page for side in training.SIDES)
    training.main([*command, "--peak", "simlte_st, mini-batches"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 0 <= found["step"] < found["process"]


def test_default_training_is_timed(posts: Path, tmp_path: Path) -> None:
    training.main(["--data", str(posts), "--documents", "24", "--defaults", "--output", str(tmp_path)])
    assert "| 24 of posts.parquet | 30 steps of " in (tmp_path / "training_defaults.md").read_text()


def test_longformer_speed_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"vocab_size": 1100, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    monkeypatch.setattr(longformer, "SIZE", {**longformer.SIZE, **sizes, "intermediate_size": 32})
    peaks = {longformer.OURS: 2**20, longformer.STOCK: 2**22}
    monkeypatch.setattr(longformer, "run_module", lambda name, **options: peaks[options["peak"]])
    command = ["--repeats", "1", "--length", "128", "--window", "8", "--threads", "1", "--output", str(tmp_path)]
    longformer.main(command)
    single, half = read_json(tmp_path / "longformer.json")["parts"]
    assert (single["dtype"], half["dtype"]) == ("float32", "bfloat16")
    rows = {row["measure"]: row for row in single["rows"]}
    assert len(rows) == len(half["rows"]) == 6
    whole = rows["whole model, forward, 128 tokens"]
    assert whole["ratio"] == pytest.approx(whole["seconds"]["transformers"][0] / whole["seconds"]["simlte_st"][0])
    short = rows["32 documents of 60 tokens, forward, time against BERT"]
    assert short["ratio"] == pytest.approx(short["seconds"]["simlte_st"][0] / short["seconds"]["BERT, SDPA"][0])
    assert rows["peak memory, forward + backward, 4 documents of 128 tokens"]["ratio"] == 0.25
    assert (tmp_path / "longformer.md").read_text().count("attention dropout 0.1, 128 tokens ") == 2
    assert longformer.step_peak(Namespace(window=8, length=64, peak="simlte_st", dtypes=["float32"])) >= 0


def test_longformer_by_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"vocab_size": 1100, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    for module in (longformer, longformer_lengths):
        monkeypatch.setattr(module, "SIZE", {**longformer.SIZE, **sizes, "intermediate_size": 32})
    command = ["--device", "cpu", "--lengths", "32", "64", "--tokens", "64", "--window", "16", "--repeats", "1"]
    longformer_lengths.main([*command, "--dtypes", "float32", "--output", str(tmp_path)])
    rows = read_json(tmp_path / "longformer_lengths.json")["rows"]
    assert [(row["length"], row["mixed"], row["documents"], row["pass"]) for row in rows] == [
        (*batch, name) for batch in ((32, False, 2), (64, False, 1), (64, True, 1)) for name in longformer.PASSES
    ]
    assert all(row["difference"] < 1e-5 for row in rows[::2])
    sides = ["simlte_st", "transformers", "simlte_st, chunks"]
    assert [list(row["seconds"]) for row in rows[:2]] == [
        [*sides, "full"], [*sides, *(f"{side}, dropout" for side in sides), "full"],
    ]  # fmt: skip
    page = (tmp_path / "longformer_lengths.md").read_text()
    assert page.count("| float32 |") == 6
    assert page.count("16 to 64 |") == 2


def test_speed_of_encoders_and_static_models(
    posts: Path, encoder_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {file for _, file, _, _ in speed.CASES}:
        shutil.copy(posts, tmp_path / name)
    monkeypatch.setattr(speed, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(speed, "STATIC_MODEL", str(static_path))
    monkeypatch.setattr(longformer, "SIZE", {**longformer.SIZE, "hidden_size": 24, "intermediate_size": 24})
    command = ["--shared", str(tmp_path), "--part", "0.1", "--length", "64", "--repeats", "1"]
    speed.main([*command, "--output", str(tmp_path)])
    found = read_json(tmp_path / "speed.json")
    assert [row["case"] for row in found["encoding"]] == [name for name, *_ in speed.CASES]
    for row, (*_, whole) in zip(found["encoding"], speed.CASES, strict=True):
        here = [speed.STOCK, speed.PLAIN, speed.OURS]
        assert list(row["seconds"]) == here + ([] if whole else [speed.ONNX, speed.INT8])
        assert row["difference"][speed.OURS] < 1e-5
    assert found["encoding"][-1]["tokens"] > found["encoding"][-1]["documents"] * 64, "papers are read whole"
    assert [(row["dtype"], row["pass"], row["dropout"]) for row in found["longformer"]] == [
        (dtype, name, dropout)
        for dtype in ("float32", "bfloat16")
        for name, dropout in (("forward", 0.0), ("with backward", 0.0), ("with backward", 0.1))
    ]
    assert max(row["difference"][f"{speed.OURS}, {how}"] for row in found["static"] for how in ("cold", "warm")) < 1e-5
    assert (tmp_path / "speed.md").read_text().count("x [") == 4 * 4 + 2 + 2 * 4 + 6


@pytest.mark.skipif(not packaged_base_installed(), reason="the packaged base model is not installed")
def test_encode_rates_use_texts_of_exact_length(tmp_path: Path) -> None:
    model = load_model(PACKAGED_BASE).model
    texts = encode_rates.make_texts(model, 24, 3)
    assert [len(ids) for ids in model.tokenizer(texts)["input_ids"]] == [24] * 3
    assert len(set(texts)) == 3
    command = ["--models", PACKAGED_BASE, "--lengths", "16", "512", "--tokens", "32", "--repeats", "1"]
    encode_rates.main([*command, "--output", str(tmp_path)])
    rates = read_json(tmp_path / "encode_rates_cpu.json")["rates"]
    stock = f"{PACKAGED_BASE}, stock sdpa"
    assert {name: list(of) for name, of in rates.items()} == {PACKAGED_BASE: ["16"], stock: ["16"]}, "it reads 256"
    page = (tmp_path / "encode_rates_cpu.md").read_text(encoding="utf-8")
    assert all(text in page for text in (f"{16 * rates[PACKAGED_BASE]['16']:,.0f}", f"{stock}, documents / s"))
