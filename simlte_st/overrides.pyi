"""Settings as keyword arguments, for type checkers. Made by ``make overrides``."""

import collections.abc
import typing
from typing import TypedDict

import simlte_st.data.segmenters

class AddOverrides(TypedDict, total=False):
    device: str | collections.abc.Sequence[str] | None
    engine: typing.Literal["local", "ray"]
    actors: int | None
    address: str | None
    batch_size: int
    sync: bool
    progress: bool

class CompareOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    progress: bool
    seed: int
    device: str | None
    probe: str | None
    sample: int

class ConvertOverrides(TypedDict, total=False):
    overwrite: bool
    max_length: int | None
    backbone: str | None
    pooling: typing.Literal["keep", "cls", "mean"]

class DedupeOverrides(TypedDict, total=False):
    progress: bool
    seed: int
    overwrite: bool
    near: bool
    similarity: float

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

class EvaluateOverrides(TypedDict, total=False):
    progress: bool
    seed: int
    shots: int
    draws: int
    head: typing.Literal["mlp", "logistic"]
    max_seq_length: int | None
    segmenter: str | simlte_st.data.segmenters.Segmenter
    batch_size: int

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

class LinkOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]
    explain: bool

class LinkEachOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]

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

class SearchOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]
    explain: bool

class SeedOverrides(TypedDict, total=False):
    seed: int

class SourceOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    label_column: str | None
    max_characters: int
    metadata: bool
