"""HTML report of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from sentence_transformers import SentenceTransformer

from simlte_st.errors import format_count
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.exploration.analysis import nearest_documents
from simlte_st.exploration.html import about, as_script, frame_page, make_curve, section, table
from simlte_st.exploration.page import MAX_CHARACTERS
from simlte_st.files import atomic_path
from simlte_st.models.names import shown_base
from simlte_st.models.vectors import unit_rows
from simlte_st.reading.document import Document, document_title
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import TrainingSetup
from simlte_st.training.result import ModelChoice, TrainingResult
from simlte_st.training.run import Run, trained_path

MAX_CHANGES = 10
"""Maximum number of documents to show with their neighbours."""

NEIGHBOURS = 5
"""Number of nearest neighbours to compare and show."""

_LINKS = {"loss": "Loss", "verdict": "Verdict", "neighbours": "Neighbours"}


class NeighbourChange(NamedTuple):
    """A document's nearest neighbours before and after training, as rows, nearest first."""

    row: int
    before: list[int]
    after: list[int]


def write_report(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, choice: ModelChoice, result: TrainingResult
) -> None:
    """Write the HTML report of a run."""
    assert result.report is not None
    assert choice.base is not None
    changes = largest_changes((choice.base, choice.trained), corpus.held_out, progress=run.progress)
    subtitle = (
        f"{shown_base(setup.base.name)}{' as a static model' * setup.static}, trained on "
        f"{format_count(result.corpus.documents, 'document')}: {format_count(result.steps, 'step')} in "
        f"{result.seconds:,.0f} s, in {result.dtype}"
    )
    preset = setup.preset
    loss = f"{type(setup.loss).__name__} with scale={preset.scale:g} and mlm_weight={preset.mlm_weight:g}"
    sections = [loss_section(result.log, loss), verdict_section(result), neighbours_section(changes, corpus.held_out)]
    page = frame_page(result.output.name, escape(subtitle), _LINKS, "\n".join(sections), "page.report.js")
    with atomic_path(result.report) as path:
        path.write_text(page, encoding="utf-8")


def largest_changes(
    models: tuple[SentenceTransformer, SentenceTransformer], documents: Sequence[Document], *, progress: bool = False
) -> list[NeighbourChange]:
    """Return the documents whose nearest neighbours changed most, with those neighbours."""
    if len(documents) < 3:
        return []
    texts = [document.text for document in documents]
    neighbours = []
    for model in models:
        vectors = unit_rows(encode_texts(model, texts, show_progress_bar=progress)).astype(np.float32)
        neighbours.append(nearest_documents(vectors)[0][:, :NEIGHBOURS].tolist())
    overlaps = [len({*before} & {*after}) for before, after in zip(*neighbours, strict=True)]
    rows = np.argsort(overlaps, kind="stable")[:MAX_CHANGES].tolist()
    return [NeighbourChange(row, neighbours[0][row], neighbours[1][row]) for row in rows]


def loss_section(log: Sequence[Mapping[str, Any]], loss: str) -> str:
    """Return a section with the loss curve."""
    lines = [line for line in log if "loss" in line]
    plot = make_curve([line["step"] for line in lines], [line["loss"] for line in lines], "loss")
    curve = f'<div class="curve"><script type="application/json">{as_script(plot)}</script></div>'
    note = f"The loss is {loss}. Each point is the mean since the previous point; smaller batches have a lower loss."
    fallback = '<noscript><p class="problem">The loss curve needs JavaScript.</p></noscript>'
    return section("loss", "Loss", about(note), curve, fallback)


def verdict_section(result: TrainingResult) -> str:
    """Return a section with the verdict, its measures and the model that was kept."""
    gain, name = result.gain, result.output.name
    summary = gain["summary"] if gain else "Too few documents were held out to measure whether training helped."
    model = f"{name} is the trained model."
    if result.kept == "base":
        model = f"{name} is the untrained base; the trained model is in {trained_path(result.output).name}."
    parts = [f"<p>{escape(summary)}</p>", f"<p><strong>{escape(model)}</strong></p>"]
    if gain:
        lines, _, footnote = gain["table"].partition("\n\n")
        cells = [[escape(cell.strip()) for cell in line.strip("|").split("|")] for line in lines.splitlines()]
        parts.append(table(cells[0], cells[2:], range(1, len(cells[0]))))
        note = "Before (the base) and after training, in percent, with 95% confidence intervals."
        parts.append(about(f"{note} {footnote}".rstrip()))
    return section("verdict", "Verdict", *parts)


def neighbours_section(changes: Sequence[NeighbourChange], documents: Sequence[Document]) -> str:
    """Return a section that shows documents' neighbours before and after training, side by side."""
    if not changes:
        return section("neighbours", "Neighbours", about("Too few documents were held out to compare neighbours."))
    note = (
        f"The {len(changes)} of {len(documents):,} held-out documents whose {NEIGHBOURS} nearest neighbours changed "
        "most, with their neighbours before (base) and after (trained model). Click a title to read the text."
    )
    parts = [about(note)]
    for change in changes:
        sides = []
        for side, rows in (("before", change.before), ("after", change.after)):
            entries = "".join(f"<li>{_details(documents[row])}</li>" for row in rows)
            sides.append(f'<div><h3>{side.capitalize()}</h3><ol class="{side}">{entries}</ol></div>')
        head = _details(documents[change.row])
        parts.append(f'<div class="changed">{head}<div class="columns">{"".join(sides)}</div></div>')
    return section("neighbours", "Neighbours", *parts)


def _details(document: Document) -> str:
    """Return a document's title and label, with a text that expands on click."""
    title = f"<bdi>{escape(document_title(None, document.text))}</bdi>"
    label = "" if document.label is None else f' <span class="number">{escape(str(document.label))}</span>'
    ellipsis = "…" * (len(document.text) > MAX_CHARACTERS)
    text = f'<p class="text">{escape(document.text[:MAX_CHARACTERS])}{ellipsis}</p>'
    return f"<details><summary>{title}{label}</summary>{text}</details>"
