"""What encodes documents: this process, one process on each of several devices, or actors of Ray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from simlte_st.arguments import Count, check_fields
from simlte_st.errors import ConfigurationError
from simlte_st.extras import check_installed


@dataclass(frozen=True)
class Engine:
    """Where documents are encoded.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``; several share the work; None for a GPU, if there is
            one.
        engine: This process and its devices (``"local"``), or actors of Ray on one machine or many (``"ray"``).
        actors: Number of actors of Ray, each with a CPU and, if there are any, a GPU; None for as many as fit.
        address: Address of a Ray cluster; None for one that runs here, else a new one.

    Raises:
        ConfigurationError: An option of Ray without ``engine="ray"``, or a device that Ray chooses itself.
        MissingExtraError: ``engine="ray"``, and the extra ``ray`` is not installed.
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
                raise ConfigurationError(
                    f"device={self.device!r}: with engine='ray' it is 'cpu' or 'cuda'; Ray chooses which."
                )
            return
        for name, value in (("actors", self.actors), ("address", self.address)):
            if value is not None:
                raise ConfigurationError(f"{name}={value!r} is an option of engine='ray'.")

    @property
    def several(self) -> list[str]:
        """The devices, where several share the work of this process."""
        return [] if self.device is None or isinstance(self.device, str) else list(self.device)

    @property
    def elsewhere(self) -> bool:
        """Whether processes other than this one encode."""
        return self.engine == "ray" or bool(self.several)

    @property
    def loading_device(self) -> str | None:
        """Where to load the model, which decides its dtype; copies of it go to other processes by the CPU."""
        if self.engine == "ray":  # which may have GPUs where this process has none
            return "cpu" if self.device == "cpu" else None
        if not self.several:
            return self.device  # type: ignore[return-value]
        return next((each for each in self.several if each.split(":")[0] == "cpu"), self.several[0])
