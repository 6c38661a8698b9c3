"""The papers' data sets by name, in the forms they really come in."""

from __future__ import annotations

from simlte_st.datasets.benchmark import Benchmark, Card, CitationBenchmark, PrintedStatistics
from simlte_st.datasets.loading import load_benchmark, read_benchmark
from simlte_st.datasets.sets import SETS
from simlte_st.datasets.statistics import Statistics, statistics, statistics_table

__all__ = [
    "SETS",
    "Benchmark",
    "Card",
    "CitationBenchmark",
    "PrintedStatistics",
    "Statistics",
    "load_benchmark",
    "read_benchmark",
    "statistics",
    "statistics_table",
]
