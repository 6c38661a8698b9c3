"""What a process finds in the launcher's environment. Processes that train together: ``training/test_processes.py``."""

from __future__ import annotations

import pytest
import torch

from simlte_st import distributed
from simlte_st.distributed import choose_device, launched, main_first, on_main, shows, together
from simlte_st.errors import ConfigurationError, DataError, ProcessLostError


def launch(monkeypatch: pytest.MonkeyPatch, rank: int = 1, number: int = 2) -> None:
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": number}.items():
        monkeypatch.setenv(name, str(value))


def test_one_process_does_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=0, number=1)
    assert launched() == (0, 1)
    assert on_main(abs)(-3) == main_first(abs)(-3) == 3
    assert choose_device("cuda:1") == "cuda:1"
    assert shows(DataError("no"))
    with pytest.raises(RuntimeError, match="Connection closed"), together():
        raise RuntimeError("Connection closed by peer")  # of something else


def test_each_process_takes_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch, rank=1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(None) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device(None) == choose_device("cuda") == "cuda:1"
    assert choose_device("cpu") == "cpu"
    with pytest.raises(ConfigurationError, match="device='cuda:0'"):
        choose_device("cuda:0")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert choose_device(None) == "cpu"


def test_a_lost_connection_is_an_error_of_ours_and_other_errors_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    launch(monkeypatch)
    assert not shows(ConfigurationError("no")), "before they are connected the main process shows"
    monkeypatch.setattr(distributed.signal, "signal", lambda *arguments: None)
    with pytest.raises(ProcessLostError, match="Another process"), together():
        raise RuntimeError("[.../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:14469.")
    with pytest.raises(RuntimeError, match="out of memory"), together():
        raise RuntimeError("out of memory")
