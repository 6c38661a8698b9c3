"""One process in a launcher's environment; ``training/test_processes.py`` tests several."""

from __future__ import annotations

import pytest

from simlte_st.distributed import connect_processes, launcher_rank, main_first, on_main, shows
from simlte_st.errors import ConfigurationError, DataError, TrainingInterrupted


def launch(monkeypatch: pytest.MonkeyPatch, rank: int = 1, number: int = 2) -> None:
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": number}.items():
        monkeypatch.setenv(name, str(value))


def test_single_process_needs_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=0, number=1)
    assert launcher_rank() == (0, 1)
    assert on_main(abs)(-3) == main_first(abs)(-3) == 3
    assert connect_processes("cuda:1") == "cuda:1"
    assert shows(DataError("no"))


def test_errors_of_the_main_process_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=1)
    with pytest.raises(ConfigurationError, match="device='cuda:0'"):
        connect_processes("cuda:0")
    mine, of_main = DataError("mine"), DataError("of the main process")
    of_main.of_main = True  # type: ignore[attr-defined]
    assert [shows(error) for error in (mine, of_main, TrainingInterrupted("stopped"))] == [True, False, False]
