from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from simlte_st.home import home as home_folder
from simlte_st.home import models_folder


def test_the_variable_decides(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home_folder() == home
    assert models_folder() == home / "models"
    monkeypatch.setenv("SIMLTE_ST_HOME", "~/somewhere")
    assert home_folder() == Path.home() / "somewhere"


def test_without_it_the_platforms_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("SIMLTE_ST_HOME") if value is None else monkeypatch.setenv("SIMLTE_ST_HOME", value)
        assert home_folder() == platformdirs.user_cache_path("simlte_st", appauthor=False)
