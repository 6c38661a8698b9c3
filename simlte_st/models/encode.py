"""Encode documents to a parquet file: streamed, resumable, on one device or many machines."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from simlte_st.arguments import Count, check_arguments, check_fields
from simlte_st.errors import ConfigurationError, ModelError, ResumeError, SimlteError, format_count, keeping
from simlte_st.extras import check_installed
from simlte_st.files import SETTINGS_FILE, atomic_path, check_apart, check_file, discard, is_unused
from simlte_st.models.limits import Truncation, warn_of_truncation
from simlte_st.models.names import ModelSource
from simlte_st.models.parts import Part, PartEncoder, Parts, model_identity, open_parts, parts_folder
from simlte_st.progress import TextBar, complete, progress_bar
from simlte_st.reading.documents import DocumentSource, read_documents

_ATTEMPTS = 3  # per part; processes usually die because memory runs out
_QUEUE = 2  # parts per actor, so that it does not wait for the next one


@dataclass(frozen=True)
class Engine:
    """Where documents are encoded.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``, or a list of devices that share the work; None for a
            GPU if available, otherwise the CPU.
        engine: ``"local"`` for this process and its devices, ``"ray"`` for Ray actors on one or more machines.
        actors: Number of Ray actors, each with a CPU and, if there are GPUs, a GPU; None for as many as fit.
        address: Address of a Ray cluster; None to use one running on this machine, or start one.

    Raises:
        ConfigurationError: A Ray option is set without ``engine="ray"``, or a specific GPU with it.
        MissingExtraError: ``engine="ray"`` is set, but the ``ray`` extra is not installed.
    """

    device: str | Sequence[str] | None = None
    engine: Literal["local", "ray"] = "local"
    actors: Count | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.engine == "ray":
            check_installed("ray", "ray", "engine='ray'")
            if self.device not in (None, "cpu", "cuda"):
                raise ConfigurationError(f"device={self.device!r}: Ray chooses the GPU; use 'cpu' or 'cuda'.")
        elif self.actors is not None or self.address is not None:
            raise ConfigurationError("actors= and address= need engine='ray'.")

    @property
    def several(self) -> list[str]:
        """The devices, if several share the work of this process."""
        return [] if self.device is None or isinstance(self.device, str) else list(self.device)

    @property
    def elsewhere(self) -> bool:
        """Whether the encoding runs in other processes."""
        return self.engine == "ray" or bool(self.several)

    @property
    def loading_device(self) -> str | None:
        """The device on which to load the model, which decides its dtype; other processes get copies via the CPU."""
        if self.engine == "ray":  # actors may have GPUs even if this process has none
            return "cpu" if self.device == "cpu" else None
        if not self.several:
            return self.device  # type: ignore[return-value]
        return next((device for device in self.several if device.split(":")[0] == "cpu"), self.several[0])

    def check_devices(self) -> None:
        """Check that the devices of the local engine are available."""
        for device in [self.device] if isinstance(self.device, str) and self.engine == "local" else self.several:
            from simlte_st.models.device import check_device  # imports torch

            check_device(device)


@dataclass
class EncodingReport:
    """Result of an encoding.

    Attributes:
        documents: Number of encoded documents.
        dimension: Dimension of the vectors.
        truncation: Counts of truncated texts and tokens.
    """

    documents: int
    dimension: int
    truncation: Truncation

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return a sentence with the numbers of documents, dimensions and truncated texts."""
        number = format_count(self.documents, "document")
        return f"Encoded {number} into vectors of {self.dimension} dimensions. {self.truncation.summary()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {"documents": self.documents, "dimension": self.dimension, "truncation": self.truncation.to_dict()}


