"""Benchmarks: each writes its numbers to ``results/``, with the command that made them."""
