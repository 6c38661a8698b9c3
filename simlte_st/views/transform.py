"""Train with DocSplit views: a data set transform for the unmodified Trainer, and ``InputExample``s for ``fit``.

``SentenceTransformer.fit`` reads its data loaders once and keeps the texts, so a loader cannot return new views in the
next epoch. However, ``fit`` accepts several (loader, loss) pairs and takes a batch from each in turn. With one loader
per epoch, a single call of ``fit`` trains for several epochs of fresh views, with one optimizer and one learning-rate
schedule. No batch contains two pairs from the same document, which would be false negatives.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.readers import InputExample
from torch import nn
from torch.utils.data import DataLoader
from transformers import TrainerCallback, TrainerState

from simlte_st.arguments import Count, CountOrZero, Plural, Seed, check_arguments
from simlte_st.compat import view_budget
from simlte_st.errors import EmptyCorpusError
from simlte_st.prompts import document_prompt
from simlte_st.reading.document import Document, DocumentSource, SegmentedDocument
from simlte_st.reading.documents import format_reason, read_documents
from simlte_st.views.corpus import CorpusReport, from_rows, too_few_documents, write_corpus
from simlte_st.views.views import DocSplit, View, ViewPair, draw_views
from simlte_st.words.sentences import Segmenter, estimate_tokens, segment_stream, tokenizer_counter

logger = logging.getLogger(__name__)


class EpochClock(TrainerCallback):
    """Trainer callback that passes the current epoch to data-loading processes.

    The epoch is kept in shared memory, so that workers started in earlier epochs see it too. The class is defined here,
    not with the other callbacks in ``training/``, because every transform has one.
    """

    def __init__(self) -> None:
        self._epoch = torch.tensor(-1).share_memory_()  # -1 until a Trainer sets it

    @property
    def epoch(self) -> int:
        """The current epoch, starting at 0."""
        return max(0, int(self._epoch))

    @epoch.setter
    def epoch(self, value: int) -> None:
        self._epoch.fill_(value)

    @property
    def is_connected(self) -> bool:
        """Whether a Trainer has set the epoch through this callback."""
        return int(self._epoch) >= 0

    def on_init_end(self, *args: object, **kwargs: object) -> None:
        """Connect to a Trainer; this comes first, because its model card needs views before training starts."""
        self.epoch = self.epoch

    on_train_begin = on_init_end  # in case the callback was added by ``add_callback``

    def on_epoch_begin(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """Set the epoch, rounded down: a run that resumes at ``state.epoch`` 2.4 is in epoch 2."""
        self.epoch = int((state.epoch or 0.0) + 1e-6)


class DocSplitTransform:
    """Turn documents into the columns ``anchor`` and ``positive``: two views, drawn anew in each epoch.

    The views depend only on the seed, the epoch and the document. The Trainer sets the epoch through ``callback``,
    including in data-loading processes.

    Args:
        view: How to draw the two views (default: ``DocSplit()``).
        model: Model to train. It determines the maximum length of a view, which leaves room for the model's document
            prompt (set ``prompts=`` in the training arguments). Without a model, views of long documents are not drawn
            from a window; the tokenizer truncates them instead.
        seed: Random seed.
        segmenter: Sentence splitter: ``"punkt"`` or a callable.

    Attributes:
        budget: Maximum number of tokens in a view, excluding special tokens; None for no limit.
        count_tokens: Function that counts the model's tokens in sentences.
        callback: Callback that sets the epoch, included in :func:`~simlte_st.trainer_callbacks`. Without this callback,
            every epoch trains on the same views, and a warning is logged.
        report: Counts of the documents in the latest call of :meth:`attach`; None before the first call.

    Example:
        ::

            views = DocSplitTransform(model=model)
            callbacks = trainer_callbacks(views, loss)
            SentenceTransformerTrainer(model, train_dataset=views.attach(documents), loss=loss, callbacks=callbacks)
    """

    @check_arguments
    def __init__(
        self,
        view: View | None = None,
        *,
        model: SentenceTransformer | None = None,
        seed: Seed = 0,
        segmenter: str | Segmenter = "punkt",
    ) -> None:
        self.view: View = DocSplit() if view is None else view
        self.seed, self.segmenter = seed, segmenter
        self.budget = None if model is None else view_budget(model)
        self.callback = EpochClock()
        self.report: CorpusReport | None = None
        self.count_tokens = estimate_tokens if model is None else tokenizer_counter(model.tokenizer)
        self._folders: list[tempfile.TemporaryDirectory[str]] = []
        self._document_count = self._view_count = 0

    def __deepcopy__(self, memo: dict[int, object]) -> DocSplitTransform:
        return self  # datasets copies the transform with the format; all copies must share one callback

    def __getstate__(self) -> dict[str, object]:
        """Drop the state that data-loading processes do not need, since they draw views but do not segment texts."""
        return {**vars(self), "segmenter": None, "count_tokens": None, "_folders": []}

    def attach(
        self,
        documents: DocumentSource,
        *,
        directory: str | os.PathLike[str] | None = None,
        hold_out: Callable[[Iterable[Document]], Iterable[Document]] | None = None,
        progress: bool = False,
    ) -> Dataset:
        """Segment documents once and return a data set of their views.

        Args:
            documents: Anything :func:`~simlte_st.data.read_documents` accepts, such as a ``datasets.Dataset``, a folder
                or a list of strings; or the reader it returns, to choose columns.
            directory: Folder for the segmented documents (see :func:`~simlte_st.data.write_corpus`). If the folder
                already contains them, ``documents`` is not read. None for a temporary folder, which lives as long as
                the transform.
            hold_out: Function that holds out some of the documents (see :func:`~simlte_st.data.write_corpus`).
            progress: Show a progress bar.

        Returns:
            A memory-mapped data set with rows ``{"anchor": str, "positive": str}``. Exact duplicates and documents that
            the view cannot use are left out, and their number is logged.

        Raises:
            DataError: The documents cannot be read, or no text column was found.
            EmptyCorpusError: Fewer than two documents are usable.
        """
        if directory is None:
            folder = tempfile.TemporaryDirectory(prefix="simlte-views-")
            self._folders.append(folder)  # the data sets refer to this transform and so keep their files
            directory = folder.name
        corpus, self.report = write_corpus(
            documents,
            directory,
            view=self.view,
            segmenter=self.segmenter,
            count_tokens=self.count_tokens,
            hold_out=hold_out,
            progress=progress,
        )
        if self.report.left_out:
            left_out = (format_reason(reason, count) for reason, count in self.report.left_out.items())
            logger.warning("Left out of training: %s.", ", ".join(left_out))
        self._document_count += len(corpus)
        return corpus.with_transform(self)

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Draw the views of a batch of segmented documents in the current epoch, and keep the ``label`` column."""
        pairs = list(self.draw(from_rows(batch)))
        self._view_count += len(pairs)
        if self._view_count > self._document_count > 0 and not self.callback.is_connected:
            self._document_count = 0  # warn once
            logger.warning(
                "The documents are being read again, but no Trainer sets the epoch, so every epoch gets the same "
                "views. Pass callbacks=trainer_callbacks(views, loss) to the Trainer."
            )
        views = {"anchor": [pair.anchor for pair in pairs], "positive": [pair.positive for pair in pairs]}
        return {**views, "label": list(batch["label"])} if "label" in batch else views

    def draw(self, documents: Iterable[SegmentedDocument], epoch: int | None = None) -> Iterator[ViewPair]:
        """Draw the views of the documents that the view accepts in an epoch (default: the current epoch)."""
        epoch = self.callback.epoch if epoch is None else epoch
        for document in documents:
            if pair := draw_views(document, self.view, seed=self.seed, epoch=epoch, budget=self.budget):
                yield pair

    def segment(self, documents: DocumentSource) -> Iterator[SegmentedDocument]:
        """Read and segment documents one at a time."""
        return segment_stream(read_documents(documents), self.segmenter, self.count_tokens)[1]


