"""Encoding with Ray: actors on one machine or many make the part files.

This process reads the source and hands out its parts. Vectors do not travel back: an actor writes the file of a part,
which stays whatever happens to this process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.device import Engine
from simlte_st.models.parts import Part, PartEncoder

_ATTEMPTS = 3  # at a part; most processes that die do so because memory ran out
_QUEUE = 2  # parts that an actor has been given, so that it need not wait for the next one


def encode_with_ray(parts: Iterable[Part], encoder: PartEncoder, engine: Engine, bar: Any) -> None:
    """Make the missing part files."""
    import ray
    from ray.util import ActorPool

    encoder.model.to("cpu")  # a machine without a GPU could not read what is on one
    with _cluster(engine.address):
        actors, gpus = _resources(ray.cluster_resources(), engine.actors, engine.device)
        kind: Any = ray.remote(_Actor).options(
            num_cpus=1, num_gpus=gpus, max_restarts=-1, max_task_retries=_ATTEMPTS - 1, max_concurrency=1
        )
        model = ray.put(encoder)
        pool = ActorPool([kind.remote(model, "cuda" if gpus else "cpu") for _ in range(actors)] * _QUEUE)
        try:
            for part in parts:
                if part.path.exists():
                    bar.update(len(part.ids))
                    continue
                if not pool.has_free():
                    bar.update(pool.get_next_unordered())
                pool.submit(lambda actor, given: actor.make.remote(given), part)
            while pool.has_next():
                bar.update(pool.get_next_unordered())
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            raise ModelError(
                f"A process of Ray died {_ATTEMPTS} times over a part ({type(error).__name__}), most likely because "
                "memory ran out. Finished parts are kept: use less memory (a smaller batch_size=) and resume=True."
            ) from error


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster inside the block; an existing connection stays."""
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # actors that end cause alarming messages
    try:
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
    room = min(cpus, gpus) if on_gpu else cpus
    wanted = max(1, room) if actors is None else actors
    if wanted > room:
        raise ConfigurationError(
            f"actors={wanted} cannot start: each takes {'a CPU and a GPU' if on_gpu else 'a CPU'}. The cluster has "
            f"{cpus} CPUs and {gpus} GPUs, which is room for {room}."
        )
    return wanted, int(on_gpu)


class _Actor:
    """Holds the model, in a process of Ray."""

    def __init__(self, encoder: PartEncoder, device: str) -> None:
        # Ray gives torch the threads of an actor's CPUs; a tokenizer would start one for each of the machine's.
        os.environ.setdefault("RAYON_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        self._encoder = encoder
        encoder.model.to(device)

    def make(self, part: Part) -> int:
        """Write a part file, unless an actor wrote it that was killed right after; return its number of documents."""
        if not part.path.parent.is_dir():
            raise ConfigurationError(
                f"{part.path.parent} is not seen from a machine of the cluster: the output has to be on a "
                "file system that all of them share."
            )
        if not part.path.exists():
            self._encoder.make(part)
        return len(part.ids)
