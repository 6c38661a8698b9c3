from __future__ import annotations

import argparse

import numpy as np
import pytest
import torch

from benchmarks.records import add_options, difference, dtype_of, environment, mean_deviation


def test_the_dtype_is_asked_for_and_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, "--bf16")
    assert dtype_of(parser.parse_args([]).bf16) == torch.float32, "whatever the machine would do by itself"
    assert dtype_of(parser.parse_args(["--bf16"]).bf16) == torch.bfloat16
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True, "amx_bf16": False}, raising=False)
    assert environment()["dtype"] == "float32"
    found = environment(torch.bfloat16)
    assert (found["dtype"], found["cpu_bf16"]) == ("bfloat16", "avx512_bf16")
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert environment()["cpu_bf16"] == "no"


def test_cells() -> None:
    assert mean_deviation([0.5, 0.6, 0.7]) == "60.0 ± 10.0"
    assert mean_deviation([0.5], digits=3, factor=1) == "0.500"
    assert mean_deviation(np.array([[1.0, 3.0]]), factor=1) == "2.0 ± 1.4"
    assert difference(np.array([2.0, 2.0, 2.0])) == "+2.0 [+2.0, +2.0]"