@check_arguments
def docsplit_examples(
    documents: DocumentSource,
    view: View | None = None,
    seed: Seed = 0,
    epoch: CountOrZero = 0,
    *,
    model: SentenceTransformer | None = None,
    segmenter: str | Segmenter = "punkt",
) -> Iterator[InputExample]:
    """Yield an ``InputExample(texts=[view A, view B])`` for each document.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` accepts; read once, one at a time.
        view: How to draw the two views (default: ``DocSplit()``).
        seed: Random seed.
        epoch: Epoch; each epoch has different views of the same documents.
        model: Model to train. It determines the maximum length of a view, and its document prompt is put before each
            view. ``fit`` does not know about prompts, so an MLM loss also masks prompt tokens, and pooling includes
            them. Without a model, views of long documents are not drawn from a window; the tokenizer truncates them
            instead.
        segmenter: Sentence splitter: ``"punkt"`` or a callable.

    Yields:
        Examples in the order of the documents, with the document's id as ``guid``. Documents that are too short for two
        views are left out, and their number is logged.

    Raises:
        DataError: The documents cannot be read.
        EmptyCorpusError: No document is usable.
    """
    views = DocSplitTransform(view, model=model, seed=seed, segmenter=segmenter)
    total = usable = 0
    for total, document in enumerate(views.segment(documents), 1):  # noqa: B007
        for pair in views.draw([document], epoch):
            usable += 1
            yield _make_example(pair, model)
    if usable < total:
        logger.warning("Left out %d documents that are too short for %r.", total - usable, views.view)
    if not usable:
        raise EmptyCorpusError(f"None of the {total} documents is long enough for two views by {views.view!r}.")


