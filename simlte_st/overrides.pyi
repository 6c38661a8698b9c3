"""Settings as keyword arguments, for type checkers. Made by ``make overrides``."""

import collections.abc
import typing
from typing import TypedDict

class ConvertOverrides(TypedDict, total=False):
    overwrite: bool
    max_length: int | None
    backbone: str | None
    pooling: typing.Literal["keep", "cls", "mean"]

class DeviceOverrides(TypedDict, total=False):
    device: str | None

class EncodeOverrides(TypedDict, total=False):
    progress: bool
    overwrite: bool
    resume: bool
    device: str | collections.abc.Sequence[str] | None
    engine: typing.Literal["local", "ray"]
    actors: int | None
    address: str | None
    batch_size: int
    normalize: bool
    part_size: int

class EngineOverrides(TypedDict, total=False):
    device: str | collections.abc.Sequence[str] | None
    engine: typing.Literal["local", "ray"]
    actors: int | None
    address: str | None

class ExploreOverrides(TypedDict, total=False):
    progress: bool
    seed: int
    device: str | None
    overwrite: bool
    label: str | None
    title: str | None
    topics: int | None
    similarity: float
    batch_size: int

class ExportOverrides(TypedDict, total=False):
    overwrite: bool
    int8: bool

class LsaOverrides(TypedDict, total=False):
    device: str | None
    progress: bool
    overwrite: bool
    seed: int
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    dimension: int

class OverwriteOverrides(TypedDict, total=False):
    overwrite: bool

class ProgressOverrides(TypedDict, total=False):
    progress: bool

class ReadOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None

class ResumeOverrides(TypedDict, total=False):
    overwrite: bool
    resume: bool

class SeedOverrides(TypedDict, total=False):
    seed: int
