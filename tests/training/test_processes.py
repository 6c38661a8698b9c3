"""Two processes that train one model, on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed
from accelerate import PartialState
from datasets import Dataset
from support import write_jsonl
from training_support import assert_same_bytes, forked, weights

from simlte_st import distributed, train
from simlte_st.data import read_documents
from simlte_st.errors import ConfigurationError, ResumeError, TrainingInterrupted
from simlte_st.training import callbacks
from simlte_st.training.result import TrainingResult
from simlte_st.views import corpus as views_corpus

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forked processes need not import everything again")

WORLD = 2
COMMON: dict[str, Any] = {
    "preset": "docsplit-bert", "pooling": "mean", "max_length": "base", "batch_size": 8, "epochs": 2, "held_out": 0.0,
    "learning_rate": 1e-3, "bf16": False, "progress": False, "device": "cpu", "keep": "trained",
}  # fmt: skip
SAME: dict[str, dict[str, Any]] = {
    "padded": {"dropout": 0.0},
    "cached": {"dropout": 0.0, "mini_batch_num_tokens": 90},
    "packed": {"dropout": 0.0, "preset": "docsplit-longformer", "max_length": 200, "max_steps": 4, "batch_size": 4},
    "streamed": {"dropout": 0.0, "max_steps": 8, "save_steps": 4},  # two passes, several buffers
}
"""Settings with which two processes train the same model as one."""
RANDOM: dict[str, Any] = {"epochs": 3, "save_steps": 4, "seed": 5}
"""With dropout and several epochs; runs are interrupted in the second one."""

Work = Callable[[int], None]


def launch(folder: Path, work: Work, wait: float = 100) -> list[int]:
    """Run a function in two processes like torchrun, with output in ``rank-N.txt``; return exit statuses."""
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    names = {"WORLD_SIZE": WORLD, "LOCAL_WORLD_SIZE": WORLD, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": store.port}
    names["TORCHELASTIC_USE_AGENT_STORE"] = "True"  # outlives the processes

    def begin(rank: int) -> None:
        distributed.HEAD_START = 0.0  # there is no launcher
        PartialState._reset_state()  # set by the parent for one process
        work(rank)

    started = [
        forked(partial(begin, rank), folder / f"rank-{rank}.txt", {**names, "RANK": rank, "LOCAL_RANK": rank})
        for rank in range(WORLD)
    ]
    deadline = time.monotonic() + wait
    for process in started:
        process.join(max(0.0, deadline - time.monotonic()))
    hanging = [process for process in started if process.is_alive()]
    for process in hanging:
        process.kill()
    assert not hanging, output(folder)
    return [int(process.exitcode or 0) for process in started]


def output(folder: Path) -> list[str]:
    return [(folder / f"rank-{rank}.txt").read_text() for rank in range(WORLD)]


def at_step(number: int, action: Callable[[], None]) -> None:
    """Call a function in this process when a step begins."""

    class Acting(callbacks.CompleteCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == number:
                action()

    callbacks.CompleteCallback = Acting  # type: ignore[misc]


def of_kind(documents: list[str], name: str) -> Any:
    """Documents, or a stream of four shards if the settings are for a stream."""
    if name != "streamed":
        return documents
    return read_documents(Dataset.from_dict({"text": documents}).to_iterable_dataset(num_shards=4), stream=True)


@pytest.fixture(scope="module", autouse=True)
def small_buffer() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views_corpus, "BUFFER", 16)
        yield


@pytest.fixture(scope="module")
def trained(bert_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two processes: all uninterrupted cases, and one that a signal to one process stops."""
    folder = tmp_path_factory.mktemp("two")
    rows = [*documents, "One more. It is left out of a pass."]

    def work(rank: int) -> None:
        for name, settings in SAME.items():
            result = train(of_kind(documents, name), folder / name, base=bert_path, **{**COMMON, **settings})
            assert isinstance(result, TrainingResult)
            assert result.load(device="cpu").encode("a text").shape == (32,)
        with pytest.raises(ConfigurationError, match=r"batch_size=7 .*the 2 processes"):
            train(documents, folder / "odd", base=bert_path, **{**COMMON, "batch_size": 7})
        assert rank or not list(folder.glob("odd*"))
        with pytest.raises(ConfigurationError, match="device='cuda:1'"):
            train(documents, folder / "odd", base=bert_path, **{**COMMON, "device": "cuda:1"})
        train(rows, folder / "whole", base=bert_path, **{**COMMON, **RANDOM})
        if rank == 1:
            at_step(9, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(TrainingInterrupted, match="step 10 of 18;"):
            train(rows, folder / "stopped", base=bert_path, **{**COMMON, **RANDOM})
        train(rows, folder / "stopped", base=bert_path, resume=True, **{**COMMON, **RANDOM})
        stream, settings = of_kind(documents, "streamed"), {**COMMON, **SAME["streamed"]}
        if rank == 1:
            at_step(6, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(TrainingInterrupted, match="step 7 of 8;"):
            train(stream, folder / "stopped-stream", base=bert_path, **settings)
        train(stream, folder / "stopped-stream", base=bert_path, resume=True, **settings)

    assert launch(folder, work, 200) == [0, 0], output(folder)
    return folder


@pytest.mark.parametrize("name", SAME)
def test_two_processes_train_the_same_model_as_one(
    name: str, trained: Path, bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    result = train(of_kind(documents, name), tmp_path / "one", base=bert_path, **{**COMMON, **SAME[name]})
    one, two = weights(tmp_path / "one"), weights(trained / name)
    assert one.keys() == two.keys()
    for key in one.keys() - {key for key in one if key.endswith("key.bias")}:  # its gradient is rounding error
        np.testing.assert_allclose(two[key], one[key], atol=1e-5, rtol=0, err_msg=key)
    start = weights(bert_path)
    assert max(np.abs(value - one[key.removeprefix("bert.")]).max() for key, value in start.items()
               if one.get(key.removeprefix("bert."), np.zeros(0)).shape == value.shape) > 1e-3  # fmt: skip
    logged = [line for line in json.loads((trained / name / "simlte.json").read_text())["log"] if "loss" in line]
    for mine, theirs in zip([line for line in result.log if "loss" in line], logged, strict=True):
        for term in ("loss", "contrastive", "mlm"):
            assert theirs[term] == pytest.approx(mine[term], abs=2e-4)


def test_two_processes_train_one_static_model(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    options: dict[str, Any] = {"base": static_path, "batch_size": 16, "lsa": 0, "keep": "trained", "progress": False}
    options |= {"max_steps": 6, "held_out": 0.0, "device": "cpu"}

    def work(rank: int) -> None:
        train(documents, tmp_path / "two", **options)

    assert launch(tmp_path, work) == [0, 0], output(tmp_path)
    train(documents, tmp_path / "one", **options)
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    np.testing.assert_allclose(two["embeddings"], one["embeddings"], atol=1e-4)
    start = weights(static_path)["embedding.weight"]
    assert np.abs(one["embeddings"] - start * (0.37 / np.sqrt(np.square(start).mean()))).max() > 1e-2


def test_run_stopped_by_a_signal_resumes_to_the_same_bytes(trained: Path) -> None:
    assert_same_bytes(trained / "whole", trained / "stopped")
    assert_same_bytes(trained / "streamed", trained / "stopped-stream")


def test_only_the_main_process_prints(trained: Path) -> None:
    first, second = output(trained)
    assert "Training" not in first, "progress=False"
    assert second == ""


def test_killed_run_resumes_to_same_bytes(trained: Path, bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    rows = [*documents, "One more. It is left out of a pass."]
    settings: dict[str, Any] = {"base": bert_path, **COMMON, **RANDOM}

    def work(rank: int) -> None:
        if rank == 1:
            at_step(10, lambda: os.kill(os.getpid(), signal.SIGKILL))
        with pytest.raises(RuntimeError, match=r"closed by peer|reset by peer|Broken pipe"):
            train(rows, tmp_path / "model", **settings)

    def go_on(rank: int) -> None:
        train(rows, tmp_path / "model", resume=True, **settings)

    assert launch(tmp_path, work) == [0, -signal.SIGKILL], output(tmp_path)
    with pytest.raises(ResumeError, match="processes: was 2, is 1"):
        train(rows, tmp_path / "model", resume=True, **settings)
    assert launch(tmp_path, go_on) == [0, 0], output(tmp_path)
    assert_same_bytes(trained / "whole", tmp_path / "model")


@pytest.mark.parametrize("fails", ["reading", "step of the main one", "step of the other"])
def test_error_in_one_process_ends_all(fails: str, bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    source = tmp_path / "nowhere.jsonl" if fails == "reading" else documents

    def fail() -> None:
        raise ValueError("a broken step")

    def work(rank: int) -> None:
        if fails != "reading" and rank == (fails == "step of the other"):
            at_step(2, fail)
        with pytest.raises(Exception) as raised:  # noqa: PT011  # of one process or the other
            train(source, tmp_path / "model", base=bert_path, **COMMON)
        if distributed.shows(raised.value):
            print("said:", raised.value)

    assert launch(tmp_path, work) == [0, 0], output(tmp_path)
    told = "\n".join(output(tmp_path))
    assert told.count("said: ") == 1 or fails != "reading"
    assert ("nowhere.jsonl" if fails == "reading" else "a broken step") in told


def test_torchrun(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    write_jsonl(tmp_path / "documents.jsonl", ({"text": text} for text in documents))
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "simlte_st", "train",
         str(tmp_path / "documents.jsonl"), "--base", str(bert_path), "--output", str(tmp_path / "model"),
         "--max-steps", "1", "--batch-size", "4", "--held-out", "0", "--device", "cpu"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("48 documents: 1 step") == 1
    assert done.stderr.count("1 step of 4") == 1
    assert "Warning" not in done.stderr