@check_arguments
def docsplit_objectives(
    documents: DocumentSource,
    loss: nn.Module,
    *,
    epochs: Count = 1,
    batch_size: Plural = 36,
    view: View | None = None,
    seed: Seed = 0,
    model: SentenceTransformer | None = None,
    segmenter: str | Segmenter = "punkt",
) -> list[tuple[DataLoader[InputExample], nn.Module]]:
    """Return ``train_objectives`` that train ``SentenceTransformer.fit`` for several epochs of fresh views.

    Call ``model.fit(docsplit_objectives(documents, loss, epochs=3, model=model), epochs=1)``: the objectives already
    contain the three epochs.

    Args:
        documents: Documents, as for :func:`docsplit_examples`, but kept in memory.
        loss: Loss, shared by all epochs.
        epochs: Number of passes over the documents, each with its own views.
        batch_size: Number of documents per batch.
        view: How to draw the two views (default: ``DocSplit()``).
        seed: Random seed.
        model: Model to train, as for :func:`docsplit_examples`.
        segmenter: Sentence splitter: ``"punkt"`` or a callable.

    Returns:
        One (data loader, loss) pair per epoch.

    Raises:
        ConfigurationError: ``epochs`` is less than 1.
        EmptyCorpusError: Fewer than two documents are usable.
    """
    views = DocSplitTransform(view, model=model, seed=seed, segmenter=segmenter)
    usable = [document for document in views.segment(documents) if views.view.accepts(document)]
    if len(usable) < 2:
        raise EmptyCorpusError(too_few_documents(len(usable)))
    epoch_examples = ([_make_example(pair, model) for pair in views.draw(usable, epoch)] for epoch in range(epochs))
    return [(DataLoader(examples, batch_size=batch_size), loss) for examples in epoch_examples]  # type: ignore[arg-type]


def _make_example(pair: ViewPair, model: SentenceTransformer | None) -> InputExample:
    prompt = "" if model is None else document_prompt(model)
    return InputExample(guid=pair.id, texts=[prompt + pair.anchor, prompt + pair.positive])
