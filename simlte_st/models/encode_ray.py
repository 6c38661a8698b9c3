"""Encode with Ray actors on one or many machines.

This process reads the source and distributes its parts. Each actor writes the files of its parts, so that vectors do
not travel back and survive the end of this process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.device import Engine
from simlte_st.models.parts import Part, PartEncoder

_ATTEMPTS = 3  # per part; most processes that die run out of memory
_QUEUE = 2  # parts per actor, so that it does not wait for the next one


def encode_with_ray(parts: Iterable[Part], encoder: PartEncoder, engine: Engine, bar: tqdm) -> None:
    """Encode the missing parts."""
    import ray
    from ray.util import ActorPool

    encoder.model.to("cpu")  # a machine without a GPU cannot load GPU tensors
    with _cluster(engine.address):
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
    """Connect to a cluster inside the block, unless Ray is already connected."""
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # hides alarming messages of actors that end
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(f"address={address!r}: no Ray cluster found ({error}).") from error
    try:
        yield
    finally:
        ray.shutdown()


def _resources(cluster: dict[str, float], actors: int | None, device: object) -> tuple[int, int]:
    """Return the number of actors, and the GPUs of each."""
    cpus, gpus = int(cluster.get("CPU", 0)), int(cluster.get("GPU", 0))
    on_gpu = device == "cuda" or (device is None and gpus > 0)
    room = min(cpus, gpus) if on_gpu else cpus
    actors = max(1, room) if actors is None else actors
    if actors > room:
        raise ConfigurationError(
            f"actors={actors}: the cluster has room for {room}. Each takes {'a CPU and a GPU' if on_gpu else 'a CPU'}, "
            f"of {cpus} CPUs and {gpus} GPUs."
        )
    return actors, int(on_gpu)


class _Actor:
    """Holds the model in a Ray process."""

    def __init__(self, encoder: PartEncoder, device: str) -> None:
        # Ray limits the threads of torch, but not those of the tokenizer.
        os.environ.setdefault("RAYON_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        self._encoder = encoder
        encoder.model.to(device)

    def make(self, part: Part) -> int:
        """Write a part file, unless a killed actor did; return the number of documents."""
        if not part.path.parent.is_dir():
            raise ConfigurationError(
                f"{part.path.parent} does not exist on a machine of the cluster: the output must be on a file system "
                "that all machines share."
            )
        if not part.path.exists():
            self._encoder.make(part)
        return len(part.ids)
