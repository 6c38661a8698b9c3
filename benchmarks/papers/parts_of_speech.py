"""What ``[CLS]`` attends to, by part of speech, in one model or in several (SimLTE, figure 3 and appendix C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import length_hint
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from benchmarks.papers.cls_attention import TextAttention, read_texts
from benchmarks.papers.reading import as_read
from benchmarks.papers.tagging import TaggedWord, Tagger, batches, described
from simlte_st.compat import readable_length
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.truncation import Truncation
from simlte_st.progress import complete, progress_bar

WORD_CLASSES = ("nouns", "verbs", "adjectives", "others")
"""The kinds of words that the paper's figure shows."""

PUNCTUATION = "punctuation"
SPECIAL = "special tokens"
CLASSES = (*WORD_CLASSES, PUNCTUATION, SPECIAL)
"""All that ``[CLS]`` can attend to; the last two are no words."""

_CLASS_OF = {
    **{"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs", "ADJ": "adjectives"},
    **dict.fromkeys(("PUNCT", "SYM", "SPACE"), PUNCTUATION),
}
"""The class of each universal part of speech; auxiliaries, adverbs, pronouns, numbers, ... are others."""

_CONTEXT = 500
"""Characters behind what was read that the tagger is shown, so that it sees the last words in their sentence."""


class WordWeight(NamedTuple):
    """A word and how much ``[CLS]`` attends to it.

    Attributes:
        start: Index of its first character in the text.
        stop: Index after its last character.
        kind: One of :data:`WORD_CLASSES`, or :data:`PUNCTUATION`.
        weight: Attention, summed over the word's sub-words.
    """

    start: int
    stop: int
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class DocumentAttention:
    """What a model's ``[CLS]`` attends to in one document; the weights of words, between and special sum to 1.

    Attributes:
        words: The words that the model read, in order.
        between: Weight of tokens that stand in no word.
        special: Weight of special tokens, ``[CLS]`` itself among them.
        special_tokens: How many there are.
        tokens: Tokens of the whole document, special tokens not counted, whether or not the model read them.
        cut: How many of these it did not read.
    """

    words: tuple[WordWeight, ...]
    between: float
    special: float
    special_tokens: int
    tokens: int
    cut: int

    def sums(self) -> NDArray[np.float64]:
        """Count and weigh by class."""
        sums = np.zeros((2, len(CLASSES)))
        for word in self.words:
            sums[:, CLASSES.index(word.kind)] += 1.0, word.weight
        sums[1, CLASSES.index(PUNCTUATION)] += self.between
        sums[:, CLASSES.index(SPECIAL)] = self.special_tokens, self.special
        return sums


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
        truncation: How much of them was read.
        classes: By class, in the order of :data:`CLASSES`.
    """

    documents: int
    truncation: Truncation
    classes: dict[str, ClassAttention]


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

    def table(self, width: int | None = None) -> str:
        """Make a Markdown table, a row for each class; weights and shares in percent."""
        titles = {name: f"a word, % [95%]: {name}" for name in self.models}
        table = self._table(titles)
        if width is None or table.find("\n") <= width:
            return table
        return "\n\n".join(f"{name}\n{self._table({name: 'a word, % [95%]'})}" for name in titles)

    def _table(self, titles: Mapping[str, str]) -> str:
        header = ["[CLS] attends to"]
        for name, title in titles.items():
            header += [title, "all, %"]
            if name in self.changes:
                header.append("change of a word's")
        rows = []
        for kind in CLASSES:
            row = [kind]
            for name in titles:
                attention = self.models[name].classes[kind]
                row += [_percent(attention.weight), _percent(attention.share, interval=False)]
                if name in self.changes:
                    row.append(self._change(name, kind))
            rows.append(row)
        return markdown_table(header, rows)

    def summary(self) -> str:
        """Return what was read, a line for each model, and what decided the parts of speech."""
        lines = [f"{model.truncation.summary(name)}" for name, model in self.models.items()]
        layer = "last layer" if self.layer == -1 else f"layer {self.layer}"
        return "\n".join([*lines, f"Attention of the {layer}, mean over its heads; tags: {described(self.tagger)}."])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary that can be written as JSON."""
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
    documents: Any,
    tagger: Tagger,
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
    batch_size: int = 8,
    seed: int = 0,
    progress: bool = False,
) -> AttentionResult:
    """Measure what the models' ``[CLS]`` attends to, by part of speech, on the same documents.

    References:
        SimLTE, appendix C: the last layer's weights from ``[CLS]``, averaged over the heads; then averages over nouns,
        verbs, adjectives and other words. Whether a document or a word is the unit of the last average is not said:
        here it is the document.
    """
    if not models:
        raise ConfigurationError("There is no model to analyse.")
    length = _common_length(models, max_seq_length)
    sums: dict[str, list[NDArray[np.float64]]] = {name: [] for name in models}
    truncations = {name: Truncation.of(model, max_seq_length=length) for name, model in models.items()}
    reader = read_documents(documents)
    with progress_bar("Reading", length_hint(reader, 0) or None, shown=progress) as bar:
        for batch in batches(reader):
            texts = as_read(list(models.values()), [document.text for document in batch])
            attentions = {
                name: read_texts(model, texts, layer=layer, max_seq_length=length, batch_size=batch_size)
                for name, model in models.items()
            }
            ends = [max(one.extent[1] for one in of_models) for of_models in zip(*attentions.values(), strict=True)]
            words = tagger.tag([text[: end + _CONTEXT] for text, end in zip(texts, ends, strict=True)])
            for name in models:
                for attention, of_text in zip(attentions[name], words, strict=True):
                    aligned = align(attention, of_text)
                    sums[name].append(aligned.sums())
                    truncations[name].add([aligned.tokens])
            bar.update(len(batch))
        complete(bar)
    stacked = {name: np.stack(of_documents) for name, of_documents in sums.items()}
    first = next(iter(models))
    return AttentionResult(
        models={name: _summarise(stacked[name], truncations[name], seed) for name in models},
        changes={
            name: _by_class(_word_weights(stacked[name]) - _word_weights(stacked[first]), seed)
            for name in models
            if name != first
        },
        layer=layer,
        tagger=tagger.describe(),
        seed=seed,
    )


