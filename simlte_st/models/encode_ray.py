"""Encoding with Ray Data: actors on one machine or many make the part files, each a part at a time.

One read task reads the source, in the order that gives documents their ids. A row of the data set is a whole part, so a
block, a task and what is repeated after a crash are a part too. Only names of files travel back: Ray Data loses what is
not yet in a finished block when its driver dies, a part file stays.
"""

from __future__ import annotations

import logging
import os
import platform
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from simlte_st.checks import check_count
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.parts import Part, PartEncoder, Parts

_ATTEMPTS = 3  # at a part, or at loading the model; Ray Data restarts an actor for ever, and would never end
_SECONDS = 10  # for an answer of a cluster's address
_LISTS = pa.large_list(pa.large_string())  # a part may be larger than 2 GiB
_SCHEMA = pa.schema({"path": pa.string(), "ids": _LISTS, "texts": _LISTS, "message": pa.binary()})


def encode_with_ray(
    parts: Parts,
    encoder: PartEncoder,
    bar: Any,
    *,
    actors: int | None = None,
    address: str | None = None,
    device: str | None = None,
) -> None:
    """Make the part files that are missing."""
    import ray
    from ray import data

    encoder.model.to("cpu")  # what a GPU holds cannot be read on a machine without one
    _check_travels(parts)
    with _cluster(address):
        actors, gpus = _resources(ray.cluster_resources(), actors, device)
        model, run = ray.put(encoder), uuid4().hex
        rows = data.read_datasource(_source(parts, run), override_num_blocks=1)
        rows.context.target_max_block_size = 1  # bytes: a block for each row, so that each part is a task of its own
        rows.context.enable_progress_bars = False
        rows = rows.map_batches(
            _Actor,
            fn_constructor_args=(model, parts.folder, "cuda" if gpus else "cpu", run),
            batch_size=1,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=actors),
            num_cpus=1,
            num_gpus=gpus,
        )
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of each run, and that its bars are not shown
        try:
            for row in rows.iter_rows():
                if row["message"] is None:
                    bar.update(row["documents"])
                    continue
                message = ray.cloudpickle.loads(row["message"])
                if isinstance(message, _Failure):
                    raise message.error from RuntimeError(f"In a process of Ray:\n{message.trace}")
                parts.report = message
        except ray.exceptions.RayError as error:
            raise ModelError(
                f"Ray could not go on ({type(error).__name__}): {str(error).splitlines()[0]} Finished parts are kept, "
                "for resume=True."
            ) from error


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster while the block runs; a connection that was there stays."""
    import ray

    if ray.is_initialized():
        if address is not None:
            raise ConfigurationError(f"address={address!r}: this process is connected to Ray already; leave it out.")
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else Ray Data's own actors make Ray alarm the user
    try:
        host, _, port = (address or "").rpartition("://")[2].rpartition(":")
        if host and port.isdigit():  # where nobody listens, Ray would go on asking for minutes
            socket.create_connection((host, int(port)), timeout=_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(f"address={address!r}: there is no Ray cluster ({error}).") from error
    try:
        yield
    finally:
        ray.shutdown()


def _resources(cluster: dict[str, float], actors: int | None, device: str | None) -> tuple[int, int]:
    """Return the number of actors, and the GPUs of each."""
    cpus, gpus = int(cluster.get("CPU", 0)), int(cluster.get("GPU", 0))
    on_gpu = device == "cuda" or (device is None and gpus > 0)
    room = max(0, min(cpus - 1, gpus) if on_gpu else cpus - 1)
    wanted = max(1, room) if actors is None else actors
    check_count("actors", wanted)
    if wanted > room:
        each = "a CPU and a GPU" if on_gpu else "a CPU"
        raise ConfigurationError(
            f"actors={wanted} cannot start: each takes {each}, and reading the documents one CPU more. The cluster has "
            f"{cpus} CPUs and {gpus} GPUs, which is room for {room}."
        )
    return wanted, int(on_gpu)


def _check_travels(parts: Parts) -> None:
    try:
        _pickled(parts)
    except TypeError as error:
        raise ConfigurationError(
            f"The documents cannot be read in another process ({error}): pass a path or a list, or encode with "
            "engine='local'."
        ) from error


@dataclass(frozen=True)
class _Failure:
    """An error in a process of Ray. It goes home in a row: raised there, Ray would wrap it, and some it would retry."""

    error: Exception
    trace: str


def _failed(error: Exception) -> bytes:
    trace = "".join(traceback.format_exception(error))
    try:
        return _pickled(_Failure(error, trace))
    except Exception:  # of a class that cannot travel
        return _pickled(_Failure(RuntimeError(str(error)), trace))


def _source(parts: Parts, run: str) -> Any:
    """Make Ray Data's source of the parts: one read task, a row a part, and at the end the report or an error."""
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    metadata = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)

    here = os.getcwd()  # relative paths are meant from there

    class PartSource(Datasource):
        def get_read_tasks(self, parallelism: int, *args: Any, **options: Any) -> list[Any]:
            return [ReadTask(lambda: _rows(parts, here, run), metadata)]

        def estimate_inmemory_data_size(self) -> int | None:
            return None

    return PartSource()  # type: ignore[no-untyped-call]


