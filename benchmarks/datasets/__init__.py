"""The papers' data sets by name, read from their original formats."""

from __future__ import annotations

from benchmarks.datasets.loading import load_benchmark, load_citations
from benchmarks.datasets.sets import SETS

__all__ = ["SETS", "load_benchmark", "load_citations"]
