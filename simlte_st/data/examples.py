"""DocSplit as ``InputExample`` s, for ``SentenceTransformer.fit``.

``fit`` reads its data loaders once and keeps the texts, so a loader cannot give other views in another epoch. But it
takes several (loader, loss) pairs and draws a batch from each in turn. One loader per epoch, each with its own views,
gives several epochs in one ``fit``, with one optimizer and one learning-rate schedule; and no batch holds two pairs of
one document, which would be false negatives.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.readers import InputExample
from torch import nn
from torch.utils.data import DataLoader

from simlte_st.compat import view_budget
from simlte_st.config import check_count
from simlte_st.data.corpus import too_few_documents
from simlte_st.data.document import SegmentedDocument
from simlte_st.data.documents import read_documents
from simlte_st.data.drawing import View, ViewPair, draw_views
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import estimate_tokens, segment_stream, tokenizer_counter
from simlte_st.data.views import DocSplit
from simlte_st.errors import EmptyCorpusError
from simlte_st.prompts import document_prompt

logger = logging.getLogger(__name__)


def docsplit_examples(
    documents: Any,
    view: View | None = None,
    seed: int = 0,
    epoch: int = 0,
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
    view = DocSplit() if view is None else view
    budget, prompt = (None, "") if model is None else (view_budget(model), document_prompt(model))
    left_out = made = 0
    for document in _segmented(documents, model, segmenter):
        pair = draw_views(document, view, seed=seed, epoch=epoch, budget=budget)
        if pair is None:
            left_out += 1
        else:
            made += 1
            yield _example(pair, prompt)
    if left_out:
        logger.warning("%d documents are too short for %r and were left out.", left_out, view)
    if not made:
        raise EmptyCorpusError(f"None of the {left_out} documents can make two views of {view!r}.")


def docsplit_objectives(
    documents: Any,
    loss: nn.Module,
    *,
    epochs: int = 1,
    batch_size: int = 36,
    view: View | None = None,
    seed: int = 0,
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
    check_count("epochs", epochs)
    view = DocSplit() if view is None else view
    budget, prompt = (None, "") if model is None else (view_budget(model), document_prompt(model))
    segmented = [document for document in _segmented(documents, model, segmenter) if view.accepts(document)]
    if len(segmented) < 2:
        raise EmptyCorpusError(too_few_documents(len(segmented)))
    objectives: list[tuple[DataLoader[InputExample], nn.Module]] = []
    for epoch in range(epochs):
        pairs = [draw_views(document, view, seed=seed, epoch=epoch, budget=budget) for document in segmented]
        examples = [_example(pair, prompt) for pair in pairs if pair]
        objectives.append((DataLoader(examples, batch_size=batch_size), loss))  # type: ignore[arg-type]
    return objectives


def _example(pair: ViewPair, prompt: str) -> InputExample:
    return InputExample(guid=pair.id, texts=[prompt + pair.anchor, prompt + pair.positive])


def _segmented(
    documents: Any, model: SentenceTransformer | None, segmenter: str | Segmenter
) -> Iterator[SegmentedDocument]:
    count = estimate_tokens if model is None else tokenizer_counter(model.tokenizer)
    return segment_stream(read_documents(documents), segmenter, count)[1]
