"""The shared caches' place, by environment and platform."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simlte_st.home import home


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("SIMLTE_ST_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "user")
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def test_the_variable_decides(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(environment / "xdg"))
    monkeypatch.setenv("SIMLTE_ST_HOME", str(environment / "ours"))
    assert home() == environment / "ours"
    assert not home().exists()
    monkeypatch.chdir(environment)
    monkeypatch.setenv("SIMLTE_ST_HOME", "here")  # a worker that changes its folder must find the same place
    assert home() == environment / "here"


def test_the_platform_decides_otherwise(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = environment / "user"
    assert home() == user / ".cache" / "simlte_st"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert home() == user / ".cache" / "simlte_st"
    monkeypatch.setenv("XDG_CACHE_HOME", str(environment / "xdg"))
    assert home() == environment / "xdg" / "simlte_st"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert home() == user / "Library" / "Caches" / "simlte_st"
    monkeypatch.setattr(sys, "platform", "win32")
    assert home() == user / "AppData" / "Local" / "simlte_st"
    monkeypatch.setenv("LOCALAPPDATA", str(environment / "local"))
    assert home() == environment / "local" / "simlte_st"
