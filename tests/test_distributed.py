"""What a process finds in the launcher's environment. Processes that train together: ``training/test_processes.py``."""

from __future__ import annotations

import pytest
import torch

from simlte_st import distributed
from simlte_st.distributed import choose_device, launched, main_first, on_main, shows, together
from simlte_st.errors import ConfigurationError, DataError, ProcessLostError


def launch(monkeypatch: pytest.MonkeyPatch, rank: int = 1, number: int = 2, **more: str) -> None:
    for name, value in {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(number), **more}.items():
        monkeypatch.setenv(name, value)


def gpus(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: number > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: number)


def test_one_process_does_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=0, number=1)
    assert launched() == (0, 1)
    assert on_main(abs)(-3) == main_first(abs)(-3) == 3
    assert choose_device("cuda:1") == "cuda:1"
    assert choose_device(None) is None
    assert shows(DataError("no"))
    with pytest.raises(RuntimeError, match="Connection closed"), together():
        raise RuntimeError("Connection closed by peer")  # of something else


def test_each_process_takes_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=1)
    gpus(monkeypatch, 0)
    assert choose_device(None) == "cpu"
    gpus(monkeypatch, 2)
    assert choose_device(None) == choose_device("cuda") == "cuda:1"
    assert choose_device("cpu") == "cpu"
    with pytest.raises(ConfigurationError, match="device='cuda:0'"):
        choose_device("cuda:0")
    launch(monkeypatch, rank=2, number=3)
    with pytest.raises(ConfigurationError, match=r"more processes .*GPUs \(2\)"):
        choose_device(None)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert choose_device(None) == "cpu"


def test_processes_that_no_launcher_started_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=0)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ConfigurationError, match=r"WORLD_SIZE is 2, .*MASTER_ADDR.*unset WORLD_SIZE"):
        distributed.connect("cpu")


def test_before_they_are_connected_the_main_process_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=0)
    assert shows(ConfigurationError("no"))
    launch(monkeypatch, rank=1)
    assert not shows(ConfigurationError("no"))


def test_a_lost_connection_is_an_error_of_ours_and_other_errors_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch)
    monkeypatch.setattr(distributed.signal, "signal", lambda *arguments: None)
    with pytest.raises(ProcessLostError, match="Another process"), together():
        raise RuntimeError("[.../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:14469.")
    with pytest.raises(RuntimeError, match="out of memory"), together():
        raise RuntimeError("out of memory")
