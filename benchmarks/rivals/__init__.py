"""Other objectives than DocSplit's, trained from the same base on the same documents with the same budget."""

from __future__ import annotations

from benchmarks.rivals.train import RIVALS, train_rival

__all__ = ["RIVALS", "train_rival"]
