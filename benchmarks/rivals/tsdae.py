"""TSDAE (Wang et al., Findings of EMNLP 2021): reconstruct a text from the embedding of a noisy version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from nltk.tokenize import NLTKWordTokenizer
from nltk.tokenize.treebank import TreebankWordDetokenizer
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss

from benchmarks.rivals.stock import RivalJob, prepare_rival, train_and_save
from simlte_st.compat import quiet_transformers
from simlte_st.data import DocSplitTransform, SegmentedDocument
from simlte_st.training.batches import SeededBatchSampler
from simlte_st.training.prepare_model import set_attention_dropout, set_dropout
from simlte_st.views.corpus import from_rows
from simlte_st.views.views import draw_spans, render, view_rng

DELETED = 0.6
"""Probability of deleting a word, the paper's best and sentence-transformers' default."""

_words = NLTKWordTokenizer()
_detokenizer = TreebankWordDetokenizer()


def delete_words(sentences: Sequence[str], probability: float, rng: Random) -> str:
    """Delete words of a text, as sentence-transformers' ``DenoisingAutoEncoderDataset.delete`` does.

    That function needs NLTK's ``punkt_tab``, a separate download, and draws from numpy's global generator.
    """
    words: list[list[str]] = [_words.tokenize(sentence) for sentence in sentences]
    kept_words = [[word for word in sentence if rng.random() >= probability] for sentence in words]
    if not any(kept_words):
        all_words = [word for sentence in words for word in sentence]
        return rng.choice(all_words) if all_words else " ".join(sentences)
    # One sentence at a time: NLTK's detokenizer attaches a full stop to a word only at the end of a text.
    return " ".join(_detokenizer.detokenize(sentence) for sentence in kept_words if sentence)


@dataclass(frozen=True)
class DenoisingTransform:
    """Dataset transform from documents to the columns ``damaged`` (text with deleted words) and ``original``."""

    views: DocSplitTransform

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
        """Return both columns for a batch of segmented documents."""
        pairs = [self._pair(document) for document in from_rows(batch)]
        return {"damaged": [damaged for damaged, _ in pairs], "original": [original for _, original in pairs]}

    def _pair(self, document: SegmentedDocument) -> tuple[str, str]:
        views, epoch = self.views, self.views.callback.epoch
        sides = draw_spans(document, views.view, seed=views.seed, epoch=epoch, budget=views.budget)
        assert sides is not None  # the view accepts all documents of the corpus
        sentences = [document.sentences[span.sentence] for span in sides[0]]
        noise = view_rng(views.seed, epoch, f"{document.id}\nnoise")  # independent of the window
        return delete_words(sentences, DELETED, noise), render(document, sides[0])


def make_loss(model: SentenceTransformer) -> DenoisingAutoEncoderLoss:
    """Make the loss, with a decoder that shares the encoder's architecture and weights."""
    with quiet_transformers():
        loss = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True)
    # Encoder and decoder now share weights, which may be in half precision.
    loss.decoder.float()
    return loss


def train_tsdae(job: RivalJob) -> None:
    """Train with ``DenoisingAutoEncoderLoss``: 60% of the words deleted, a tied decoder that sees only the embedding.

    A document takes one pass of the encoder over the remaining words and one of the decoder over the whole text. The
    decoder, which shares all weights with the model except cross-attention and word predictor, is discarded.
    """
    prepared = prepare_rival(job)
    loss = make_loss(prepared.trained)
    if job.preset.dropout is not None:
        set_dropout(loss.decoder, job.preset.dropout)
    if job.preset.attention_dropout is not None:
        set_attention_dropout(loss.decoder, job.preset.attention_dropout)
    views = prepared.loaded.views
    dataset = prepared.corpus.with_transform(DenoisingTransform(views))
    train_and_save(job, prepared, loss, dataset, SeededBatchSampler, views.callback)
