"""DocSplit and competing training objectives, on the same base, documents and budget."""

from __future__ import annotations

from benchmarks.rivals.train import RIVALS, train_rival

__all__ = ["RIVALS", "train_rival"]
