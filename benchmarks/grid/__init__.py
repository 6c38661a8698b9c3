"""The papers' experiments as a grid of systems, data sets and experiments: ``python -m benchmarks.paper``."""
