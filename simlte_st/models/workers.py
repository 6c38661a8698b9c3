"""What encodes: this process, one on each of several devices, or actors of Ray; all make the same part files."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from itertools import chain, islice
from typing import Any

from simlte_st.models.config import EngineConfig
from simlte_st.models.device import check_device, device_pool
from simlte_st.models.encode_ray import encode_with_ray
from simlte_st.models.parts import Part, PartEncoder, Parts
from simlte_st.progress import complete, counting_texts, progress_bar


class Workers:
    """What encodes, as the settings say; whether its devices are there is checked at once."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        if config.engine == "local":
            for each in [config.device] if isinstance(config.device, str) else config.several:
                check_device(each)

    @property
    def elsewhere(self) -> bool:
        """Whether other processes than this one encode."""
        return self.config.engine == "ray" or bool(self.config.several)

    def make(self, parts: Parts, encoder: PartEncoder, progress: bool) -> None:
        """Make the part files that are missing."""
        here = iter(parts)
        # What is wrong with the source shows before a bar does.
        first = list(islice(here, 1)) if self.config.engine == "local" else []
        with progress_bar("Encoding", parts.total, initial=parts.done, shown=progress) as bar:
            if self.config.engine == "ray":
                kind = self.config.device if isinstance(self.config.device, str) else None
                before = encoder.model.device
                try:
                    encode_with_ray(
                        parts, encoder, bar, actors=self.config.actors, address=self.config.address, device=kind
                    )
                finally:
                    encoder.model.to(before)
            else:
                self._make_here(chain(first, here), parts, encoder, bar)
            complete(bar)

    def _make_here(self, each: Iterable[Part], parts: Parts, encoder: PartEncoder, bar: Any) -> None:
        if isinstance(self.config.device, str):
            encoder.model.to(self.config.device)
        with (
            device_pool(encoder.model, self.config.several) if self.config.several else nullcontext() as pool,
            nullcontext() if self.config.several else counting_texts(encoder.model, bar),
        ):
            for part in each:
                bar.total = parts.total  # what was read to its end is known by now
                if not part.path.exists():
                    encoder.make(part, pool)
                    bar.update(len(part.ids) if self.config.several else 0)
