"""Rows of segmented documents to pairs of views: what the transform and the collator have in common."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simlte_st.data.document import SegmentedDocument
from simlte_st.data.epochs import EpochClock
from simlte_st.data.tokenized_document import TokenizedDocument, TokenPair, TokenView
from simlte_st.data.views import DocSplit, View, ViewPair, draw_sides, draw_views

logger = logging.getLogger(__name__)

COLUMNS = ("id", "sentences", "paragraphs", "tokens")
"""Columns of a data set of segmented documents."""


def to_row(document: SegmentedDocument) -> dict[str, Any]:
    """Make a data set row of a segmented document."""
    return {name: _plain(getattr(document, name)) for name in COLUMNS}


def from_row(row: Mapping[str, Any]) -> SegmentedDocument:
    """Make a segmented document of a data set row."""
    return SegmentedDocument(row["id"], tuple(row["sentences"]), tuple(row["paragraphs"]), tuple(row["tokens"]))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


@dataclass
class PairDrawer:
    """Draws the views of rows in the clock's epoch.

    Args:
        view: How to draw.
        seed: The run's seed.
        budget: Tokens that one view may hold; None for no bound.
        clock: Tells the epoch.
        documents: Size of the data set, to notice that epochs pass which nobody tells the clock about.
    """

    view: View = field(default_factory=DocSplit)
    seed: int = 0
    budget: int | None = None
    clock: EpochClock = field(default_factory=EpochClock)
    documents: int | None = None
    _drawn: int = field(default=0, init=False, repr=False)

    def draw(self, rows: Sequence[Mapping[str, Any]]) -> list[ViewPair]:
        """Draw one pair a row; rows that the view does not accept are left out."""
        epoch = self._turn(len(rows))
        pairs = (draw_views(from_row(row), self.view, seed=self.seed, epoch=epoch, budget=self.budget) for row in rows)
        return [pair for pair in pairs if pair is not None]

    def draw_tokens(self, documents: Sequence[TokenizedDocument]) -> list[TokenPair]:
        """Draw one pair a document, as token ids; documents that the view does not accept are left out."""
        epoch = self._turn(len(documents))
        pairs = []
        for document in documents:
            sides = draw_sides(document, self.view, seed=self.seed, epoch=epoch, budget=self.budget)
            if sides is not None:
                pairs.append(TokenPair(TokenView(document, sides[0]), TokenView(document, sides[1])))
        return pairs

    def _turn(self, number: int) -> int:
        """Count documents drawn, and tell the epoch."""
        self._drawn += number
        if self.documents is not None and self._drawn > self.documents and not self.clock.connected:
            self.documents = None  # warn once
            logger.warning(
                "More views were drawn than there are documents, and no Trainer tells the epoch: "
                "every epoch gets the same views. Pass callbacks=[views.callback] to the Trainer."
            )
        return self.clock.epoch
