from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from simlte_st import extras
from simlte_st.errors import MissingExtraError
from simlte_st.extras import check_installed, require


def test_missing_package_error_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"'no_such_package' .*tests.*\[some\]"):
        require("no_such_package", "some", "the tests")
    assert require("json", "some", "the tests").dumps([1]) == "[1]"


def test_check_installed_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_package.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    check_installed("slow_package.part", "some", "the tests")


def test_onnxruntime_telemetry_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    importlib.reload(extras)
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
