from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch

from simlte_st.cli.main import build_parser, main
from simlte_st.errors import ConfigurationError
from simlte_st.models import base, loading
from simlte_st.models.base import load_model
from simlte_st.models.device import check_device
from simlte_st.training.run import RunOptions, bf16_available


def test_a_device_that_is_there_passes(encoder_path: Path) -> None:
    check_device(None)
    check_device("cpu")
    assert load_model(encoder_path, device="cpu").model.device == torch.device("cpu")


@pytest.mark.parametrize("device", ["cuda:99", "meta", "abacus"])
def test_another_is_refused_with_what_there_is(device: str) -> None:
    with pytest.raises(ConfigurationError, match=f"device='{device}' is not available here. Available: cpu"):
        check_device(device)


def test_the_device_reaches_the_model(encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    original = loading.load_stock
    monkeypatch.setattr(base, "check_device", lambda device: None)
    monkeypatch.setattr(
        loading,
        "load_stock",
        lambda *args, device, **more: told.append(device) or original(*args, device="cpu", **more),
    )
    load_model(encoder_path, device="cuda:1")
    assert told == ["cuda:1"]


@pytest.mark.parametrize(
    "line",
    [
        "train texts --output model",
        "encode tiny texts --output vectors.parquet",
        "evaluate tiny --data texts",
        "index tiny texts --output index",
    ],
    ids=lambda line: line.split()[0],
)
def test_commands_refuse_it_before_work_begins(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("A text.")
    assert build_parser().parse_args(shlex.split(line)).device is None
    assert main(shlex.split(f"{line} --device cuda:99")) == 1
    assert capsys.readouterr().err.startswith("simlte: --device cuda:99 is not available here.")
    assert [path.name for path in tmp_path.iterdir()] == ["texts"]


def test_a_run_computes_in_what_its_device_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **options: True)
    monkeypatch.setattr("simlte_st.training.run.cpu_bf16", list)
    assert bf16_available()
    assert bf16_available("cuda:0")
    assert not bf16_available("cpu")
    assert RunOptions("tiny", device="cpu").dtype == "float32"
    assert "device" not in RunOptions("tiny", device="cpu").decisive(), "a run may be resumed on another"
