"""The papers' experiments as one grid: systems, data sets, experiments; run by ``python -m benchmarks.paper``."""
