"""The report of a run: a page that shows what training did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.data.columns import title_of
from simlte_st.data.document import Document
from simlte_st.evaluation.comparison import TFIDF
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.evaluation.table import in_interval
from simlte_st.exploration.html import about, as_script, frame_page, make_curve, section, table
from simlte_st.exploration.layout import nearest_documents
from simlte_st.exploration.page import SHOWN
from simlte_st.files import atomic_path
from simlte_st.models.names import shown_base
from simlte_st.models.vectors import unit_rows
from simlte_st.training.evaluate import Finished
from simlte_st.training.load_corpus import Corpus
from simlte_st.training.load_model import Loaded
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import Run, trained_path

CHANGED = 10
"""Documents that are shown."""

NEIGHBOURS = 5
"""Nearest documents that are compared, and shown of each."""

_LINKS = {"loss": "Loss", "verdict": "Verdict", "neighbours": "Neighbours"}
_TERMS = {"contrastive": "contrastive term", "mlm": "MLM term", "loss": "loss"}
_MEASURES = {
    "structure": ("nearest documents on which both halves of a document agree", "structure_agreement"),
    "words": ("nearest documents of one half that share most words with the other half", None),
    "split_half": ("halves that find each other (mean reciprocal rank)", "split_half_mrr"),
}


@dataclass(frozen=True, slots=True)
class NeighbourChange:
    """The nearest documents of one document before and after training.

    Attributes:
        row: The document.
        overlap: Agreement of both lists, from 0 to 1: see :func:`average_overlap`.
        before: Rows and cosines of the nearest documents with the base, the nearest first.
        after: The same with the trained model.
    """

    row: int
    overlap: float
    before: list[tuple[int, float]]
    after: list[tuple[int, float]]


def write_report(run: Run, loaded: Loaded, corpus: Corpus, finished: Finished, result: TrainingResult) -> None:
    """Write the report of a run."""
    assert result.report is not None
    assert finished.base is not None
    changes = changed_most((finished.base, finished.trained), corpus.held_out, progress=run.progress)
    line = (
        f"{shown_base(loaded.base.name)}{' as a static model' * loaded.static}, trained on "
        f"{result.corpus.documents:,} documents: {result.steps:,} steps in {result.seconds:,.0f} s, in {result.dtype}"
    )
    preset = loaded.preset
    loss = f"{type(loaded.loss).__name__} with scale={preset.scale:g} and mlm_weight={preset.mlm_weight:g}"
    sections = [loss_section(result.log, loss), verdict_section(result), neighbours_section(changes, corpus.held_out)]
    written = frame_page(result.output.name, escape(line), _LINKS, "\n".join(sections), "page.report.js")
    with atomic_path(result.report) as temporary:
        temporary.write_text(written, encoding="utf-8")


def changed_most(
    models: tuple[SentenceTransformer, SentenceTransformer], documents: Sequence[Document], *, progress: bool = False
) -> list[NeighbourChange]:
    """Return the documents whose nearest documents changed most."""
    if len(documents) < 3:
        return []
    texts = [document.text for document in documents]
    sides = []
    for model, name in zip(models, ("base", "trained"), strict=True):
        vectors = encode_texts(
            model, texts, show_progress_bar=progress, bar_name=f"Encoding held-out documents ({name})"
        )
        near, cosines = nearest_documents(unit_rows(vectors).astype(np.float32))
        sides.append((near[:, :NEIGHBOURS], cosines[:, :NEIGHBOURS]))
    (before, old), (after, new) = sides
    overlaps = average_overlap(before, after)
    return [
        NeighbourChange(
            row,
            float(overlaps[row]),
            list(zip(before[row].tolist(), old[row].tolist(), strict=True)),
            list(zip(after[row].tolist(), new[row].tolist(), strict=True)),
        )
        for row in np.argsort(overlaps, kind="stable")[:CHANGED].tolist()
    ]


def average_overlap(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the overlap of ranked lists: the mean over depths of the share of the first entries that both have.

    References:
        Fagin, Kumar and Sivakumar, "Comparing top k lists", 2003: 1 less its intersection metric.
    """
    depths = range(1, first.shape[1] + 1)
    equal = first[:, :, None] == second[:, None, :]
    shares = [equal[:, :depth, :depth].sum(axis=(1, 2)) / depth for depth in depths]
    return np.asarray(np.mean(shares, axis=0))


