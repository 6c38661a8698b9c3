"""AST's printed Tables 1 and 2, in percent."""

from __future__ import annotations

import pandas as pd

from benchmarks.papers.linking import PRINTED_RANKS

R_PRECISION = pd.DataFrame(
    {
        "CNN": (100.0, 99.00, 97.50, 90.40, 84.80, 68.65, 55.53),
        "GRU": (98.00, 96.00, 92.00, 88.00, 79.80, 62.25, 49.93),
        "Bi-GRU": (98.00, 99.00, 96.50, 92.60, 83.70, 67.25, 54.27),
        "AST": (100.0, 96.00, 94.50, 92.40, 84.80, 70.00, 57.90),
    },
    index=PRINTED_RANKS,
).T
"""Precision by encoder and number of retrieved pairs: Table 1."""

AVERAGES = pd.DataFrame(
    {
        "GRU": (43.53, 96.03, 76.68),
        "Bi-GRU": (47.58, 96.05, 80.29),
        "CNN": (49.81, 97.09, 81.05),
        "AST": (53.01, 97.50, 81.31),
    },
    index=["mAP", "ROC-AUC", "mRP"],
).T
"""Averages by encoder: Table 2.

According to the paper, "mRP is simply the r-Precision over all thresholds in Table 1". But the means of Table 1's rows
are different (CNN 85.13, GRU 80.85, Bi-GRU 84.47, AST 85.09) and put CNN before AST.
"""
