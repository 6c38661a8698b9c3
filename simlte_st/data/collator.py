"""Segmented documents to model inputs: the collator of ``simlte train``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

from simlte_st.data.pairs import PairDrawer


@dataclass
class DocSplitCollator(SentenceTransformerDataCollator):
    """Draws the views of a batch of segmented documents and tokenizes them, as the stock collator does.

    Rows are those of :func:`~simlte_st.data.corpus.write_corpus`. The batch has the columns ``anchor`` and
    ``positive``, and from there on all is stock: prompts, padding, column names.

    Args:
        drawer: Draws the views; give its ``clock`` to the Trainer as a callback.
    """

    drawer: PairDrawer = field(default_factory=PairDrawer)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Make a batch."""
        pairs = self.drawer.draw(features)
        batch: dict[str, Any] = super().__call__([{"anchor": pair.anchor, "positive": pair.positive} for pair in pairs])
        return batch
