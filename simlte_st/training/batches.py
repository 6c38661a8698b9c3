"""Batch samplers whose order depends only on (seed, epoch), and views as token ids for static models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.sampler import DefaultBatchSampler
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import Sampler

from simlte_st.files import atomic_path
from simlte_st.models.lsa import count_matrix
from simlte_st.models.static import flat_features
from simlte_st.progress import progress_bar
from simlte_st.reading.document import SegmentedDocument
from simlte_st.views.transform import DocSplitTransform
from simlte_st.views.views import draw_spans
from simlte_st.words.tokens import flat_ids, space_before, special_ids

_TOKENIZE_BATCH = 256  # number of documents to tokenize at once
_COUNT_BATCH = 10_000  # number of documents to count tokens in at once

TokenIds = NDArray[np.int32]


class EpochPermutation(Sampler[int]):
    """Yields row numbers, either unshuffled or in an order that depends only on (seed, epoch)."""

    def __init__(self, size: int, seed: int, shuffles: bool = True) -> None:
        self.size, self.seed, self.shuffles, self.epoch = size, seed, shuffles, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        """Yield row numbers."""
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        yield from torch.randperm(self.size, generator=generator).tolist() if self.shuffles else range(self.size)


class SeededBatchSampler(DefaultBatchSampler):
    """Batches of an :class:`EpochPermutation`.

    The stock sampler draws all epochs from one generator, so a run resumed in a later epoch would see a different
    order. The permutation must be in the attribute ``sampler``: when a run resumes, accelerate wraps the batch sampler
    and sets the epoch of its ``sampler``.

    Several processes take batches in turn (accelerate's ``BatchSamplerShard``). Together, their batches form one batch
    of the run, with the same documents as in a single process. The remainder of an epoch is dropped.
    """

    shuffles = True

    def __init__(self, dataset: Sized, batch_size: int, drop_last: bool = False, **options: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **options)
        self.sampler: EpochPermutation = EpochPermutation(len(dataset), self.seed, self.shuffles)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch."""
        super().set_epoch(epoch)
        self.sampler.set_epoch(epoch)


class OrderedBatchSampler(SeededBatchSampler):
    """Batches of rows in their original order, for streams, which are already shuffled."""

    shuffles = False


class TokenizedDocument(SegmentedDocument):
    """A document whose words are tokens, so that spans of words are spans of tokens."""

    def words(self, sentence: int) -> int:
        """Return the number of tokens of a sentence."""
        return self.tokens[sentence]


class TokenViews:
    """Draws the views of a corpus as token ids; the transform of a data set of row numbers.

    The tokens are stored in a memory-mapped file in the run's folder, 4 bytes each. As in
    :class:`~simlte_st.data.DocSplitTransform`, views depend on (seed, epoch, document).
    """

    def __init__(self, corpus: Dataset, views: DocSplitTransform, folder: Path) -> None:
        self.corpus = corpus.with_format(None).select_columns(["id", "paragraphs"])
        self.views, self.folder = views, folder

    def __deepcopy__(self, memo: object) -> TokenViews:
        return self  # datasets deep-copies the transform of a data set

    def __getstate__(self) -> dict[str, object]:
        # Each process maps the files itself.
        return {"corpus": self.corpus, "views": self.views, "folder": self.folder}

    @cached_property
    def _ids(self) -> TokenIds:
        return np.asarray(np.memmap(self.folder / "ids", dtype=np.int32, mode="r"))  # slicing a memmap is slow

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First sentence of each document and first token of each sentence, both followed by the total."""
        documents, sentences = (np.fromfile(self.folder / name, dtype=np.int64) for name in ("documents", "sentences"))
        return np.concatenate([[0], np.cumsum(documents)]), np.concatenate([[0], np.cumsum(sentences)])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each document."""
        documents, sentences = self._bounds
        return np.diff(sentences[documents])

    def rows(self) -> Dataset:
        """Return a data set with rows ``{"anchor": ids, "positive": ids}`` (int32)."""
        return Dataset.from_dict({"row": np.arange(len(self.corpus))}).with_transform(self)

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[TokenIds]]:
        """Draw the views of a batch of rows for the current epoch."""
        rows, (documents, sentences) = [int(row) for row in batch["row"]], self._bounds
        columns = self.corpus[rows]
        view_ids: dict[str, list[TokenIds]] = {"anchor": [], "positive": []}
        for row, name, paragraphs in zip(rows, columns["id"], columns["paragraphs"], strict=True):
            starts = sentences[documents[row] : documents[row + 1] + 1]
            document = TokenizedDocument(name, (), tuple(paragraphs), tuple(np.diff(starts).tolist()))
            views = draw_spans(document, self.views.view, seed=self.views.seed, epoch=self.views.callback.epoch)
            for column, spans in zip(view_ids.values(), views or ((), ()), strict=True):
                pieces = [
                    self._ids[starts[number] + start : starts[number + 1] if stop is None else starts[number] + stop]
                    for number, start, stop in spans
                ]
                # A document of a single token gets two identical views.
                column.append(np.concatenate(pieces) if pieces else self._ids[starts[0] : starts[-1]])
        return view_ids

    def counts(self, tokenizer: Tokenizer) -> csr_array:
        """Return token counts, excluding special tokens, ``(documents, vocabulary)``, float32."""
        (documents, sentences), size = self._bounds, tokenizer.get_vocab_size()
        all_bounds, special, parts = sentences[documents], special_ids(tokenizer), []
        for first in range(0, len(self.corpus), _COUNT_BATCH):
            bounds = all_bounds[first : first + _COUNT_BATCH + 1]
            parts.append(count_matrix(self._ids[bounds[0] : bounds[-1]], np.diff(bounds), size, special))
        return csr_array(vstack(parts, format="csr"))


def write_tokens(corpus: Dataset, tokenizer: Tokenizer, folder: Path, *, progress: bool) -> None:
    """Write the token ids, tokens per sentence and sentences per document of a corpus, unless the folder exists."""
    if folder.exists():
        return
    space = space_before(tokenizer)
    with atomic_path(folder) as path:
        path.mkdir()
        with (
            open(path / "ids", "wb") as ids, open(path / "sentences", "wb") as sentences,
            open(path / "documents", "wb") as documents,
            progress_bar("Tokenizing", len(corpus), show=progress) as bar,
        ):  # fmt: skip
            for batch in corpus.with_format(None).select_columns("sentences").iter(batch_size=_TOKENIZE_BATCH):
                texts = [space + sentence for document in batch["sentences"] for sentence in document]
                batch_ids, lengths = flat_ids(tokenizer, texts)
                batch_ids.astype(np.int32).tofile(ids)
                lengths.tofile(sentences)
                np.array([len(document) for document in batch["sentences"]], dtype=np.int64).tofile(documents)
                bar.update(len(batch["sentences"]))


def view_preprocessor(model: SentenceTransformer) -> Callable[..., dict[str, Tensor]]:
    """Return the Trainer's preprocessing function for a static model, for views as texts or as token ids."""

    def preprocess(views: Sequence[Any], prompt: str | None = None, **options: object) -> dict[str, Tensor]:
        if isinstance(views[0], str):
            return flat_features(*flat_ids(model.tokenizer, [f"{prompt or ''}{view}" for view in views]))
        prompt_ids = flat_ids(model.tokenizer, [prompt or ""])[0]
        pieces = [piece for view in views for piece in (prompt_ids, view)] if prompt else list(views)
        lengths = np.array([len(prompt_ids) + len(view) for view in views])
        return flat_features(np.concatenate(pieces, dtype=np.int64), lengths)

    return preprocess
