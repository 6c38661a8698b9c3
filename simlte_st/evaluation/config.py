"""Settings of what measures models."""

from __future__ import annotations

from dataclasses import dataclass

from simlte_st.config import DeviceConfig, ProgressConfig, SeedConfig, setting
from simlte_st.data.config import ReadConfig
from simlte_st.data.sentences import Segmenter


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig(SeedConfig, ProgressConfig):
    """How models are measured on documents, with labels or without."""

    shots: int = setting(5, "labelled documents of each class that a few-shot probe learns from")
    draws: int = setting(10, "number of few-shot probes, each with other documents")
    max_seq_length: int | None = setting(None, "tokens that the probes read of a text", default_help="as the model")
    segmenter: str | Segmenter = setting("punkt", "punkt, or a callable", option=False)
    batch_size: int = setting(32, "texts that are encoded together")


@dataclass(frozen=True, kw_only=True)
class CompareConfig(DeviceConfig, SeedConfig, ProgressConfig, ReadConfig):
    """How settings are compared on a sample of documents."""

    probe: str | None = setting(
        None,
        "column of classes, folders or tags: probes with a few labels decide which setting is best",
        metavar="COLUMN",
        default_help="no probes",
    )
    sample: int = setting(500, "documents to compare on at most; fewer of long ones, but at least 100", least=2)
