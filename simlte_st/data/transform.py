"""DocSplit as a transform of a ``datasets.Dataset``, for the unmodified SentenceTransformerTrainer."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from typing import Any

from datasets import Dataset
from sentence_transformers import SentenceTransformer

from simlte_st.compat import view_budget
from simlte_st.data.corpus import write_corpus
from simlte_st.data.documents import read_documents
from simlte_st.data.epochs import EpochClock
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import estimate_tokens, tokenizer_counter
from simlte_st.data.views import DocSplit, View
from simlte_st.errors import ConfigurationError

logger = logging.getLogger(__name__)


class DocSplitTransform:
    """Gives a data set of documents the columns ``anchor`` and ``positive``, drawn anew each epoch.

    Args:
        view: How to draw the two views.
        model: The model to train; tells how many tokens fit a view. Without it documents are not windowed, and the
            tokenizer cuts what is too long.
        seed: The run's seed.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.

    Example:
        ::

            views = DocSplitTransform(model=model)
            trainer = SentenceTransformerTrainer(
                model=model, train_dataset=views.attach(dataset), loss=loss, callbacks=[views.callback]
            )
    """

    def __init__(
        self,
        view: View | None = None,
        *,
        model: SentenceTransformer | None = None,
        seed: int = 0,
        segmenter: str | Segmenter = "punkt",
    ) -> None:
        self.segmenter = segmenter
        self._files: list[tempfile.TemporaryDirectory[str]] = []
        self._count = estimate_tokens if model is None else tokenizer_counter(model.tokenizer)
        self.drawer = PairDrawer(
            view=DocSplit() if view is None else view,
            seed=seed,
            budget=None if model is None else view_budget(model),
        )

    @property
    def callback(self) -> EpochClock:
        """The callback through which the Trainer tells the epoch. Without it every epoch sees the same views."""
        return self.drawer.clock

    def attach(self, dataset: Dataset, text_column: str | None = None, id_column: str | None = None) -> Dataset:
        """Segment a data set once and set the transform.

        Args:
            dataset: A data set with a text column.
            text_column: Its name; found where not given (see :func:`~simlte_st.data.read_documents`).
            id_column: The column of ids, likewise; rows are numbered where there is none.

        Returns:
            A data set whose rows read as ``{"anchor": str, "positive": str}``. Documents that the view cannot use
            are left out, and the log says how many.

        Raises:
            ConfigurationError: ``dataset`` is not a ``datasets.Dataset``.
            DataError: No text column was found.
            EmptyCorpusError: Fewer than two documents can be used.
        """
        if not isinstance(dataset, Dataset):
            raise ConfigurationError(
                f"attach() takes a datasets.Dataset, not {type(dataset).__name__}: views are drawn at each access, "
                "which an IterableDataset has no way to do. Use simlte_st.train() for streams."
            )
        reader = read_documents(dataset, text_column=text_column, id_column=id_column)
        # The Arrow files live as long as the transform, which the data sets it returns hold on to.
        files = tempfile.TemporaryDirectory(prefix="simlte-views-")
        self._files.append(files)
        segmented, report = write_corpus(
            reader, files.name, view=self.drawer.view, segmenter=self.segmenter, count_tokens=self._count
        )
        if report.left_out:
            logger.warning("Left out of training: %s.", report.left_out)
        self.drawer.documents = (self.drawer.documents or 0) + len(segmented)
        return segmented.with_transform(self)

    def __call__(self, batch: Mapping[str, list[Any]]) -> dict[str, list[str]]:
        """Draw the views of a batch of segmented documents, in the current epoch."""
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        pairs = self.drawer.draw(rows)
        return {"anchor": [pair.anchor for pair in pairs], "positive": [pair.positive for pair in pairs]}
