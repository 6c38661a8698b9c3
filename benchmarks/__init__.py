"""Benchmarks, each with its command; results go to ``results/``."""