def _rows(parts: Parts, folder: str, run: str) -> Iterator[pa.Table]:
    try:
        os.chdir(folder)
        _check_seen(parts.folder)
        with _attempt(parts.folder / f"reading.{run}", "reading the documents"):
            for part in parts:
                done = part.path.exists()
                yield _row(str(part.path), [] if done else part.ids, [] if done else part.texts)
        message = _pickled(parts.report)
    except Exception as error:
        message = _failed(error)
    yield _row(message=message)


def _row(
    path: str | None = None, ids: list[str] | None = None, texts: list[str] | None = None, message: bytes | None = None
) -> pa.Table:
    row = {"path": path, "ids": ids or [], "texts": texts or [], "message": message}
    return pa.Table.from_pylist([row], schema=_SCHEMA)


def _pickled(value: Any) -> bytes:
    from ray import cloudpickle

    pickled: bytes = cloudpickle.dumps(value)
    return pickled


class _Actor:
    """Holds the model, in a process of Ray."""

    def __init__(self, encoder: Any, folder: Path, device: str, run: str) -> None:
        import ray

        self._folder, self._run, self._error = folder, run, b""
        try:
            _check_seen(folder)
            with _attempt(self._folder / f"{ray.get_runtime_context().get_actor_id()}.{run}", "loading the model"):
                self._encoder: PartEncoder = ray.get(encoder)
                self._encoder.model.to(device)
        except Exception as error:
            self._error = _failed(error)

    def __call__(self, rows: pa.Table) -> pa.Table:
        (row,) = rows.to_pylist()
        message = row["message"]
        if message is None:
            message = self._error or self._make(Part(Path(row["path"]), row["ids"], row["texts"]))
        documents, messages = pa.array([len(row["ids"])], pa.int64()), pa.array([message], pa.binary())
        return pa.table({"documents": documents, "message": messages})

    def _make(self, part: Part) -> bytes | None:
        if part.path.exists():  # one that was killed before it could say so may have made it
            return None
        try:
            with _attempt(part.path.with_name(f"{part.path.name}.{self._run}"), f"a part ({part.ids[0]!r} and on)"):
                self._encoder.make(part)
        except Exception as error:
            return _failed(error)
        return None


def _check_seen(folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigurationError(
            f"{folder} is not seen from {platform.node()}: the output has to be on a file system that all machines of "
            "the cluster share."
        )


@contextmanager
def _attempt(marker: Path, work: str) -> Iterator[None]:
    """Count in a file how often work was begun that did not end."""
    if marker.exists() and marker.stat().st_size >= _ATTEMPTS:
        raise ModelError(
            f"{_ATTEMPTS} times a process of Ray died over {work}, most likely for want of memory. Finished parts "
            "are kept: give it more, or a smaller batch_size=, and resume=True."
        )
    with marker.open("ab") as file:
        file.write(b".")
    yield
    marker.unlink()