def loss_section(log: Sequence[Mapping[str, Any]], loss: str) -> str:
    """Return a section with the loss over the steps, or with its terms if it has several."""
    lines = [line for line in log if "loss" in line]
    terms = [name for name in _TERMS if name != "loss" and all(name in line for line in lines)] or ["loss"]
    explained = (
        f"The loss is {loss}. Each point is the mean since the one before. A small batch, as the last of a pass can "
        "be, has a low loss."
    )
    if "mlm" in terms:
        explained += " The MLM term is weighted: both add up to the loss."
    curves = []
    for term in terms:
        name = _TERMS[term]
        item = make_curve([line["step"] for line in lines], [line[term] for line in lines], name)
        script = f'<script type="application/json">{as_script(item)}</script>'
        curves.append(f'<div><h3>{name}</h3><div class="curve">{script}</div></div>')
    needed = '<noscript><p class="problem">The curves need JavaScript.</p></noscript>'
    return section("loss", "Loss", about(explained), f'<div class="columns">{"".join(curves)}</div>', needed)


def verdict_section(result: TrainingResult) -> str:
    """Return a section with the verdict, its measures, the probe, and which model was kept."""
    gain = result.gain
    said = gain["summary"] if gain else "Too few documents were held out to measure whether training helped."
    parts = [f"<p>{escape(said)}</p>", f"<p><strong>{escape(_model_is(result))}</strong></p>"]
    if gain:
        words = gain["halves"][TFIDF]
        rows = [
            _row(f"{measure}, {gain['documents']:,} documents", gain[name], words[baseline] if baseline else None)
            for name, (measure, baseline) in _MEASURES.items()
        ]
        if gain["probe"]:
            probe = gain["probe"]
            scored = f"probe with few labels (macro-F1), scored on {probe['documents']:,} documents"
            rows.append(_row(scored, probe, None))
        header = ("in percent", TFIDF, "before", "after", "difference [95%]")
        parts.append(table(header, rows, (1, 2, 3, 4)))
        probability = f"{gain['probability']:.0%}"
        parts.append(
            about(
                f"Before is the base, after the trained model. According to the differences without labels, the "
                f"probability that labels would prefer the trained model is {probability}."
            )
        )
    return section("verdict", "Verdict", *parts)


def _model_is(result: TrainingResult) -> str:
    name = result.output.name
    if result.kept == "base":
        return f"{name} is the untrained base; the trained model is in {trained_path(result.output).name}."
    if result.gain and result.gain["verdict"] == "helped":
        return f"{name} is the trained model."
    return f"{name} is the trained model, because keep='trained' was set."


def _row(measure: str, values: Mapping[str, Any], words: float | None) -> list[str]:
    numbers = ["" if value is None else f"{100 * value:.1f}" for value in (words, values["base"], values["model"])]
    return [escape(measure), *numbers, in_interval(*(100 * values[name] for name in ("mean", "low", "high")))]


def neighbours_section(changes: Sequence[NeighbourChange], documents: Sequence[Document]) -> str:
    """Return a section of documents with their nearest before and after training, side by side."""
    if not changes:
        return section("neighbours", "Neighbours", about("Too few documents were held out to have neighbours."))
    explained = (
        f"The {len(changes)} of {len(documents):,} held-out documents whose {len(changes[0].before)} nearest changed "
        "most, each with its nearest among the others and their cosines: before with the base, after with the "
        "trained model. A minus marks documents that are near before only, a plus those that are near after only. "
        "Click a title for the text."
    )
    parts = [about(explained)]
    for change in changes:
        sides = []
        for title, own, other in (("Before", change.before, change.after), ("After", change.after, change.before)):
            side = title.lower()
            shared = {row for row, _ in other}
            items = [
                _document(documents[row], f"{cosine:.2f}", "" if row in shared else f"only-{side}")
                for row, cosine in own
            ]
            listed = "".join(f"<li>{item}</li>" for item in items)
            sides.append(f'<div><h3>{title}</h3><ol class="{side}">{listed}</ol></div>')
        head = _document(documents[change.row], "", "")
        parts.append(f'<div class="changed">{head}<div class="columns">{"".join(sides)}</div></div>')
    return section("neighbours", "Neighbours", *parts)


def _document(document: Document, number: str, kind: str) -> str:
    sign = {"only-before": "− ", "only-after": "+ "}.get(kind, "")
    title = f'<span class="{kind}">{sign}<bdi>{escape(title_of(None, document.text))}</bdi></span>'
    title = title if number else f"<strong>{title}</strong>"
    label = "" if document.label is None else f' <span class="number">{escape(str(document.label))}</span>'
    cosine = f'<span class="number">{number}</span> ' if number else ""
    cut = len(document.text) - SHOWN
    more = about(f"… {cut:,} more characters") if cut > 0 else ""
    text = f'<p class="text">{escape(document.text[:SHOWN])}</p>{more}'
    return f"<details><summary>{cosine}{title}{label}</summary>{text}</details>"
