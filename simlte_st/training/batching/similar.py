"""Hard batches: documents that the encoder finds alike, so that the negatives are near misses."""

from __future__ import annotations

import logging
from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.training.batching.base import PlannedBatchSampler, Rows
from simlte_st.training.batching.bisection import similar_order
from simlte_st.training.batching.embeddings import DocumentEmbeddings
from simlte_st.training.batching.separation import Apart, separate

logger = logging.getLogger(__name__)


class SimilarBatchSampler(PlannedBatchSampler):
    """Batches made of clusters of documents with similar embeddings.

    In plain terms, in each epoch:

    1. All documents are cut into clusters of ``hardness * batch_size``, by halving them again and again across random
       directions of the embedding space (:func:`~simlte_st.training.batching.bisection.similar_order`).
    2. The clusters are shuffled and cut into batches. A batch of hardness 0.5 is two clusters from anywhere: each
       document has near misses in it, and the batch is not all of one kind.
    3. Documents that must not meet are exchanged with others until none do.

    Every document is in exactly one batch of an epoch, in another company each time. The batches follow from seed,
    epoch and embeddings alone, to the last bit on any machine, and a run that resumes sees those of the run it
    continues.

    Halving was chosen over taking a document and its nearest neighbours, then another and its nearest that are left,
    and so on: that needs all pairs of documents and has ever stranger ones for the last batches. On 2,596 posts of 20
    Newsgroups, MiniLM, the contrastive loss before training is, in batches of 32 and 128: random 2.20 and 3.39,
    halving 3.78 and 4.72, neighbours in turn 3.81 and 4.60. At hardness 0.5 it is 3.51 and 4.51, while 5% of the pairs
    that share a batch of 32 share one in the next epoch again (random 1%, hardness 1 11%): so that is the default
    (benchmarks/results/batching_hardness.md).

    Cost for 100,000 documents of 384 dimensions on one core: 4 s an epoch in batches of 64, 7 s in batches of 1,024.
    All pairs of documents would take minutes, and embedding the documents takes far longer.

    Args:
        dataset: The documents.
        batch_size: Documents in a batch; the last one of an epoch may be smaller, as in the stock sampler.
        drop_last: Leave that one out.
        embeddings: The documents' embeddings; kept up to date by
            :class:`~simlte_st.training.batching.refresh.EmbeddingRefreshCallback`. Not needed for ``hardness=0``
            without ``max_similarity``.
        hardness: Share of a batch that a cluster makes up, 0 (random batches) to 1 (a batch is one cluster). 1/2,
            1/3, ... are best: with other values some clusters are cut in two.
        max_similarity: Two documents whose embeddings (less the mean of all) have a cosine above this never meet in a
            batch: they are likely to say the same, and would be false negatives. None for no bound.
        groups: A group number for each document, shape (documents,): two of one group never meet
            (:func:`~simlte_st.data.duplicates.find_duplicates`).
        **arguments: The Trainer's other arguments.

    Attributes:
        left_out: Documents that were in no batch of the last epoch planned. A group with more members than there are
            batches has only as many in an epoch, other ones each time; a document that clashes with something in
            every batch tried is left out, and its batch is one short. The log says how many.

    Raises:
        ConfigurationError: A setting out of its range, or one that does not fit the data set.
        EmptyCorpusError: Fewer than two documents could be in a batch.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        drop_last: bool,
        *,
        embeddings: DocumentEmbeddings | None = None,
        hardness: float = 0.5,
        max_similarity: float | None = 0.9,
        groups: ArrayLike | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, **arguments)
        if batch_size < 2:
            raise ConfigurationError(f"batch_size={batch_size}: the negatives are the other documents; use 2 or more.")
        if not 0 <= hardness <= 1:
            raise ConfigurationError(f"hardness={hardness}: must lie between 0 and 1.")
        if max_similarity is not None and not 0 < max_similarity < 1:
            raise ConfigurationError(f"max_similarity={max_similarity}: a cosine between 0 and 1, or None.")
        self.leaf = max(1, round(hardness * batch_size))
        self.max_similarity = max_similarity
        self.embeddings = embeddings
        self.left_out = 0
        if embeddings is None and (self.leaf > 1 or max_similarity is not None):
            raise ConfigurationError(
                "SimilarBatchSampler needs the documents' embeddings=. Without them, hardness=0 and "
                "max_similarity=None give random batches that keep groups apart."
            )
        if embeddings is not None:
            self.check_rows("embeddings", embeddings.documents)
        self.groups: Rows | None = None
        if groups is not None:
            self.check_rows("groups", len(np.asarray(groups)))
            self.groups = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
        self._batches = self._count(self.documents)
        self._used = self.documents
        self._fit_groups()

    def _count(self, documents: int) -> int:
        return documents // self.batch_size if self.drop_last else -(-documents // self.batch_size)

    def _fit_groups(self) -> None:
        """Find how many batches there are if no group has more members than that."""
        if self.groups is not None:
            sizes = np.bincount(self.groups)
            while (used := int(np.minimum(sizes, self._batches).sum())) < self._used:
                self._used, self._batches = used, self._count(used)
        if self._used < 2 or self._batches < 1:
            raise EmptyCorpusError(
                f"Of {self.documents} documents {self._used} can be kept apart as groups= asks, too few for a batch: "
                f"batch_size={self.batch_size}, drop_last={self.drop_last}."
            )

    def __len__(self) -> int:
        return self._batches

    def plan(self, epoch: int) -> list[Rows]:
        """Make the batches of an epoch.

        Raises:
            ConfigurationError: There are no embeddings yet.
        """
        rng = self.generator_of(epoch)
        codes, scale = self._codes()
        rows = self._members(rng.permutation(self.documents))
        if codes is not None and self.leaf > 1:
            rows = similar_order(codes, scale, rows, self.leaf, rng)
        size = self.batch_size
        batches = [rows[number * size : (number + 1) * size] for number in range(self._batches)]
        limit = np.inf if self.max_similarity is None else self.max_similarity * scale * scale
        batches, homeless = separate(batches, Apart(self.groups, codes, limit), rng)
        self.left_out = self.documents - sum(map(len, batches))
        if homeless or self._used < self.documents:
            logger.warning(
                "Epoch %d leaves out %d of %d documents: too many are too similar to be kept apart.",
                epoch,
                self.documents - self._used + len(homeless),
                self.documents,
            )
        return batches

    def _codes(self) -> tuple[Any, int]:
        if self.embeddings is None:
            return None, 0
        if self.embeddings.codes is None:
            raise ConfigurationError(
                "There are no embeddings of the documents yet: give the Trainer an EmbeddingRefreshCallback, or call "
                "DocumentEmbeddings.update() first."
            )
        return self.embeddings.codes, self.embeddings.scale

    def _members(self, rows: Rows) -> Rows:
        """Take as many of each group as there are batches."""
        if self.groups is None or self._used == self.documents:
            return rows
        groups = self.groups[rows]
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], groups[order])  # of each row's group
        rank = np.empty(len(rows), dtype=np.int64)
        rank[order] = np.arange(len(rows)) - starts
        return rows[rank < self._batches]
