"""Encoding with Ray Data: actors on one machine or many make the part files.

One task reads the source, in the order that gives documents their ids. A row of the data set is a whole part, so that a
block, a task and what is repeated after a crash are a part too. Vectors do not travel back: Ray Data loses unfinished
blocks when its driver dies, but part files stay.
"""

from __future__ import annotations

import logging
import os
import platform
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.engine import Engine
from simlte_st.models.parts import Part, PartEncoder, Parts

_ATTEMPTS = 3  # at a part; Ray Data would restart an actor forever
_SECONDS = 10  # to wait for an answer of a cluster's address
_LISTS = pa.large_list(pa.large_string())  # a part may be larger than 2 GiB
_SCHEMA = pa.schema({"path": pa.string(), "ids": _LISTS, "texts": _LISTS, "message": pa.binary()})


def encode_with_ray(parts: Parts, encoder: PartEncoder, engine: Engine, bar: Any) -> None:
    """Make the missing part files."""
    import ray
    from ray import data

    encoder.model.to("cpu")  # a machine without a GPU could not read what is on one
    with _cluster(engine.address):
        actors, gpus = _resources(ray.cluster_resources(), engine.actors, engine.device)
        model, run = ray.put(encoder), uuid4().hex
        rows = data.read_datasource(_source(parts, run), override_num_blocks=1)
        rows.context.target_max_block_size = 1  # bytes: a block for each row, so that each part is a task of its own
        rows.context.enable_progress_bars = False
        rows = rows.map_batches(
            _Actor,
            fn_constructor_args=(model, "cuda" if gpus else "cpu", run),
            batch_size=1,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=actors),
            num_cpus=1,
            num_gpus=gpus,
        )
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it reports each run, and that its bars are hidden
        try:
            for row in rows.iter_rows():
                if row["message"] is None:
                    bar.update(row["documents"])
                    continue
                message = ray.cloudpickle.loads(row["message"])
                if isinstance(message, tuple):
                    error, trace = message
                    raise error from RuntimeError(f"In a process of Ray:\n{trace}")
                parts.reader.report = message
        except ray.exceptions.RayError as error:
            raise ModelError(
                f"Ray could not go on ({type(error).__name__}): {str(error).splitlines()[0]} Finished parts are kept, "
                "for resume=True."
            ) from error


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster inside the block; an existing connection stays."""
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # Ray Data's own actors cause alarming messages
    try:
        host, _, port = (address or "").rpartition("://")[2].rpartition(":")
        if host and port.isdigit():  # if nobody listens there, Ray would keep trying for minutes
            socket.create_connection((host, int(port)), timeout=_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(f"address={address!r}: there is no Ray cluster ({error}).") from error
    try:
        yield
    finally:
        ray.shutdown()


def _resources(cluster: dict[str, float], actors: int | None, device: Any) -> tuple[int, int]:
    """Return the number of actors, and the GPUs of each."""
    cpus, gpus = int(cluster.get("CPU", 0)), int(cluster.get("GPU", 0))
    on_gpu = device == "cuda" or (device is None and gpus > 0)
    room = max(0, min(cpus - 1, gpus) if on_gpu else cpus - 1)
    wanted = max(1, room) if actors is None else actors
    if wanted > room:
        each = "a CPU and a GPU" if on_gpu else "a CPU"
        raise ConfigurationError(
            f"actors={wanted} cannot start: each takes {each}, and reading the documents one CPU more. The cluster has "
            f"{cpus} CPUs and {gpus} GPUs, which is room for {room}."
        )
    return wanted, int(on_gpu)


def _source(parts: Parts, run: str) -> Any:
    """Return a data source with one read task."""
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    metadata = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
    here = os.getcwd()  # relative paths start from there

    class PartSource(Datasource):
        def get_read_tasks(self, parallelism: int, *args: Any, **options: Any) -> list[Any]:
            return [ReadTask(lambda: _rows(parts, here, run), metadata)]

        def estimate_inmemory_data_size(self) -> int | None:
            return None

    return PartSource()  # type: ignore[no-untyped-call]


def _rows(parts: Parts, folder: str, run: str) -> Iterator[pa.Table]:
    """Yield a row for each part, and one with the report of reading or an error."""
    try:
        os.chdir(folder)
        _check_seen(parts.folder)
        with _attempt(parts.folder / f"reading.{run}", "reading the documents"):
            for part in parts:
                if part.path.exists():
                    yield _row(path=str(part.path), ids=[], texts=[])
                else:
                    yield _row(path=str(part.path), ids=part.ids, texts=part.texts)
        message = _pickled(parts.reader.report)
    except Exception as error:
        message = _failed(error)
    yield _row(message=message)


def _row(**values: Any) -> pa.Table:
    return pa.Table.from_pylist([values], schema=_SCHEMA)


class _Actor:
    """Holds the model, in a process of Ray."""

    def __init__(self, reference: Any, device: str, run: str) -> None:
        self._reference, self._device, self._run = reference, device, run
        self._encoder: PartEncoder | None = None
        # Ray gives torch the threads of an actor's CPUs; a tokenizer would start one for each of the machine's.
        os.environ.setdefault("RAYON_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))

    def __call__(self, rows: pa.Table) -> pa.Table:
        (row,) = rows.to_pylist()
        message = row["message"]
        if message is None:
            try:
                self._make(Part(Path(row["path"]), row["ids"], row["texts"]))
            except Exception as error:  # raised here, it would be wrapped, and the part retried
                message = _failed(error)
        documents, messages = pa.array([len(row["ids"] or ())], pa.int64()), pa.array([message], pa.binary())
        return pa.table({"documents": documents, "message": messages})

    def _make(self, part: Part) -> None:
        import ray

        _check_seen(part.path.parent)
        if part.path.exists():  # perhaps by an actor that was killed right after
            return
        with _attempt(part.path.with_name(f"{part.path.name}.{self._run}"), f"a part ({part.ids[0]!r} and on)"):
            if self._encoder is None:
                self._encoder = ray.get(self._reference)
                self._encoder.model.to(self._device)
            self._encoder.make(part)


def _pickled(value: Any) -> bytes:
    from ray import cloudpickle

    pickled: bytes = cloudpickle.dumps(value)
    return pickled


def _failed(error: Exception) -> bytes:
    """Return an error and its traceback, pickled."""
    return _pickled((error, "".join(traceback.format_exception(error))))


def _check_seen(folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigurationError(
            f"{folder} is not seen from {platform.node()}: the output has to be on a file system that all machines of "
            "the cluster share."
        )


@contextmanager
def _attempt(marker: Path, work: str) -> Iterator[None]:
    """Count in a file how often the block was begun and not finished; raise a ModelError after too many attempts."""
    if marker.exists() and marker.stat().st_size >= _ATTEMPTS:
        raise ModelError(
            f"A process of Ray died {_ATTEMPTS} times over {work}, most likely because memory ran out. Finished parts "
            "are kept: use less memory (a smaller batch_size=) and resume=True."
        )
    with marker.open("ab") as file:
        file.write(b".")
    yield
    marker.unlink()
