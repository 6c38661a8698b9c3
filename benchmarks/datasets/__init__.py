"""The papers' data sets by name, in the forms they really come in."""

from __future__ import annotations

from benchmarks.datasets.benchmark import Benchmark, Card, CitationBenchmark, PrintedStatistics
from benchmarks.datasets.loading import load_benchmark
from benchmarks.datasets.sets import SETS
from benchmarks.datasets.statistics import Statistics, statistics, statistics_table

__all__ = [
    "SETS",
    "Benchmark",
    "Card",
    "CitationBenchmark",
    "PrintedStatistics",
    "Statistics",
    "load_benchmark",
    "statistics",
    "statistics_table",
]
