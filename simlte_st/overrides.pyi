"""Settings as keyword arguments, for type checkers. Made by ``make overrides``."""

import collections.abc
import os
import typing
from typing import TypedDict

import simlte_st.data.drawing
import simlte_st.data.segmenters
import simlte_st.training.config

class AddOverrides(TypedDict, total=False):
    device: str | collections.abc.Sequence[str] | None
    engine: typing.Literal["local", "ray"]
    actors: int | None
    address: str | None
    language: str | None
    batch_size: int
    columns: collections.abc.Sequence[str] | None
    dates: collections.abc.Sequence[str] | None
    sync: bool
    progress: bool

class CompareOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    drop_boilerplate: bool
    progress: bool
    seed: int
    device: str | None
    probe: str | None
    sample: int
    minutes: float | None

class ConvertOverrides(TypedDict, total=False):
    overwrite: bool
    max_length: int | None
    backbone: str | None
    pooling: typing.Literal["keep", "cls", "mean"]

class DedupeOverrides(TypedDict, total=False):
    progress: bool
    overwrite: bool
    similarity: float
    near: bool

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
    similarity: float
    language: str | None
    label: str | None
    title: str | None
    topics: int | None
    batch_size: int
    redundancy: bool

class ExportOverrides(TypedDict, total=False):
    overwrite: bool
    int8: bool

class LanguageOverrides(TypedDict, total=False):
    language: str | None

class LinkOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]
    rerank: typing.Any
    explain: bool

class LinkEachOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]
    rerank: typing.Any

class LsaOverrides(TypedDict, total=False):
    device: str | None
    progress: bool
    overwrite: bool
    seed: int
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    drop_boilerplate: bool
    dimension: int

class OverwriteOverrides(TypedDict, total=False):
    overwrite: bool

class PresetOverrides(TypedDict, total=False):
    view: simlte_st.data.drawing.View
    batch_size: int
    batch_tokens: int | None
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
    mlm_share: float
    mini_batch_num_tokens: int | None
    pooling: typing.Literal["cls", "mean", "keep"]
    dropout: float | None
    attention_dropout: float | None
    max_view_length: int | None
    max_length: int | typing.Literal["base"] | None
    backbone: str | None

class ProgressOverrides(TypedDict, total=False):
    progress: bool

class ReadOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    drop_boilerplate: bool

class ResumeOverrides(TypedDict, total=False):
    overwrite: bool
    resume: bool

class RunningOverrides(TypedDict, total=False):
    overwrite: bool
    resume: bool
    progress: bool
    device: str | None
    stream: bool
    held_out: float
    probe: str | None
    report: bool
    bf16: bool | None
    workers: int
    save_steps: int | None

class SearchOverrides(TypedDict, total=False):
    top_k: int | None
    threshold: float | None
    where: str | None
    mode: typing.Literal["hybrid", "dense", "text"]
    rerank: typing.Any
    explain: bool

class SeedOverrides(TypedDict, total=False):
    seed: int

class SimilarityOverrides(TypedDict, total=False):
    similarity: float

class SourceOverrides(TypedDict, total=False):
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    drop_boilerplate: bool
    label_column: str | None
    max_characters: int
    metadata: bool

class StaticOverrides(TypedDict, total=False):
    device: str | None
    progress: bool
    overwrite: bool
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    drop_boilerplate: bool
    dimension: int
    words: int

class TrainOverrides(TypedDict, total=False):
    seed: int
    base: str | os.PathLike[str] | None
    static: bool | None
    preset: str | simlte_st.training.config.Preset
    settings: collections.abc.Mapping[str, typing.Any]
    segmenter: str | simlte_st.data.segmenters.Segmenter
    max_steps: int | None
    lsa: int | None
    keep: typing.Literal["verdict", "trained"]
    text_column: str | None
    id_column: str | None
    encoding: str
    limit: int | None
    mails: bool
    drop_quotes: bool
    drop_boilerplate: bool
    overwrite: bool
    resume: bool
    progress: bool
    device: str | None
    stream: bool
    held_out: float
    probe: str | None
    report: bool
    bf16: bool | None
    workers: int
    save_steps: int | None
    view: simlte_st.data.drawing.View | None
    batch_size: int | None
    batch_tokens: int | None
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
    mlm_share: float | None
    mini_batch_num_tokens: int | None
    pooling: typing.Literal["cls", "mean", "keep"] | None
    dropout: float | None
    attention_dropout: float | None
    max_view_length: int | None
    max_length: int | typing.Literal["base"] | None
    backbone: str | None

class TrainingOverrides(TypedDict, total=False):
    seed: int
    base: str | os.PathLike[str] | None
    static: bool | None
    preset: str | simlte_st.training.config.Preset
    settings: collections.abc.Mapping[str, typing.Any]
    segmenter: str | simlte_st.data.segmenters.Segmenter
    max_steps: int | None
    lsa: int | None
    keep: typing.Literal["verdict", "trained"]
