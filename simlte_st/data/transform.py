"""DocSplit for training: a transform of a data set for the unmodified Trainer, and ``InputExample`` s for ``fit``.

``SentenceTransformer.fit`` reads its data loaders once and keeps the texts, so a loader cannot give other views in
another epoch. But it takes several (loader, loss) pairs and draws a batch from each in turn. One loader per epoch, each
with its own views, gives several epochs in one ``fit``, with one optimizer and one learning-rate schedule; and no batch
holds two pairs of one document, which would be false negatives.
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
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from simlte_st.arguments import Count, CountOrZero, Seed, checked
from simlte_st.compat import view_budget
from simlte_st.data.corpus import CorpusReport, from_rows, too_few_documents, write_corpus
from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.documents import read_documents
from simlte_st.data.reader import counted
from simlte_st.data.sentences import Segmenter, estimate_tokens, segment_stream, tokenizer_counter
from simlte_st.data.views import DocSplit, View, ViewPair, draw_views
from simlte_st.errors import EmptyCorpusError
from simlte_st.prompts import document_prompt

logger = logging.getLogger(__name__)


class EpochClock(TrainerCallback):
    """A callback that knows the current epoch, also in processes that load data.

    The number is in shared memory: workers that were started before the epoch began see it too.
    """

    def __init__(self) -> None:
        self._epoch = torch.tensor(-1).share_memory_()  # -1 until a Trainer sets it

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return max(0, int(self._epoch))

    @epoch.setter
    def epoch(self, value: int) -> None:
        self._epoch.fill_(value)

    @property
    def connected(self) -> bool:
        """Whether the epoch was set, by a Trainer that has this callback."""
        return int(self._epoch) >= 0

    def on_init_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Note that a Trainer has this callback: it draws views for its model card before training begins."""
        self.epoch = self.epoch

    on_train_begin = on_init_end  # for callbacks that were added by ``add_callback``

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Set the epoch. A resumed run begins in the middle of one: ``state.epoch`` 2.4 is epoch 2."""
        self.epoch = int((state.epoch or 0.0) + 1e-6)


class DocSplitTransform:
    """Gives documents the columns ``anchor`` and ``positive``: two views of each, drawn anew in each epoch.

    The views depend on (seed, epoch, document) and nothing else. The Trainer sets the epoch through ``callback``, also
    in the processes that load data.

    Args:
        view: How to draw the two views; ``DocSplit()`` by default.
        model: The model to train, which decides how many tokens fit a view, beside its prompt for documents: that one
            is for ``prompts=`` of the training arguments. Without a model no window of long documents is chosen, and
            the tokenizer truncates the views.
        seed: The run's seed.
        segmenter: ``"punkt"`` or a callable.

    Attributes:
        budget: Tokens that one view may hold, special tokens not counted; None for no bound.
        callback: For the Trainer. Without it every epoch sees the same views, which is logged.
        report: What became of the documents of the latest :meth:`attach`; None before.

    Example:
        ::

            views = DocSplitTransform(model=model)
            trainer = SentenceTransformerTrainer(
                model=model, train_dataset=views.attach(documents), loss=loss, callbacks=[views.callback]
            )
    """

    @checked
    def __init__(
        self,
        view: View | None = None,
        *,
        model: SentenceTransformer | None = None,
        seed: Seed = 0,
        segmenter: str | Segmenter = "punkt",
    ) -> None:
        self.view: View = DocSplit() if view is None else view
        self.seed = seed
        self.segmenter = segmenter
        self.budget = None if model is None else view_budget(model)
        self.callback = EpochClock()
        self.report: CorpusReport | None = None
        self._count = estimate_tokens if model is None else tokenizer_counter(model.tokenizer)
        self._files: list[tempfile.TemporaryDirectory[str]] = []
        self._documents = self._drawn = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> DocSplitTransform:
        return self  # data sets are copied to change their format; the callback of the Trainer must stay the same

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what processes that load data do not need: they draw views, and segment nothing."""
        return {**self.__dict__, "segmenter": None, "_count": None, "_files": []}

    def attach(
        self,
        documents: Any,
        *,
        directory: str | os.PathLike[str] | None = None,
        hold_out: Callable[[Iterable[Document]], Iterable[Document]] | None = None,
        progress: bool = False,
    ) -> Dataset:
        """Segment documents once and set the transform.

        Args:
            documents: Anything :func:`~simlte_st.data.read_documents` takes: a ``datasets.Dataset``, a folder, a list
                of strings, ...; or the reader it returned, for other columns.
            directory: Folder for the segmented documents, see :func:`~simlte_st.data.write_corpus`; if it has them
                already, ``documents`` is not read. None for a temporary folder, which lives as long as the transform.
            hold_out: Keeps some of the documents out, see :func:`~simlte_st.data.write_corpus`.
            progress: Show a progress bar.

        Returns:
            A memory-mapped data set whose rows read as ``{"anchor": str, "positive": str}``. Documents that the view
            cannot use, and exact duplicates of others, are left out, which is logged.

        Raises:
            DataError: The documents cannot be read, or no text column was found.
            EmptyCorpusError: Fewer than two documents can be used.
        """
        if directory is None:
            files = tempfile.TemporaryDirectory(prefix="simlte-views-")
            self._files.append(files)  # the returned data sets refer to this transform, and so to their files
            directory = files.name
        corpus, self.report = write_corpus(
            documents,
            directory,
            view=self.view,
            segmenter=self.segmenter,
            count_tokens=self._count,
            hold_out=hold_out,
            progress=progress,
        )
        if self.report.left_out:
            left_out = (counted(count, reason) for reason, count in self.report.left_out.items())
            logger.warning("Left out of training: %s.", ", ".join(left_out))
        self._documents += len(corpus)
        return corpus.with_transform(self)

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Draw the views of a batch of segmented documents, in the current epoch; a column ``label`` stays."""
        pairs = list(self.draw(from_rows(batch)))
        self._drawn += len(pairs)
        if self._drawn > self._documents > 0 and not self.callback.connected:
            self._documents = 0  # warn once
            logger.warning(
                "More views were drawn than there are documents, and no Trainer sets the epoch: every epoch gets the "
                "same views. Pass callbacks=[views.callback] to the Trainer."
            )
        views = {"anchor": [pair.anchor for pair in pairs], "positive": [pair.positive for pair in pairs]}
        return {**views, "label": list(batch["label"])} if "label" in batch else views

    def draw(self, documents: Iterable[SegmentedDocument], epoch: int | None = None) -> Iterator[ViewPair]:
        """Draw the views of the documents that the view accepts, in an epoch; None is the current one."""
        epoch = self.callback.epoch if epoch is None else epoch
        for document in documents:
            if pair := draw_views(document, self.view, seed=self.seed, epoch=epoch, budget=self.budget):
                yield pair

    def segment(self, documents: Any) -> Iterator[SegmentedDocument]:
        """Read and segment documents, as a stream."""
        return segment_stream(read_documents(documents), self.segmenter, self._count)[1]


@checked
def docsplit_examples(
    documents: Any,
    view: View | None = None,
    seed: Seed = 0,
    epoch: CountOrZero = 0,
    *,
    model: SentenceTransformer | None = None,
    segmenter: str | Segmenter = "punkt",
) -> Iterator[InputExample]:
    """Yield one ``InputExample(texts=[view A, view B])`` per document.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes; read once, as a stream.
        view: How to draw; ``DocSplit()`` by default.
        seed: The run's seed.
        epoch: Another epoch gives other views of the same documents.
        model: The model to train, which decides how many tokens fit a view, and whose prompt for documents stands
            before each: ``fit`` knows no prompts, so that an MLM loss masks its tokens too, and any pooling includes
            them. Without a model no window of long documents is chosen, and the tokenizer truncates the views.
        segmenter: ``"punkt"`` or a callable.

    Yields:
        The examples, in the order of the documents; their ``guid`` is the document's id. Documents without two views
        are left out, and their number is logged.

    Raises:
        DataError: The documents cannot be read.
        EmptyCorpusError: There are no usable documents.
    """
    views = DocSplitTransform(view, model=model, seed=seed, segmenter=segmenter)
    read = made = 0
    for read, document in enumerate(views.segment(documents), 1):  # noqa: B007
        for pair in views.draw([document], epoch):
            made += 1
            yield _example(pair, model)
    if made < read:
        logger.warning("%d documents are too short for %r and were left out.", read - made, views.view)
    if not made:
        raise EmptyCorpusError(f"None of the {read} documents can make two views of {views.view!r}.")


@checked
def docsplit_objectives(
    documents: Any,
    loss: nn.Module,
    *,
    epochs: Count = 1,
    batch_size: Count = 36,
    view: View | None = None,
    seed: Seed = 0,
    model: SentenceTransformer | None = None,
    segmenter: str | Segmenter = "punkt",
) -> list[tuple[DataLoader[InputExample], nn.Module]]:
    """Return the ``train_objectives`` of ``SentenceTransformer.fit`` for several epochs of fresh views.

    Call ``model.fit(docsplit_objectives(documents, loss, epochs=3, model=model), epochs=1)``: the three passes are
    inside the objectives.

    Args:
        documents: As for :func:`docsplit_examples`; kept in memory, as ``fit`` does anyway.
        loss: The loss, shared by all epochs.
        epochs: Passes over the documents, each with its own views.
        batch_size: Documents in a batch.
        view: How to draw.
        seed: The run's seed.
        model: The model to train, as there.
        segmenter: ``"punkt"`` or a callable.

    Returns:
        One (data loader, loss) pair per epoch.

    Raises:
        ConfigurationError: Fewer than one epoch.
        EmptyCorpusError: Fewer than two documents can be used.
    """
    views = DocSplitTransform(view, model=model, seed=seed, segmenter=segmenter)
    usable = [document for document in views.segment(documents) if views.view.accepts(document)]
    if len(usable) < 2:
        raise EmptyCorpusError(too_few_documents(len(usable)))
    objectives: list[tuple[DataLoader[InputExample], nn.Module]] = []
    for epoch in range(epochs):
        examples = [_example(pair, model) for pair in views.draw(usable, epoch)]
        objectives.append((DataLoader(examples, batch_size=batch_size), loss))  # type: ignore[arg-type]
    return objectives


def _example(pair: ViewPair, model: SentenceTransformer | None) -> InputExample:
    prompt = "" if model is None else document_prompt(model)
    return InputExample(guid=pair.id, texts=[prompt + pair.anchor, prompt + pair.positive])
