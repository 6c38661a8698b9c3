"""AST's printed Tables 1 and 2, in percent."""

from __future__ import annotations

from benchmarks.pages import read_printed

R_PRECISION = read_printed("ast_r_precision").rename(columns=int)
"""Precision by encoder and number of retrieved pairs: Table 1."""

AVERAGES = read_printed("ast_averages")
"""Averages by encoder: Table 2.

According to the paper, "mRP is simply the r-Precision over all thresholds in Table 1". But the means of Table 1's rows
are different (CNN 85.13, GRU 80.85, Bi-GRU 84.47, AST 85.09) and put CNN before AST.
"""
