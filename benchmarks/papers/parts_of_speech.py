"""Attention of ``[CLS]`` by part of speech, in one or several models (SimLTE, figure 3 and appendix C)."""

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
from simlte_st.evaluation.scores import bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.reading.documents import read_documents

PUNCTUATION, SPECIAL = "punctuation", "special tokens"
CLASSES = ("nouns", "verbs", "adjectives", "others", PUNCTUATION, SPECIAL)
"""Everything that ``[CLS]`` can attend to; the last two are not words."""

_CLASS_OF = {
    **{"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs", "ADJ": "adjectives"},
    **dict.fromkeys(("PUNCT", "SYM", "SPACE"), PUNCTUATION),
}
"""The class of each universal part of speech; all others, such as auxiliaries and adverbs, are "others"."""

_CONTEXT = 500
"""Characters after the last token that the tagger also sees, to tag the last words in context."""


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
        JSON values. By model and class, ``models`` holds the number of ``words``; the ``weight`` of one word (mean
        over a document's words, then over documents, as in the paper's figure) with its 95% interval; and the ``share``
        of all attention (mean over documents). ``changes`` holds the differences in weight to the first model, paired
        by document.

    References:
        SimLTE, appendix C: the last layer's weights from ``[CLS]``, averaged over the heads, then over nouns, verbs,
        adjectives and other words. The paper does not say whether the last average is over documents or words; here it
        is over documents.
    """
    lengths = [length for model in models.values() if (length := readable_length(model, max_seq_length)) is not None]
    length = min(lengths, default=max_seq_length)
    sums: dict[str, list[NDArray[np.float64]]] = {name: [] for name in models}
    for document in read_documents(documents):
        for name, model in models.items():
            read = read_text(model, document.text, length)
            end = max((stop for _, stop in read.spans), default=0)
            words = tagger.tag(read.text[: end + _CONTEXT])
            sums[name].append(sum_by_class(read, cls_attention(model, read, layer), words))
    stacked = {name: np.stack(of_documents) for name, of_documents in sums.items()}
    first = next(iter(models))
    return {
        "documents": len(stacked[first]),
        "max_seq_length": length,
        "layer": layer,
        "tagger": tagger.description,
        "models": {name: _summarise(values, seed) for name, values in stacked.items()},
        "changes": {
            name: _estimates(_word_weights(values) - _word_weights(stacked[first]), seed)
            for name, values in stacked.items()
            if name != first
        },
    }


def sum_by_class(read: ReadText, weights: Sequence[float], words: Sequence[TaggedWord]) -> NDArray[np.float64]:
    """Count words and sum attention by class, ``(2, classes)``, matching tokens to words by character offsets."""
    sums = np.zeros((2, len(CLASSES)))
    begin, end = (read.spans[0][0], read.spans[-1][1]) if read.spans else (0, 0)
    met = [word for word in words if word.start < end and word.stop > begin]
    places = [CLASSES.index(_CLASS_OF.get(word.pos, "others")) for word in met]
    class_at = {at: place for word, place in zip(met, places, strict=True) for at in range(word.start, word.stop)}
    np.add.at(sums[0], places, 1.0)
    for (start, stop), token in zip(read.spans, read.places, strict=True):
        found = Counter(class_at[at] for at in range(start, stop) if at in class_at)
        for place, count in (found or Counter([CLASSES.index(PUNCTUATION)])).items():
            sums[1, place] += weights[token] * count / max(1, found.total())
    special = CLASSES.index(SPECIAL)
    sums[:, special] = len(weights) - len(read.places), sum(weights) - sums[1].sum()
    return sums


def _word_weights(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean weight of a word, ``(documents, classes)``, from :func:`sum_by_class`; NaN without words."""
    counts, weights = sums[:, 0], sums[:, 1]
    means: NDArray[np.float64] = np.divide(weights, counts, out=np.full_like(weights, np.nan), where=counts > 0)
    return means


def _summarise(sums: NDArray[np.float64], seed: int) -> dict[str, Any]:
    weights, shares = _estimates(_word_weights(sums), seed), sums[:, 1].mean(axis=0)
    return {
        kind: {"words": int(sums[:, 0, place].sum()), "weight": weights[kind], "share": float(shares[place])}
        for place, kind in enumerate(CLASSES)
    }


def _estimates(values: NDArray[np.float64], seed: int) -> dict[str, list[float | None]]:
    """Return each class's mean over the documents with a value, and its interval; None without values."""
    found: dict[str, list[float | None]] = {}
    for kind, column in zip(CLASSES, values.T, strict=True):
        known = column[~np.isnan(column)]
        interval = bootstrap_interval(known, seed=seed) if len(known) > 1 else (None, None)
        found[kind] = [float(known.mean()) if len(known) else None, *interval]
    return found


def attention_table(found: Mapping[str, Any]) -> str:
    """Tabulate :func:`measure_attention` in percent, one row per class."""
    header = ["[CLS] attends to"]
    for name in found["models"]:
        header += [f"a word, % [95%]: {name}", "all, %", *(["change of a word's"] if name in found["changes"] else [])]
    first = next(iter(found["models"].values()))
    rows = []
    for kind in CLASSES:
        row = [kind]
        for name, classes in found["models"].items():
            mean, low, high = classes[kind]["weight"]
            interval = "" if low is None else f" [{100 * low:.3g}, {100 * high:.3g}]"
            row += ["" if mean is None else f"{100 * mean:.3g}{interval}", f"{100 * classes[kind]['share']:.3g}"]
            if name in found["changes"]:
                before, (_, least, most) = first[kind]["weight"][0], found["changes"][name][kind]
                unclear = least is None or least <= 0 <= most
                row.append(f"{mean / before - 1:+.0%}{' (unclear)' * unclear}" if mean and before else "")
        rows.append(row)
    reads = found["max_seq_length"]
    tagger = ", ".join(f"{name} {value}" for name, value in found["tagger"].items())
    layer = "last layer" if found["layer"] == -1 else f"layer {found['layer']}"
    return (
        f"{markdown_table(header, rows)}\n\n{found['documents']:,} documents, "
        f"{'whole' if reads is None else f'their first {reads:,} tokens'}; attention of the {layer}, mean over its "
        f"heads; tags: {tagger}."
    )
