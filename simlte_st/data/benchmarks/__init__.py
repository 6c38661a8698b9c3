"""The papers' data sets by name, in the forms they really come in."""

from __future__ import annotations

from simlte_st.data.benchmarks.benchmark import Benchmark, CitationBenchmark
from simlte_st.data.benchmarks.card import Card, PrintedStatistics
from simlte_st.data.benchmarks.loading import load_benchmark, read_benchmark
from simlte_st.data.benchmarks.registry import SETS
from simlte_st.data.benchmarks.statistics import Statistics, statistics, statistics_table

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
