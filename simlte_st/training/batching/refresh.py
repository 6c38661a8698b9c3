"""Keeping the documents' embeddings up to date with the encoder that is trained."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from simlte_st.errors import ConfigurationError
from simlte_st.training.batching.embeddings import DocumentEmbeddings
from simlte_st.training.callbacks import checkpoint_directory

logger = logging.getLogger(__name__)

EMBEDDINGS_FILE = "documents.safetensors"
_CHUNK = 2_048  # documents whose text is in memory at once


def embed_documents(
    model: SentenceTransformer,
    corpus: Dataset,
    *,
    batch_size: int = 64,
    max_seq_length: int | None = None,
    progress: bool = False,
) -> NDArray[np.float32]:
    """Embed the beginnings of documents, and leave the model and all random generators as they were.

    Args:
        model: The encoder.
        corpus: Rows of :func:`~simlte_st.data.corpus.write_corpus`.
        batch_size: Documents in a forward pass.
        max_seq_length: Tokens that are read of each; None for as many as the model reads.
        progress: Show a progress bar.

    Returns:
        The embeddings, float32, shape (documents, dimensions).
    """
    parts = []
    with (
        _evaluating(model, max_seq_length),
        tqdm(total=len(corpus), desc="Embedding documents", unit="doc", disable=not progress) as bar,
    ):
        for part in corpus.with_format(None).iter(batch_size=_CHUNK):
            texts = [
                " ".join(sentences[: _sentences_to_fill(tokens, model.max_seq_length)])
                for sentences, tokens in zip(part["sentences"], part["tokens"], strict=True)
            ]
            parts.append(
                model.encode(texts, batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False).astype(
                    np.float32, copy=False
                )
            )
            bar.update(len(texts))
    return np.concatenate(parts)


def _sentences_to_fill(tokens: Sequence[int], limit: int | None) -> int:
    """Count the first sentences that it takes to fill a limit of tokens: more of a long document is not read."""
    return len(tokens) if limit is None else int(np.searchsorted(np.cumsum(tokens), limit)) + 1


@contextmanager
def _evaluating(model: SentenceTransformer, max_seq_length: int | None) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    model.eval()
    length = model.max_seq_length
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        try:
            if max_seq_length is not None:
                model.max_seq_length = max_seq_length if length is None else min(length, max_seq_length)
            yield
        finally:
            if max_seq_length is not None:
                model.max_seq_length = length
            for module, training in modes.items():
                module.training = training


class EmbeddingRefreshCallback(TrainerCallback):
    """Embeds the documents again at the beginning of epochs, and keeps the embeddings in the checkpoints.

    The batches of an epoch are planned as a whole, so embeddings can change between epochs only. The first ones are
    those of the model as it is when training begins, unless ``embeddings`` holds some already.

    Args:
        model: The encoder that is trained.
        corpus: The documents: the training data, rows of :func:`~simlte_st.data.corpus.write_corpus`.
        embeddings: Gets the embeddings; the batch sampler has the same object.
        every: Epochs between two; None to keep the first.
        batch_size: Documents in a forward pass.
        max_seq_length: Tokens that are read of each document; None for as many as the model reads. The cost of a
            refresh is one forward pass over so many tokens.
        progress: Show progress bars.

    Raises:
        ConfigurationError: ``every`` is below 1, or there are other documents than embeddings.

    Example:
        ::

            embeddings = DocumentEmbeddings(len(corpus))
            sampler = ConfiguredBatchSampler(SimilarBatchSampler, embeddings=embeddings)
            trainer = SentenceTransformerTrainer(
                args=SentenceTransformerTrainingArguments(output_dir="out", batch_sampler=sampler),
                callbacks=[EmbeddingRefreshCallback(model, corpus, embeddings)],
                ...
            )
    """

    def __init__(
        self,
        model: SentenceTransformer,
        corpus: Dataset,
        embeddings: DocumentEmbeddings,
        *,
        every: int | None = 1,
        batch_size: int = 64,
        max_seq_length: int | None = None,
        progress: bool = False,
    ) -> None:
        if every is not None and every < 1:
            raise ConfigurationError(f"every={every}: epochs between two refreshments, from 1, or None for none.")
        if len(corpus) != embeddings.documents:
            raise ConfigurationError(f"The corpus has {len(corpus)} documents, embeddings={embeddings.documents}.")
        self.model = model
        self.corpus = corpus
        self.embeddings = embeddings
        self.every = every
        self.batch_size = batch_size
        self.max_seq_length = max_seq_length
        self.progress = progress

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the embeddings if the run begins at a checkpoint.

        Raises:
            ResumeError: The checkpoint has none.
        """
        if state.global_step > 0:
            self.embeddings.load(checkpoint_directory(args, state) / EMBEDDINGS_FILE)

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Embed the documents if it is time."""
        epoch = int((state.epoch or 0.0) + 1e-6)  # a resumed run begins in the middle of one
        if self.embeddings.epoch is not None and (
            self.every is None or epoch % self.every != 0 or self.embeddings.epoch == epoch
        ):
            return
        began = time.perf_counter()
        vectors = embed_documents(
            self.model,
            self.corpus,
            batch_size=self.batch_size,
            max_seq_length=self.max_seq_length,
            progress=self.progress,
        )
        self.embeddings.update(vectors, epoch)
        logger.info("Embedded %d documents in %.0f s.", len(vectors), time.perf_counter() - began)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Write the embeddings into the checkpoint that has just been written."""
        if state.is_world_process_zero and self.embeddings.epoch is not None:
            self.embeddings.save(checkpoint_directory(args, state) / EMBEDDINGS_FILE)
