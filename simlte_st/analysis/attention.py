"""What ``[CLS]`` attends to, by part of speech, in one model or in two (SimLTE, figure 3 and appendix C)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from tqdm.auto import tqdm

from simlte_st.analysis.alignment import CLASSES, Aligned, align
from simlte_st.analysis.readings import Reading, read_texts
from simlte_st.analysis.tagging import Tagger, batches, described
from simlte_st.compat import readable_length
from simlte_st.data.document import Document
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.evaluation.table import markdown_table

_CONTEXT = 500
"""Characters behind what was read that the tagger is shown, so that it sees the last words in their sentence."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over documents.

    Attributes:
        mean: The mean; None where no document has such a value.
        low: Lower end of its 95% bootstrap interval; None with fewer than two documents.
        high: Upper end.
    """

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ClassAttention:
    """What a model's ``[CLS]`` attends to of one class.

    Attributes:
        documents: Documents in which the model read such words.
        words: How many such words it read, in all documents.
        weight: Attention to one such word: mean over a document's words, then over the documents that have some. This
            is what the paper's figure shows.
        share: Part of all attention that goes to such words together, mean over all documents; the shares of all
            classes sum to 1.
    """

    documents: int
    words: int
    weight: Estimate
    share: Estimate


@dataclass(frozen=True, slots=True)
class ModelAttention:
    """What one model's ``[CLS]`` attends to.

    Attributes:
        documents: Documents read.
        tokens: Their tokens, special tokens not counted, read or not.
        cut_documents: How many of them were longer than what was read.
        cut_tokens: Tokens that were not read.
        max_seq_length: Tokens read of a document at most, special tokens included; None: no bound.
        classes: By class, in the order of :data:`~simlte_st.analysis.alignment.CLASSES`.
    """

    documents: int
    tokens: int
    cut_documents: int
    cut_tokens: int
    max_seq_length: int | None
    classes: dict[str, ClassAttention]

    def summary(self) -> str:
        """Say how much was read."""
        text = f"{self.documents:,} documents"
        if not self.cut_documents:
            return f"{text}, all read to their end"
        share = self.cut_tokens / max(1, self.tokens)
        return (
            f"{text}, of which {self.cut_documents:,} were longer than {self.max_seq_length:,} tokens: "
            f"{share:.1%} of all tokens were cut"
        )


@dataclass(frozen=True, slots=True)
class AttentionResult:
    """What ``[CLS]`` attends to, in one model or more.

    Attributes:
        models: By the models' names, in their order.
        changes: By the names of all models but the first, then by class: the difference of the weights of a word to
            the first model's, over the documents where both have some.
        layer: Index of the layer; -1 is the last.
        tagger: What decided the parts of speech.
        seed: Seed of the intervals.
    """

    models: dict[str, ModelAttention]
    changes: dict[str, dict[str, Estimate]]
    layer: int
    tagger: dict[str, str]
    seed: int

    def table(self) -> str:
        """Make a Markdown table, a row for each class; weights and shares in percent."""
        header = ["[CLS] attends to"]
        for name in self.models:
            header += [f"a word, % [95%]: {name}", "all, %"]
            if name in self.changes:
                header.append("change of a word's")
        rows = []
        for kind in CLASSES:
            row = [kind]
            for name, model in self.models.items():
                found = model.classes[kind]
                row += [_percent(found.weight), _percent(found.share, interval=False)]
                if name in self.changes:
                    row.append(self._change(name, kind))
            rows.append(row)
        return markdown_table(header, rows)

    def summary(self) -> str:
        """Say what was read, a line for each model, and what decided the parts of speech."""
        lines = [f"{name}: {model.summary()}." for name, model in self.models.items()]
        layer = "last layer" if self.layer == -1 else f"layer {self.layer}"
        return "\n".join([*lines, f"Attention of the {layer}, mean over its heads; tags: {described(self.tagger)}."])

    def to_dict(self) -> dict[str, Any]:
        """Give the result as a dictionary that can be written as JSON."""
        return asdict(self)

    def _change(self, name: str, kind: str) -> str:
        first = next(iter(self.models.values())).classes[kind].weight.mean
        last = self.models[name].classes[kind].weight.mean
        if first is None or last is None or not first:
            return ""
        sure = self.changes[name][kind]
        unclear = sure.low is None or sure.high is None or sure.low <= 0 <= sure.high
        return f"{last / first - 1:+.0%}" + (" (unclear)" if unclear else "")


def measure_attention(
    models: Mapping[str, SentenceTransformer],
    documents: Iterable[Document],
    tagger: Tagger,
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    progress: bool = False,
) -> AttentionResult:
    """Measure what the models' ``[CLS]`` attends to, by part of speech, on the same documents.

    Args:
        models: The models by name; those after the first are compared with it.
        documents: Read once, in order; memory holds a few hundred of them.
        tagger: Finds words and parts of speech; lemmas are not looked at.
        layer: Index of the layer; -1 is the last.
        max_seq_length: Tokens read of a document, special tokens included; None: as many as the model reads that reads
            least, because the weights of a word fall with the number of words.
        batch_size: Documents that a model reads at once.
        seed: Seed of the bootstrap intervals, over documents.
        progress: Show a progress bar.

    Returns:
        Weights and shares by model and class.

    Raises:
        ConfigurationError: No models, or no such layer.
        ModelError: A model without a ``[CLS]``, or that gives no attention weights.

    References:
        SimLTE, appendix C: the last layer's weights from ``[CLS]``, averaged over the heads; then averages over nouns,
        verbs, adjectives and other words. Whether a document or a word is the unit of the last average is not said:
        here it is the document.
    """
    if not models:
        raise ConfigurationError("There is no model to analyse.")
    length = common_length(models.values(), max_seq_length)
    tallies = {name: _Tally() for name in models}
    bar = tqdm(desc="Reading", unit="doc", disable=not progress)
    for batch in batches(documents):
        texts = [document.text for document in batch]
        readings = {
            name: read_texts(model, texts, layer=layer, max_seq_length=length, batch_size=batch_size)
            for name, model in models.items()
        }
        ends = [max(readings[name][number].extent[1] for name in models) for number in range(len(batch))]
        words = tagger.tag([text[: end + _CONTEXT] for text, end in zip(texts, ends, strict=True)])
        for name, tally in tallies.items():
            for reading, found in zip(readings[name], words, strict=True):
                tally.add(reading, align(reading, found))
        bar.update(len(batch))
    bar.close()
    sums = {
        name: np.stack(tally.sums) if tally.sums else np.zeros((0, 2, len(CLASSES))) for name, tally in tallies.items()
    }
    first = next(iter(models))
    return AttentionResult(
        models={name: tallies[name].result(sums[name], length, seed) for name in models},
        changes={name: _changes(sums[first], sums[name], seed) for name in models if name != first},
        layer=layer,
        tagger=tagger.describe(),
        seed=seed,
    )


def common_length(models: Iterable[SentenceTransformer], wanted: int | None = None) -> int | None:
    """Tokens that all models read of a document, special tokens included; None: nothing bounds it."""
    lengths = [length for model in models if (length := readable_length(model, wanted)) is not None]
    return min(lengths, default=wanted)


def read_document(
    models: Mapping[str, SentenceTransformer],
    document: Document,
    tagger: Tagger,
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
) -> dict[str, tuple[Reading, Aligned]]:
    """Let models read one document, for a heat map over its words.

    Args:
        models: The models by name.
        document: The document.
        tagger: Finds words and parts of speech.
        layer: Index of the layer.
        max_seq_length: As for :func:`measure_attention`.

    Returns:
        By name, the reading and the words with their weights.
    """
    length = common_length(models.values(), max_seq_length)
    words = tagger.tag([document.text])[0]
    found = {}
    for name, model in models.items():
        reading = read_texts(model, [document.text], layer=layer, max_seq_length=length)[0]
        found[name] = reading, align(reading, words)
    return found


class _Tally:
    """What has been read with one model so far: two numbers a class for each document."""

    def __init__(self) -> None:
        self.sums: list[NDArray[np.float64]] = []
        self.tokens = self.cut_documents = self.cut_tokens = 0

    def add(self, reading: Reading, aligned: Aligned) -> None:
        self.sums.append(aligned.sums())
        self.tokens += reading.length
        self.cut_tokens += reading.cut
        self.cut_documents += reading.cut > 0

    def result(self, sums: NDArray[np.float64], length: int | None, seed: int) -> ModelAttention:
        classes = {}
        for index, kind in enumerate(CLASSES):
            counts, shares = sums[:, 0, index], sums[:, 1, index]
            some = counts > 0
            classes[kind] = ClassAttention(
                documents=int(some.sum()),
                words=int(counts.sum()),
                weight=_estimate(shares[some] / counts[some], seed),
                share=_estimate(shares, seed),
            )
        return ModelAttention(len(sums), self.tokens, self.cut_documents, self.cut_tokens, length, classes)


def _changes(before: NDArray[np.float64], after: NDArray[np.float64], seed: int) -> dict[str, Estimate]:
    changes = {}
    for index, kind in enumerate(CLASSES):
        both = (before[:, 0, index] > 0) & (after[:, 0, index] > 0)
        weights = [sums[both, 1, index] / sums[both, 0, index] for sums in (before, after)]
        changes[kind] = _estimate(weights[1] - weights[0], seed)
    return changes


def _estimate(values: NDArray[np.float64], seed: int) -> Estimate:
    if not len(values):
        return Estimate(None, None, None)
    low, high = bootstrap_interval(values, seed=seed) if len(values) > 1 else (None, None)
    return Estimate(float(values.mean()), low, high)


def _percent(estimate: Estimate, interval: bool = True) -> str:
    if estimate.mean is None:
        return ""
    shown = f"{100 * estimate.mean:.3g}"
    if interval and estimate.low is not None and estimate.high is not None:
        shown += f" [{100 * estimate.low:.3g}, {100 * estimate.high:.3g}]"
    return shown
