"""What encodes: this process, one on each of several devices, or actors of Ray; all make the same part files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, get_args

from simlte_st.checks import check_choice
from simlte_st.errors import ConfigurationError
from simlte_st.extras import require
from simlte_st.models.device import check_device, device_pool
from simlte_st.models.encode_ray import encode_with_ray
from simlte_st.models.parts import Part, PartEncoder, Parts
from simlte_st.progress import complete, counting_texts, progress_bar

Engine = Literal["local", "ray"]


@dataclass(frozen=True)
class Workers:
    """What encodes. The attributes are parameters of :func:`~simlte_st.models.encode.encode_documents`.

    Attributes:
        device: Where; several for a process on each.
        engine: ``"local"`` or ``"ray"``.
        actors: Of Ray.
        address: Of Ray.
    """

    device: str | Sequence[str] | None = None
    engine: Engine = "local"
    actors: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        check_choice("engine", self.engine, get_args(Engine))
        if self.engine == "ray":
            require("ray.data", "ray", "engine='ray'")
            if self.device not in (None, "cpu", "cuda"):
                raise ConfigurationError(
                    f"device={self.device!r}: with engine='ray' it is 'cpu' or 'cuda'; Ray chooses which."
                )
            return
        for name, value in (("actors", self.actors), ("address", self.address)):
            if value is not None:
                raise ConfigurationError(f"{name}={value!r} is an option of engine='ray'.")
        for each in [self.device] if isinstance(self.device, str) else self._several:
            check_device(each)

    @property
    def elsewhere(self) -> bool:
        """Whether other processes than this one encode."""
        return self.engine == "ray" or bool(self._several)

    @property
    def _several(self) -> list[str]:
        return [] if self.device is None or isinstance(self.device, str) else list(self.device)

    def make(self, parts: Parts, encoder: PartEncoder, progress: bool) -> None:
        """Make the part files that are missing."""
        here = iter(parts)
        # What is wrong with the source shows before a bar does.
        first = list(islice(here, 1)) if self.engine == "local" else []
        with progress_bar("Encoding", parts.total, initial=parts.done, shown=progress) as bar:
            if self.engine == "ray":
                kind = self.device if isinstance(self.device, str) else None
                before = encoder.model.device
                try:
                    encode_with_ray(parts, encoder, bar, actors=self.actors, address=self.address, device=kind)
                finally:
                    encoder.model.to(before)
            else:
                self._make_here(chain(first, here), parts, encoder, bar)
            complete(bar)

    def _make_here(self, each: Iterable[Part], parts: Parts, encoder: PartEncoder, bar: Any) -> None:
        if isinstance(self.device, str):
            encoder.model.to(self.device)
        with (
            device_pool(encoder.model, self._several) if self._several else nullcontext() as pool,
            nullcontext() if self._several else counting_texts(encoder.model, bar),
        ):
            for part in each:
                bar.total = parts.total  # what was read to its end is known by now
                if not part.path.exists():
                    encoder.make(part, pool)
                    bar.update(len(part.ids) if self._several else 0)