def document_attention(
    models: Mapping[str, SentenceTransformer],
    text: str,
    tagger: Tagger,
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
) -> dict[str, DocumentAttention]:
    """Measure what the models' ``[CLS]`` attends to in one document, word by word."""
    length = _common_length(models, max_seq_length)
    [text] = as_read(list(models.values()), [text])
    words = tagger.tag([text])[0]
    return {
        name: align(read_texts(model, [text], layer=layer, max_seq_length=length)[0], words)
        for name, model in models.items()
    }


def align(attention: TextAttention, words: Sequence[TaggedWord]) -> DocumentAttention:
    """Sum the weights of tokens over the words they stand in, by character offsets."""
    begin, stop = attention.extent
    read = [word for word in words if word.start < stop and word.stop > begin]
    word_at: dict[int, int] = {
        place: number for number, word in enumerate(read) for place in range(word.start, word.stop)
    }
    sums, between = [0.0] * len(read), 0.0
    own = ~attention.special
    for (start, end), weight in zip(attention.spans[own].tolist(), attention.weights[own].tolist(), strict=True):
        shares = Counter(word_at[place] for place in range(start, end) if place in word_at)
        for number, share in shares.items():
            sums[number] += weight * share / shares.total()
        if not shares:
            between += weight
    return DocumentAttention(
        words=tuple(
            WordWeight(word.start, word.stop, _CLASS_OF.get(word.pos, "others"), weight)
            for word, weight in zip(read, sums, strict=True)
        ),
        between=between,
        special=float(attention.weights[attention.special].sum()),
        special_tokens=int(attention.special.sum()),
        tokens=attention.length,
        cut=attention.cut,
    )


def _common_length(models: Mapping[str, SentenceTransformer], wanted: int | None) -> int | None:
    """Tokens that all models read of a document, special tokens included; None: nothing bounds it."""
    lengths = [length for model in models.values() if (length := readable_length(model, wanted)) is not None]
    return min(lengths, default=wanted)


def _summarise(sums: NDArray[np.float64], truncation: Truncation, seed: int) -> ModelAttention:
    """Summarise counts and weights, ``(documents, 2, classes)``."""
    if not np.isfinite(sums).all():
        raise DataError("The attention weights hold NaN or infinity: the model diverged, or overflows in its dtype.")
    weights, shares = _by_class(_word_weights(sums), seed), _by_class(sums[:, 1], seed)
    classes = {
        kind: ClassAttention(int((counts > 0).sum()), int(counts.sum()), weights[kind], shares[kind])
        for kind, counts in zip(CLASSES, sums[:, 0].T, strict=True)
    }
    return ModelAttention(len(sums), truncation, classes)


def _word_weights(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide ``(documents, 2, classes)`` to the mean weight of a word, ``(documents, classes)``; NaN without words."""
    counts, weights = sums[:, 0], sums[:, 1]
    means: NDArray[np.float64] = np.divide(weights, counts, out=np.full_like(weights, np.nan), where=counts > 0)
    return means


def _by_class(values: NDArray[np.float64], seed: int) -> dict[str, Estimate]:
    """Estimate the mean of each class over the documents that have a value; ``(documents, classes)``."""
    estimates = {}
    for kind, column in zip(CLASSES, values.T, strict=True):
        known = column[~np.isnan(column)]
        low, high = bootstrap_interval(known, seed=seed) if len(known) > 1 else (None, None)
        estimates[kind] = Estimate(float(known.mean()) if len(known) else None, low, high)
    return estimates


def _percent(estimate: Estimate, interval: bool = True) -> str:
    if estimate.mean is None:
        return ""
    shown = f"{100 * estimate.mean:.3g}"
    if interval and estimate.low is not None and estimate.high is not None:
        shown += f" [{100 * estimate.low:.3g}, {100 * estimate.high:.3g}]"
    return shown