@check_arguments
def encode_documents(
    model: ModelSource,
    source: DocumentSource,
    output: str | os.PathLike[str],
    *,
    batch_size: Count = 32,
    normalize: bool = False,
    part_size: Count = 1024,
    device: str | Sequence[str] | None = None,
    engine: Literal["local", "ray"] = "local",
    actors: Count | None = None,
    address: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> EncodingReport:
    """Encode documents into a parquet file of ids and vectors.

    Only one part (per actor) is in memory at a time. Finished parts are kept in ``OUTPUT.parts`` and joined at the end.
    A run can be resumed on other devices or with the other engine; vectors then differ only by rounding. A script that
    encodes on several devices needs ``if __name__ == "__main__":``.

    Args:
        model: The loaded model.
        source: The documents: anything that :func:`~simlte_st.data.read_documents` takes. To resume a run, pass the
            same documents in the same order.
        output: Parquet file to write, with columns ``id`` (string) and ``vector`` (fixed-size list of float32).
        batch_size: Batch size for the longest texts; shorter ones get larger batches.
        normalize: Scale the vectors to length 1.
        part_size: Documents in each part of the output; an interruption loses at most one part.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available). Several devices, such as
            ``cuda:0,cuda:1``, share the work, with one process each.
        engine: ``local`` encodes in this process, ``ray`` in Ray actors on one or many machines, which need the output
            on a shared file system.
        actors: Number of Ray actors, each with a CPU and, if there are any, a GPU (default: as many as fit).
        address: Address of the Ray cluster (default: a cluster on this machine, or a new one).
        resume: Continue an interrupted run from its finished parts.
        overwrite: Overwrite existing output, or the parts of an interrupted run.
        progress: Show a progress bar.

    Returns:
        The numbers of documents, dimensions and truncated texts.

    Raises:
        ConfigurationError: The model is not loaded, or an argument is out of range; the output or its parts exist, and
            neither ``resume`` nor ``overwrite`` is set; the output does not end in .parquet, would replace the
            documents, or is in use by another process; or the device or cluster is not available.
        ResumeError: There is nothing to resume, or the parts have different settings or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite, or an encoding process died.
        MissingExtraError: ``engine="ray"`` is set, but the ``ray`` extra is not installed.
        Interrupted: Ctrl-C, or SIGTERM at the command line; the message names the folder of finished parts.

    Example:
        ::

            model = SentenceTransformer("simlte-static")
            print(encode_documents(model, "my_documents", "vectors.parquet"))
    """
    where, reader, output = Engine(device, engine, actors, address), read_documents(source), Path(output)
    check_vectors(reader, output, resume=resume, overwrite=overwrite)

    from sentence_transformers import SentenceTransformer

    from simlte_st.models.loading import check_encodes

    if not isinstance(model, SentenceTransformer):
        raise ConfigurationError(f"model={model!r}: load it first, with simlte_st.SentenceTransformer(...).")
    check_encodes(model, "given")
    truncation = Truncation.of(model)
    where.check_devices()
    folder = parts_folder(output)
    settings = {"normalize": normalize, "part_size": part_size, **model_identity(model), "dtype": str(model.dtype)}
    lock = open_parts(output, settings, resume=resume)
    try:
        parts = Parts(reader, folder.absolute(), part_size)
        try:
            advice = f"Finished parts of {part_size:,} documents are in {folder}: continue with resume=True."
            with keeping(lambda: advice):
                paths = make_parts(parts, PartEncoder(model, batch_size, normalize), where, progress, warn=True)
        except SimlteError:
            if not any(folder.glob("part-*")):  # nothing to resume
                shutil.rmtree(folder)
            raise
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), truncation)
        _join_parts(paths, output, report)
        discard(folder, output)
        return report
    finally:
        lock.release()


def make_parts(parts: Parts, encoder: PartEncoder, engine: Engine, progress: bool, *, warn: bool = False) -> list[Path]:
    """Encode the missing parts in this process, in a process per device, or with Ray.

    Args:
        parts: The parts.
        encoder: Encoder of the parts.
        engine: Where to encode.
        progress: Whether to show a progress bar.
        warn: Whether to warn first if the model will truncate much of the text; not with Ray.

    Returns:
        The files of all parts, in order.
    """
    from simlte_st.models.device import device_pool

    model, home, paths = encoder.model, encoder.model.device, []

    def record_paths() -> Iterator[Part]:
        for part in parts:
            paths.append(part.path)
            yield part

    if engine.engine == "ray":
        with progress_bar("Encoding", parts.total, show=progress) as documents:
            try:
                encode_with_ray(record_paths(), encoder, engine, documents)
            finally:
                model.to(home)
            complete(documents)
        return paths
    remaining = record_paths()
    first = list(islice(remaining, 1))  # raises the source's errors before the bar is shown
    if isinstance(engine.device, str):
        model.to(engine.device)
    if first and warn:
        warn_of_truncation(model, first[0].texts)
    processes = device_pool(model, engine.several) if engine.several else nullcontext()
    with processes as pool, TextBar("Encoding", parts.total, show=progress) as bar:
        for part in chain(first, remaining):
            bar.documents = parts.total  # may only be known at the end of the source
            bar.begin(len(part.ids))
            if not part.path.exists():
                with bar.reading(part.texts, model):
                    encoder.make(part, pool)
    return paths


