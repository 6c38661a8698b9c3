from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import ray
from sentence_transformers import SentenceTransformer
from support import record_texts

from simlte_st.data import read_documents
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.encode import Engine, _resources, encode_documents, encode_with_ray
from simlte_st.models.parts import Part, PartEncoder
from simlte_st.progress import progress_bar


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two CPUs to which this process is connected."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        context = ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
        )
        yield context.address_info["gcs_address"]
        ray.shutdown()


def vectors(path: Path) -> tuple[list[str], np.ndarray]:
    table = pq.read_table(path)
    return table["id"].to_pylist(), np.array(table["vector"].to_pylist())


def test_killed_actor_repeats_one_part(
    cluster: str,
    model: SentenceTransformer,
    documents: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # relative paths start from this folder on all machines
    Path("texts").mkdir()
    for number, text in enumerate(documents[:25]):
        Path(f"texts/{number:02d}.txt").write_text(text)
    Path("texts/empty.txt").write_text(" ")
    encode_documents(model, "texts", "local.parquet", part_size=10, batch_size=10)
    tried = tmp_path / "tried"

    def die_in_the_second_part(module: Any, inputs: Any, output: Any) -> None:
        if (texts := len(output["sentence_embedding"])) == 1:  # the digest checks which weights are used
            return
        with tried.open("a") as file:
            file.write(f"{texts} ")
        if tried.read_text() == "10 10 ":
            os.kill(os.getpid(), signal.SIGKILL)

    hook = model[-1].register_forward_hook(die_in_the_second_part)
    reader = read_documents("texts")
    report = encode_documents(
        model, reader, "ray.parquet", part_size=10, batch_size=10, engine="ray", actors=1, progress=True
    )
    hook.remove()
    assert tried.read_text() in ("10 10 10 5 ", "10 10 5 10 "), "one part is repeated"
    (ids, here), (ray_ids, there) = vectors(Path("local.parquet")), vectors(Path("ray.parquet"))
    assert ray_ids == ids == [f"{number:02d}.txt" for number in range(25)]
    np.testing.assert_allclose(there, here, atol=1e-5)
    assert (report.documents, report.truncation.texts) == (25, 25)
    assert reader.report.skipped == {"empty": 1}, "what was read is told here"
    assert "25/25" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local.parquet", "ray.parquet", "texts", "tried"]


DRIVER = """
import sys, time
from sentence_transformers import SentenceTransformer
from simlte_st.search import Index
from simlte_st.models.encode import encode_documents

model = SentenceTransformer(sys.argv[1], device="cpu")
model[-1].register_forward_hook(lambda module, inputs, output: time.sleep(0.3))
encode_documents(model, sys.argv[2], sys.argv[3], part_size=5, engine="ray", address=sys.argv[4])
"""


def test_parts_of_a_killed_driver_are_reused(
    cluster: str, encoder_path: Path, model: SentenceTransformer, documents: list[str], tmp_path: Path
) -> None:
    source, output = tmp_path / "texts.jsonl", tmp_path / "v.parquet"
    source.write_text("".join(f'{{"id": "d{number}", "text": "{text}"}}\n' for number, text in enumerate(documents)))
    command = [sys.executable, "-c", DRIVER, *map(str, (encoder_path, source, output)), cluster]
    parts = tmp_path / "v.parquet.parts"
    with subprocess.Popen(command) as driver:
        deadline = time.monotonic() + 300  # Ray takes minutes to start on two busy cores
        while len(list(parts.glob("part-*"))) < 2:
            assert driver.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        driver.kill()
    time.sleep(1)  # the actor ends with its process
    made = {int(path.name.split("-")[1]) for path in parts.glob("part-*")}  # counted from 1, in the order of two actors
    assert 2 <= len(made) < 10
    encoded = record_texts(model)
    encode_documents(model, source, output, part_size=5, resume=True)
    assert encoded == [text for row, text in enumerate(documents) if row // 5 + 1 not in made]
    ids, resumed = vectors(output)
    assert ids == [f"d{number}" for number in range(48)]
    np.testing.assert_allclose(resumed, model.encode(documents), atol=1e-5)


def test_too_few_resources_are_refused() -> None:
    assert _resources({"CPU": 16, "GPU": 4}, None, None) == (4, 1)
    assert _resources({"CPU": 3, "GPU": 4}, None, "cuda") == (3, 1)
    assert _resources({"CPU": 4, "GPU": 4}, None, "cpu") == (4, 0)
    with pytest.raises(ConfigurationError, match=r"actors=3: .* room for 2\. .* 2 CPUs"):
        _resources({"CPU": 2}, 3, None)
    with pytest.raises(ConfigurationError, match=r"room for 0\. Each takes a CPU and a GPU"):
        _resources({"CPU": 8}, None, "cuda")


@pytest.mark.usefixtures("cluster")
def test_actor_errors_are_raised(model: SentenceTransformer, documents: list[str], tmp_path: Path) -> None:
    missing = Part(tmp_path / "elsewhere" / "part-1.parquet", ["a"], ["ba bun"])
    with pytest.raises(ConfigurationError, match="elsewhere does not exist on a machine"):
        encode_with_ray([missing], PartEncoder(model), Engine(engine="ray", actors=1), progress_bar("", show=False))
    model[-1].register_forward_hook(lambda *given: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(ModelError, match="died 3 times on the same part"):
        make_parts_of(model, documents, tmp_path)


def make_parts_of(model: SentenceTransformer, documents: list[str], folder: Path) -> None:
    part = Part(folder / "part-1.parquet", documents, documents)
    encode_with_ray([part], PartEncoder(model), Engine(engine="ray", actors=1), progress_bar("", show=False))
