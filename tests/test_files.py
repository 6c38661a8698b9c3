from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.files import home as home_folder
from simlte_st.models.names import models_folder


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    with atomic_path(target) as path:
        path.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    with pytest.raises(RuntimeError), atomic_path(target) as path:  # noqa: PT012
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "new"
    assert [entry.name for entry in target.parent.iterdir()] == ["file.txt"]


def test_a_directory_replaces_a_full_directory(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").write_text("old")
    with atomic_path(target) as path:
        path.mkdir()
        (path / "new").write_text("new")
    assert [entry.name for entry in target.iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_json_round_trip_keeps_unicode(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "Größe", "values": [1, 2.5, None]})
    assert read_json(tmp_path / "a.json") == {"name": "Größe", "values": [1, 2.5, None]}
    assert "Größe" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_the_variable_decides(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home_folder() == home
    assert models_folder() == home / "models"
    monkeypatch.setenv("SIMLTE_ST_HOME", "~/somewhere")
    assert home_folder() == Path.home() / "somewhere"


def test_without_it_the_platforms_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        monkeypatch.delenv("SIMLTE_ST_HOME") if value is None else monkeypatch.setenv("SIMLTE_ST_HOME", value)
        assert home_folder() == platformdirs.user_cache_path("simlte_st", appauthor=False)