def _join_parts(paths: Sequence[Path], output: Path, report: EncodingReport) -> None:
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), report.dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema, use_dictionary=False) as writer:
        for path in paths:
            table = pq.read_table(path)
            writer.write_table(table.select(schema.names).cast(schema))
            report.documents += len(table)
            report.truncation.add(table["tokens"].to_numpy())


# Ray actors. This process reads the source and distributes its parts; each actor writes its own part files, so that
# vectors are not sent back and survive if this process ends.


def encode_with_ray(parts: Iterable[Part], encoder: PartEncoder, engine: Engine, bar: tqdm) -> None:
    """Encode the missing parts with Ray actors."""
    import ray
    from ray.util import ActorPool

    encoder.model.to("cpu")  # a machine without a GPU cannot load GPU tensors
    with nullcontext() if ray.is_initialized() else _cluster(engine.address):
        actors, gpus = _resources(ray.cluster_resources(), engine.actors, engine.device)
        actor_class: Any = ray.remote(_Actor).options(
            num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=_ATTEMPTS - 1, max_concurrency=1
        )
        model = ray.put(encoder)
        pool = ActorPool([actor_class.remote(model, "cuda" if gpus else "cpu") for _ in range(actors)] * _QUEUE)
        try:
            for part in parts:
                if part.path.exists():
                    bar.update(len(part.ids))
                    continue
                if not pool.has_free():
                    bar.update(pool.get_next_unordered())
                pool.submit(lambda actor, part: actor.make.remote(part), part)
            while pool.has_next():
                bar.update(pool.get_next_unordered())
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            raise ModelError(
                f"A Ray process died {_ATTEMPTS} times on the same part ({type(error).__name__}), most likely because "
                "memory ran out. Finished parts are kept: set a smaller batch_size= and resume=True."
            ) from error


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster inside the block."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # hides alarming messages when actors exit
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(f"address={address!r}: no Ray cluster found ({error}).") from error
    try:
        yield
    finally:
        ray.shutdown()


def _resources(cluster: dict[str, float], actors: int | None, device: object) -> tuple[int, int]:
    """Return the number of actors, and the number of GPUs for each."""
    cpus, gpus = int(cluster.get("CPU", 0)), int(cluster.get("GPU", 0))
    on_gpu = device == "cuda" or (device is None and gpus > 0)
    room = min(cpus, gpus) if on_gpu else cpus
    actors = max(1, room) if actors is None else actors
    if actors > room:
        needs = f"Each takes {'a CPU and a GPU' if on_gpu else 'a CPU'}, of {cpus} CPUs and {gpus} GPUs."
        raise ConfigurationError(f"actors={actors}: the cluster has room for {room}. {needs}")
    return actors, int(on_gpu)


class _Actor:
    """Holds the model in a Ray process."""

    def __init__(self, encoder: PartEncoder, device: str) -> None:
        # Ray limits torch's threads, but not the tokenizer's.
        os.environ.setdefault("RAYON_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        self._encoder = encoder
        encoder.model.to(device)

    def make(self, part: Part) -> int:
        """Write a part file, unless an actor had written it before it died; return the number of documents."""
        if not part.path.parent.is_dir():
            advice = "the output must be on a file system that all machines share."
            raise ConfigurationError(f"{part.path.parent} does not exist on a machine of the cluster: {advice}")
        if not part.path.exists():
            self._encoder.make(part)
        return len(part.ids)


def check_vectors(documents: DocumentSource, output: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Check that the output can be written, and that there is a run to resume."""
    check_apart(documents, output)
    if output.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{output}: choose a name that ends in .parquet, the format of the vectors.")
    check_file(output, overwrite or resume)
    parts = parts_folder(output)
    interrupted = (parts / SETTINGS_FILE).exists()
    if resume:
        if not interrupted:
            raise ResumeError(f"There is no interrupted run at {parts}.")
        return
    if interrupted and not overwrite:
        raise ConfigurationError(f"{parts} already exists: resume it (resume=True) or replace it (overwrite=True).")
    if parts.exists() and not interrupted and not is_unused(parts):
        raise ConfigurationError(f"{parts} was not written by this command: choose another output.")
