"""How far a candidate for a verdict can be trusted, over all encoders of all sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks.bank.make import BASE

Judged = Mapping[str, Sequence[Mapping[str, Any]]]
"""What :func:`~benchmarks.bank.judge.judge` gave, by set."""


def rank_correlation(judged: Judged, candidate: str, outcome: str) -> dict[str, float]:
    """Spearman's correlation of a candidate with an outcome over the encoders of each set that has it."""
    found = {}
    for name, entries in judged.items():
        if outcome in entries[0]["outcomes"]:
            pairs = [(e["candidates"][candidate]["value"], e["outcomes"][outcome]["value"]) for e in entries]
            found[name] = float(spearmanr(*zip(*pairs, strict=True)).statistic)
    return found


def said(entry: Mapping[str, Any], candidate: str) -> int:
    """What a candidate says of an encoder: 1 helped, -1 hurt, 0 no clear difference."""
    return _sign(entry["candidates"][candidate])


def happened(entry: Mapping[str, Any]) -> int:
    """What labels say: 1 where an outcome is clearly better than the base's and none clearly worse; -1 the reverse."""
    signs = [_sign(value) for value in entry["outcomes"].values()]
    return 0 if min(signs) < 0 < max(signs) else min(signs) or max(signs)


def _sign(value: Mapping[str, float]) -> int:
    return int(value["low"] > 0) - int(value["high"] < 0)


def signs_right(judged: Judged, candidate: str) -> dict[str, float]:
    """Share of the encoders of each set that labels tell from the base where a candidate is on their side of it."""
    found = {}
    for name, entries in judged.items():
        clear = [entry for entry in entries if entry["recipe"] != BASE and happened(entry)]
        if clear:
            right = [np.sign(entry["candidates"][candidate]["difference"]) == happened(entry) for entry in clear]
            found[name] = float(np.mean(right))
    return found


def confusion(judged: Judged, candidate: str) -> np.ndarray:
    """Count encoders by what a candidate says (rows) and labels say (columns): hurt, no clear difference, helped."""
    table = np.zeros((3, 3), dtype=np.int64)
    for entries in judged.values():
        for entry in entries:
            if entry["recipe"] != BASE:
                table[said(entry, candidate) + 1, happened(entry) + 1] += 1
    return table
