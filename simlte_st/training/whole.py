"""Whole documents: where the base would cut much of them, the finished model reads them through it in chunks.

Of what reads on, the mean over chunks costs least and is as good: 47.0 with few labels and 50.0 with all (macro-F1 over
six sets), where the Longformer that the base is converted to has 47.2 and 50.3 after 1.46 times the time
(``benchmarks/results/models.md``). It takes any base, whose weights are trained on short views as ever.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sentence_transformers import SentenceTransformer

from simlte_st.chunk_mean.backbone import WHOLE_DOCUMENTS
from simlte_st.chunk_mean.convert import can_read_in_chunks, chunk_length, read_in_chunks
from simlte_st.data.corpus import document_lengths
from simlte_st.models.truncation import CUT_SHARE, Truncation
from simlte_st.training.model import Trainee
from simlte_st.training.prepare import Prepared

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WholeDocuments:
    """How the finished model reads documents that are longer than the base reads.

    Attributes:
        max_length: Tokens that the finished model reads of a document at most, special tokens included.
        chunk_length: Tokens of a chunk, special tokens included: those of the base, or as many as it reads.
        cut: Share of the tokens of the documents that the base would cut, 0 to 1.
    """

    max_length: int
    chunk_length: int
    cut: float

    @classmethod
    def of(cls, trainee: Trainee, prepared: Prepared) -> WholeDocuments | None:
        """Choose for the documents of a run, by their lengths."""
        if trainee.preset.max_length is not None:
            return None
        read = Truncation.of(trainee.model, max_seq_length=trainee.reads)
        for lengths in document_lengths(prepared.dataset):
            read.add(lengths)
        length = read.max_seq_length
        if length is None or length >= WHOLE_DOCUMENTS or read.cut_tokens <= CUT_SHARE * read.tokens:
            return None
        cut = read.cut_tokens / read.tokens
        if not can_read_in_chunks(trainee.model):
            logger.warning("The base cuts %.1f%% of the tokens, and cannot be made to read in chunks.", 100 * cut)
            return None
        whole = cls(WHOLE_DOCUMENTS, chunk_length(trainee.model) or length, cut)
        logger.info("The base would cut %.1f%% of the tokens: %s", 100 * cut, whole.plan())
        return whole

    def plan(self) -> str:
        """Say what will become of the model."""
        return (
            f"the finished model will read documents whole, up to {self.max_length:,} tokens, in chunks. Training "
            "sees, and the verdict compares, as much as the base reads."
        )

    def summary(self) -> str:
        """Say in two sentences what the finished model reads, what that costs, and how to have it otherwise."""
        return (
            f"The model reads documents whole, up to {self.max_length:,} tokens, as the mean over chunks of "
            f"{self.chunk_length:,}, because the base by itself cuts {self.cut:.1%} of the tokens; it loads after "
            "import simlte_st. With max_length='base' it reads as much as the base, and loads anywhere: stock modules."
        )

    def reader(self, model: SentenceTransformer) -> SentenceTransformer:
        """Make of a model one that reads documents whole, with copies of its weights."""
        return read_in_chunks(model, self.max_length)
