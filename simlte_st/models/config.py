"""Settings of what loads models and encodes with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from simlte_st.config import (
    Config,
    DeviceConfig,
    OverwriteConfig,
    ProgressConfig,
    ResumeConfig,
    SeedConfig,
    setting,
)
from simlte_st.data.config import ReadConfig
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
class EncodeConfig(EngineConfig, ResumeConfig, ProgressConfig):
    """How documents are encoded into a table of vectors."""

    batch_size: int = setting(
        32, "number of the longest texts that are encoded together; of shorter texts more", decisive=False
    )
    normalize: bool = setting(False, "scale vectors to length 1")
    part_size: int = setting(1024, "documents in a part, which is what an interruption can lose")


@dataclass(frozen=True, kw_only=True)
class ExportConfig(OverwriteConfig):
    """How a model is exported."""

    int8: bool = setting(False, "quantise the encoder to 8 bits: a quarter of the size")

    def __post_init__(self) -> None:
        super().__post_init__()
        for package in ("onnx", "onnxruntime"):
            check_installed(package, "onnx", "exporting to ONNX")


@dataclass(frozen=True, kw_only=True)
class LsaConfig(ReadConfig, SeedConfig, OverwriteConfig, ProgressConfig, DeviceConfig):
    """How a latent semantic analysis of documents is appended to a model."""

    heading: ClassVar[str] = "instead of a conversion"

    dimension: int = setting(256, "dimensions to append; fewer if there are few documents")


@dataclass(frozen=True, kw_only=True)
class StaticConfig(ReadConfig, OverwriteConfig, ProgressConfig, DeviceConfig):
    """How a model is distilled to a static one: one vector for each token, whose mean is a text's."""

    heading: ClassVar[str] = "static embeddings"

    dimension: int = setting(256, "dimensions; no more than the base has")
    # On 20 Newsgroups, macro-F1 with 5 labels a class is 44.1 without words, 45.6 with 500 and 44.8 with 2,000.
    words: int = setting(
        500, "words of the documents to give a vector of their own, if the tokenizer cuts them into pieces", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for package in ("skeletoken", "model2vec"):
            check_installed(package, "static", "distilling a static model")
