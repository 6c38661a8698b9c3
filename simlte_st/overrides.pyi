"""Settings as keyword arguments, for type checkers. Made by ``make overrides``."""

import collections.abc
import os
import typing
from typing import TypedDict

import simlte_st.data.drawing
import simlte_st.data.segmenters
import simlte_st.training.config

class EngineOverrides(TypedDict, total=False):
    device: str | collections.abc.Sequence[str] | None
    engine: typing.Literal["local", "ray"]
    actors: int | None
    address: str | None

class LanguageOverrides(TypedDict, total=False):
    language: str | None

class AddOverrides(LanguageOverrides, EngineOverrides, total=False):
    batch_size: int
    columns: collections.abc.Sequence[str] | None
    dates: collections.abc.Sequence[str] | None
    sync: bool
    progress: bool

class ReadOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    html: bool

class ProgressOverrides(TypedDict, total=False):
    progress: bool

class SeedOverrides(TypedDict, total=False):
    seed: int

class DeviceOverrides(TypedDict, total=False):
    device: str | None

class CompareOverrides(DeviceOverrides, SeedOverrides, ProgressOverrides, ReadOverrides, total=False):
    probe: str | None
    sample: int

class OverwriteOverrides(TypedDict, total=False):
    overwrite: bool

class ConvertOverrides(OverwriteOverrides, total=False):
    max_length: int | None
    backbone: str | None
    pooling: typing.Literal["keep", "cls", "mean"]

class SimilarityOverrides(TypedDict, total=False):
    similarity: float

class DedupeOverrides(SimilarityOverrides, OverwriteOverrides, ProgressOverrides, total=False):
    near: bool

class ResumeOverrides(OverwriteOverrides, total=False):
    resume: bool

class EncodeOverrides(EngineOverrides, ResumeOverrides, ProgressOverrides, total=False):
    batch_size: int
    normalize: bool
    part_size: int

class EvaluateOverrides(SeedOverrides, ProgressOverrides, total=False):
    shots: int
    draws: int
    max_seq_length: int | None
    segmenter: str | simlte_st.data.segmenters.Segmenter
    batch_size: int

class ExploreOverrides(
    LanguageOverrides,
    SimilarityOverrides,
    OverwriteOverrides,
    DeviceOverrides,
    SeedOverrides,
    ProgressOverrides,
    total=False,
):
    label: str | None
    title: str | None
    topics: int | None
    batch_size: int

class ExportOverrides(OverwriteOverrides, total=False):
    int8: bool

class LinkEachOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]
    rerank: typing.Any

class LsaOverrides(ReadOverrides, SeedOverrides, OverwriteOverrides, ProgressOverrides, DeviceOverrides, total=False):
    dimension: int

class PresetOverrides(TypedDict, total=False):
    view: simlte_st.data.drawing.View
    batch_size: int
    learning_rate: float
    warmup: float
    epochs: float
    steps: int | None
    most_passes: float | None
    scale: float
    symmetric: bool
    mlm_weight: float
    mlm_probability: float
    mlm_input: typing.Literal["separate", "shared"]
    mini_batch_num_tokens: int | None
    pooling: typing.Literal["cls", "mean", "keep"]
    dropout: float | None
    attention_dropout: float | None
    max_view_length: int | None
    max_length: int | typing.Literal["base"] | None
    backbone: str | None

class RunningOverrides(DeviceOverrides, ProgressOverrides, ResumeOverrides, total=False):
    stream: bool
    held_out: float
    probe: str | None
    report: bool
    bf16: bool | None
    workers: int
    save_steps: int | None

class SearchOverrides(LinkEachOverrides, total=False):
    explain: bool

class SourceOverrides(ReadOverrides, total=False):
    label_column: str | None
    max_characters: int
    metadata: bool

class StaticOverrides(ReadOverrides, OverwriteOverrides, ProgressOverrides, DeviceOverrides, total=False):
    dimension: int
    words: int

class TrainingOverrides(SeedOverrides, total=False):
    base: str | os.PathLike[str] | None
    static: bool | None
    preset: str | simlte_st.training.config.Preset
    settings: collections.abc.Mapping[str, typing.Any]
    segmenter: str | simlte_st.data.segmenters.Segmenter
    max_steps: int | None
    lsa: int | None
    keep: typing.Literal["verdict", "trained"]

class TrainOverrides(RunningOverrides, ReadOverrides, TrainingOverrides, total=False):
    view: simlte_st.data.drawing.View | None
    batch_size: int | None
    learning_rate: float | None
    warmup: float | None
    epochs: float | None
    steps: int | None
    most_passes: float | None
    scale: float | None
    symmetric: bool | None
    mlm_weight: float | None
    mlm_probability: float | None
    mlm_input: typing.Literal["separate", "shared"] | None
    mini_batch_num_tokens: int | None
    pooling: typing.Literal["cls", "mean", "keep"] | None
    dropout: float | None
    attention_dropout: float | None
    max_view_length: int | None
    max_length: int | typing.Literal["base"] | None
    backbone: str | None
