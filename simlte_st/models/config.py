"""Settings of what loads models and encodes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from simlte_st.backbones.registry import BACKBONES
from simlte_st.config import Config, OverwriteConfig, setting
from simlte_st.errors import ConfigurationError
from simlte_st.extras import check_installed


@dataclass(frozen=True, kw_only=True)
class EngineConfig(Config):
    """What encodes documents: this process, one on each of several devices, or actors of Ray."""

    heading: ClassVar[str] = "devices and machines"

    device: str | Sequence[str] | None = setting(
        None,
        "where the model computes: cpu, cuda, cuda:1 or mps; several share the work: cuda:0,cuda:1",
        metavar="NAME[,NAME]",
        default_help="a GPU, if there is one",
        decisive=False,
    )
    engine: Literal["local", "ray"] = setting(
        "local", "what computes: this process, or actors of Ray on one machine or many", decisive=False
    )
    actors: int | None = setting(
        None,
        "number of actors of Ray, each with a CPU and, if there are any, a GPU",
        default_help="as many as fit",
        decisive=False,
    )
    address: str | None = setting(
        None, "address of a Ray cluster", metavar="HOST:PORT", default_help="one that runs here, else a new one",
        decisive=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclass(frozen=True, kw_only=True)
class ConvertConfig(OverwriteConfig):
    """How a model becomes one that reads long documents, besides the settings of the backbone."""

    max_length: int | None = setting(
        None,
        "tokens that the new model reads",
        default_help="32,768 in chunks, 4,096 as a Longformer; for a stock Longformer as many as before",
    )
    backbone: str | None = setting(
        None,
        f"what the encoder becomes: {' or '.join(BACKBONES)}",
        metavar="NAME",
        default_help="chunk-mean; longformer if ``max_length=`` or one of its settings is given",
    )
    pooling: Literal["keep", "cls", "mean"] = setting("keep", "pooling of the new model; keep for the base's")
