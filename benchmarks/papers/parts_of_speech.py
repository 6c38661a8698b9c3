"""Attention of ``[CLS]`` by part of speech, in one or more models (SimLTE, figure 3 and appendix C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from benchmarks.papers.reading import ReadText, cls_attention, read_text
from benchmarks.papers.tagging import SpacyTagger, TaggedWord
from simlte_st.compat import readable_length
from simlte_st.data import read_documents
from simlte_st.evaluation import bootstrap_interval
from simlte_st.evaluation.table import markdown_table

PUNCTUATION, SPECIAL = "punctuation", "special tokens"
CLASSES = ("nouns", "verbs", "adjectives", "others", PUNCTUATION, SPECIAL)
"""The targets of the attention of ``[CLS]``; the last two are not words."""

_WORD_CLASSES = {
    **{"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs", "ADJ": "adjectives"},
    **dict.fromkeys(("PUNCT", "SYM", "SPACE"), PUNCTUATION),
}
"""The class of universal parts of speech; the remaining ones, such as auxiliaries and adverbs, are "others"."""

_CONTEXT = 500
"""Number of characters after the last token that the tagger reads as context."""


def measure_attention(
    models: Mapping[str, SentenceTransformer],
    documents: Any,
    tagger: SpacyTagger,
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure the attention of the models' ``[CLS]`` by part of speech, on the same documents.

    Returns:
        JSON values. ``models`` holds, by model and class, the number of ``words``; the ``weight`` of a word (mean over
        a document's words, then over documents, as in the paper's figure) with its 95% interval; and the ``share`` of
        all attention (mean over documents). ``changes`` holds differences in weight from the first model, paired by
        document.

    References:
        SimLTE, appendix C: the last layer's weights from ``[CLS]``, averaged over heads, then over nouns, verbs,
        adjectives and other words. The paper does not say whether the last average is over documents or words; here it
        is over documents.
    """
    lengths = [length for model in models.values() if (length := readable_length(model, max_seq_length)) is not None]
    length = min(lengths, default=max_seq_length)
    sums: dict[str, list[NDArray[np.float64]]] = {name: [] for name in models}
    for document in read_documents(documents):
        for name, model in models.items():
            text = read_text(model, document.text, length)
            end = max((stop for _, stop in text.spans), default=0)
            words = tagger.tag(text.text[: end + _CONTEXT])
            sums[name].append(sum_by_class(text, cls_attention(model, text, layer), words))
    class_sums = {name: np.stack(document_sums) for name, document_sums in sums.items()}
    first = next(iter(models))
    return {
        "documents": len(class_sums[first]),
        "max_seq_length": length,
        "layer": layer,
        "tagger": tagger.description,
        "models": {name: _summarise(values, seed) for name, values in class_sums.items()},
        "changes": {
            name: _estimates(_word_weights(values) - _word_weights(class_sums[first]), seed)
            for name, values in class_sums.items()
            if name != first
        },
    }


def sum_by_class(text: ReadText, weights: Sequence[float], words: Sequence[TaggedWord]) -> NDArray[np.float64]:
    """Count words and sum attention by class, ``[2, classes]``, matching tokens to words by character offsets."""
    sums = np.zeros((2, len(CLASSES)))
    begin, end = (text.spans[0][0], text.spans[-1][1]) if text.spans else (0, 0)
    words_read = [word for word in words if word.start < end and word.stop > begin]
    classes = [CLASSES.index(_WORD_CLASSES.get(word.pos, "others")) for word in words_read]
    tagged = zip(words_read, classes, strict=True)
    class_at = {offset: number for word, number in tagged for offset in range(word.start, word.stop)}
    np.add.at(sums[0], classes, 1.0)
    for (start, stop), token in zip(text.spans, text.positions, strict=True):
        counts = Counter(class_at[offset] for offset in range(start, stop) if offset in class_at)
        for number, count in (counts or Counter([CLASSES.index(PUNCTUATION)])).items():
            sums[1, number] += weights[token] * count / max(1, counts.total())
    special = CLASSES.index(SPECIAL)
    sums[:, special] = len(weights) - len(text.positions), sum(weights) - sums[1].sum()
    return sums


def _word_weights(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean weight of a word, ``[documents, classes]``, from :func:`sum_by_class`; NaN without words."""
    counts, weights = sums[:, 0], sums[:, 1]
    return np.divide(weights, counts, out=np.full_like(weights, np.nan), where=counts > 0)


def _summarise(sums: NDArray[np.float64], seed: int) -> dict[str, Any]:
    weights, shares = _estimates(_word_weights(sums), seed), sums[:, 1].mean(axis=0)
    return {
        kind: {"words": int(sums[:, 0, column].sum()), "weight": weights[kind], "share": float(shares[column])}
        for column, kind in enumerate(CLASSES)
    }


def _estimates(values: NDArray[np.float64], seed: int) -> dict[str, list[float | None]]:
    """Return each class's mean over the documents with a value, and its interval; None without values."""
    estimates: dict[str, list[float | None]] = {}
    for kind, column in zip(CLASSES, values.T, strict=True):
        present = column[~np.isnan(column)]
        interval = bootstrap_interval(present, seed=seed) if len(present) > 1 else (None, None)
        estimates[kind] = [float(present.mean()) if len(present) else None, *interval]
    return estimates


def attention_table(results: Mapping[str, Any]) -> str:
    """Tabulate :func:`measure_attention` in percent, one row per class."""
    header = ["[CLS] attends to"]
    for name in results["models"]:
        header += [f"a word, % [95%]: {name}", "all, %", *["change of a word's"] * (name in results["changes"])]
    first = next(iter(results["models"].values()))
    rows = []
    for kind in CLASSES:
        row = [kind]
        for name, classes in results["models"].items():
            mean, low, high = classes[kind]["weight"]
            interval = "" if low is None else f" [{100 * low:.3g}, {100 * high:.3g}]"
            row += ["" if mean is None else f"{100 * mean:.3g}{interval}", f"{100 * classes[kind]['share']:.3g}"]
            if name in results["changes"]:
                before, (_, low, high) = first[kind]["weight"][0], results["changes"][name][kind]
                unclear = low is None or low <= 0 <= high
                row.append(f"{mean / before - 1:+.0%}{' (unclear)' * unclear}" if mean and before else "")
        rows.append(row)
    limit = results["max_seq_length"]
    tagger = ", ".join(f"{name} {value}" for name, value in results["tagger"].items())
    layer = "last layer" if results["layer"] == -1 else f"layer {results['layer']}"
    return (
        f"{markdown_table(header, rows)}\n\n{results['documents']:,} documents, "
        f"{'whole' if limit is None else f'their first {limit:,} tokens'}; attention of the {layer}, mean over its "
        f"heads; tags: {tagger}."
    )
