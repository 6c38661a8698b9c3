"""Batch samplers whose order depends only on (seed, epoch), and views as token ids for static models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sentence_transformers.base.sampler import DefaultBatchSampler
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import Sampler

from simlte_st.files import atomic_path
from simlte_st.models.lsa import count_matrix
from simlte_st.models.static import flat_features
from simlte_st.progress import progress_bar
from simlte_st.reading.document import SegmentedDocument
from simlte_st.views.corpus import SCHEMA
from simlte_st.views.transform import DocSplitTransform
from simlte_st.views.views import draw_spans
from simlte_st.words.tokens import flat_ids, space_before, special_ids

_TOKENIZE_BATCH = 256  # number of documents to tokenize at once
_COUNT_BATCH = 10_000  # number of documents to count tokens in at once

_SCHEMA = SCHEMA.remove(SCHEMA.get_field_index("sentences")).append(pa.field("ids", SCHEMA.field("tokens").type))
"""Columns of a tokenized corpus, with the token ids of a document instead of its sentences."""

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
    """Draws the views of a tokenized corpus as token ids; the transform of a data set of row numbers.

    As in :class:`~simlte_st.data.DocSplitTransform`, views depend on (seed, epoch, document).

    Args:
        corpus: The corpus, from :func:`tokenize_corpus`.
        views: The view, the seed and the epoch.
    """

    def __init__(self, corpus: Dataset, views: DocSplitTransform) -> None:
        self.corpus, self.views = corpus.with_format("arrow"), views

    def __deepcopy__(self, memo: object) -> TokenViews:
        return self  # datasets deep-copies the transform of a data set

    def rows(self) -> Dataset:
        """Return a data set with rows ``{"anchor": ids, "positive": ids}`` (int32)."""
        return Dataset.from_dict({"row": np.arange(len(self.corpus))}).with_transform(self)

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[TokenIds]]:
        """Draw the views of a batch of rows for the current epoch."""
        table = self.corpus[[int(row) for row in batch["row"]]]
        names = [table[name].to_pylist() for name in ("id", "paragraphs")]
        numbers = ([row.values.to_numpy() for row in table[name]] for name in ("tokens", "ids"))
        view_ids: dict[str, list[TokenIds]] = {"anchor": [], "positive": []}
        for name, paragraphs, tokens, ids in zip(*names, *numbers, strict=True):
            document = TokenizedDocument(name, (), tuple(paragraphs), tuple(tokens.tolist()))
            starts = np.concatenate([[0], np.cumsum(tokens)])
            views = draw_spans(document, self.views.view, seed=self.views.seed, epoch=self.views.callback.epoch)
            for column, spans in zip(view_ids.values(), views or ((), ()), strict=True):
                pieces = [
                    ids[starts[number] + start : starts[number + 1] if stop is None else starts[number] + stop]
                    for number, start, stop in spans
                ]
                # A document of a single token gets two identical views.
                column.append(np.concatenate(pieces) if pieces else ids)
        return view_ids

    def counts(self, tokenizer: Tokenizer) -> csr_array:
        """Return token counts, excluding special tokens, ``(documents, vocabulary)``, float32."""
        size, special, parts = tokenizer.get_vocab_size(), special_ids(tokenizer), []
        for table in self.corpus.iter(batch_size=_COUNT_BATCH):
            ids = table["ids"].combine_chunks()
            parts.append(count_matrix(ids.flatten().to_numpy(), ids.value_lengths().to_numpy(), size, special))
        return csr_array(vstack(parts, format="csr"))


def tokenize_corpus(corpus: Dataset, tokenizer: Tokenizer, file: Path, *, progress: bool) -> Dataset:
    """Write a corpus with token ids instead of sentences to a file, unless it exists, and open it, memory-mapped."""
    if not file.exists():
        space, columns = (
            space_before(tokenizer),
            corpus.with_format(None).select_columns(["id", "paragraphs", "sentences"]),
        )
        with (
            atomic_path(file) as path, pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, _SCHEMA) as writer,
            progress_bar("Tokenizing", len(corpus), show=progress) as bar,
        ):  # fmt: skip
            for batch in columns.iter(batch_size=_TOKENIZE_BATCH):
                sentences = batch["sentences"]
                ids, sizes = flat_ids(tokenizer, [space + sentence for document in sentences for sentence in document])
                starts = np.cumsum([0, *map(len, sentences)])  # first sentence of each document
                lists = ((starts, sizes), (np.concatenate([[0], np.cumsum(sizes)])[starts], ids))
                tokens = [pa.ListArray.from_arrays(*(numbers.astype(np.int32) for numbers in pair)) for pair in lists]
                writer.write_batch(pa.record_batch([batch["id"], batch["paragraphs"], *tokens], schema=_SCHEMA))
                bar.update(len(sentences))
    return Dataset.from_file(str(file))


def preprocess_views(
    tokenizer: Any, views: Sequence[Any], prompt: str | None = None, **options: object
) -> dict[str, Tensor]:
    """Return the features of views for a static model, which the Trainer draws as texts or as token ids."""
    if isinstance(views[0], str):
        return flat_features(*flat_ids(tokenizer, [f"{prompt or ''}{view}" for view in views]))
    prompt_ids = flat_ids(tokenizer, [prompt or ""])[0]
    pieces = [piece for view in views for piece in (prompt_ids, view)] if prompt else list(views)
    lengths = np.array([len(prompt_ids) + len(view) for view in views])
    return flat_features(np.concatenate(pieces, dtype=np.int64), lengths)
