from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.cli.main import main
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.device import bf16_available, check_device, device_pool
from simlte_st.models.encode import encode_documents
from simlte_st.models.parts import encode_counted


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_unavailable_devices_are_refused(device: str) -> None:
    with pytest.raises(ConfigurationError, match=f"device='{device}' "):
        check_device(device)


@pytest.mark.parametrize("line", ["train texts --output model", "encode tiny texts --output vectors.parquet"])
def test_commands_refuse_unavailable_devices_first(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("texts", "tiny"):
        (tmp_path / folder).mkdir()
    (tmp_path / "texts" / "a.txt").write_text("A text.")
    assert main(shlex.split(f"{line} --device cuda:99")) == 1
    assert capsys.readouterr().err.startswith("simlte: --device cuda:99 ")
    assert {path.name for path in tmp_path.iterdir()} == {"texts", "tiny"}


def test_bf16_depends_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **options: True)
    monkeypatch.setattr("simlte_st.models.device.cpu_bf16", list)
    assert bf16_available()
    assert bf16_available("cuda:0")
    assert not bf16_available("cpu")


def test_several_devices_share_encoding(
    model: SentenceTransformer, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, one, two = tmp_path / "texts.jsonl", tmp_path / "one.parquet", tmp_path / "two.parquet"
    source.write_text("".join(f'{{"id": "d{number}", "text": "{text}"}}\n' for number, text in enumerate(documents)))
    options = {"part_size": 30, "batch_size": 8, "progress": False}
    encode_documents(model, source, one, **options)
    pools, start = [], SentenceTransformer.start_multi_process_pool
    monkeypatch.delenv("OMP_NUM_THREADS")

    def started(model: SentenceTransformer, devices: list[str]) -> Any:
        pools.append((devices, os.environ["OMP_NUM_THREADS"]))
        return start(model, devices)

    monkeypatch.setattr(SentenceTransformer, "start_multi_process_pool", started)
    encode_documents(model, source, two, device=["cpu", "cpu"], **options)
    assert pools == [(["cpu", "cpu"], str(max(1, torch.get_num_threads() // 2)))]
    assert "OMP_NUM_THREADS" not in os.environ
    tables = [pq.read_table(path) for path in (one, two)]
    assert tables[0]["id"] == tables[1]["id"]
    vectors = [np.array(table["vector"].to_pylist()) for table in tables]
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.parquet", "texts.jsonl", "two.parquet"]


def test_model_stays_on_its_device_after_a_process_dies(model: SentenceTransformer) -> None:
    def lose_a_process() -> None:
        with device_pool(model, ["cpu"]) as pool:
            os.kill(pool["processes"][0].pid, signal.SIGKILL)
            encode_counted(model, ["ba bun"], 8, pool=pool)

    with pytest.raises(ModelError, match=r"exit code -9.*memory"):
        lose_a_process()
    assert model.device == torch.device("cpu")
