"""AST's printed Tables 1 and 2, in percent."""

from __future__ import annotations

from benchmarks.papers.linking import PRINTED_RANKS

_TABLE_1 = {
    "CNN": (100.0, 99.00, 97.50, 90.40, 84.80, 68.65, 55.53),
    "GRU": (98.00, 96.00, 92.00, 88.00, 79.80, 62.25, 49.93),
    "Bi-GRU": (98.00, 99.00, 96.50, 92.60, 83.70, 67.25, 54.27),
    "AST": (100.0, 96.00, 94.50, 92.40, 84.80, 70.00, 57.90),
}

R_PRECISION = {name: dict(zip(PRINTED_RANKS, row, strict=True)) for name, row in _TABLE_1.items()}
"""Precision by encoder and number of retrieved pairs: Table 1."""

AVERAGES = {
    "GRU": {"map": 43.53, "roc_auc": 96.03, "mrp": 76.68},
    "Bi-GRU": {"map": 47.58, "roc_auc": 96.05, "mrp": 80.29},
    "CNN": {"map": 49.81, "roc_auc": 97.09, "mrp": 81.05},
    "AST": {"map": 53.01, "roc_auc": 97.50, "mrp": 81.31},
}
"""Averages by encoder: Table 2.

According to the paper, "mRP is simply the r-Precision over all thresholds in Table 1". But the means of Table 1's rows
are different (CNN 85.13, GRU 80.85, Bi-GRU 84.47, AST 85.09) and put CNN before AST.
"""
