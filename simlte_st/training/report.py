"""HTML report of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from simlte_st.errors import format_count
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.exploration.html import about, as_script, frame_page, make_curve, section, table
from simlte_st.exploration.layout import nearest_documents
from simlte_st.exploration.page import MAX_CHARACTERS
from simlte_st.files import atomic_path
from simlte_st.models.names import shown_base
from simlte_st.models.vectors import unit_rows
from simlte_st.reading.columns import document_title
from simlte_st.reading.document import Document
from simlte_st.training.choose_model import Finished
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import Loaded
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import Run, trained_path

CHANGED = 10
"""Number of documents to show."""

NEIGHBOURS = 5
"""Number of nearest documents to compare and show."""

_LINKS = {"loss": "Loss", "verdict": "Verdict", "neighbours": "Neighbours"}


@dataclass(frozen=True, slots=True)
class NeighbourChange:
    """Rows of the nearest documents of a document before and after training, nearest first."""

    row: int
    before: list[int]
    after: list[int]


def write_report(run: Run, loaded: Loaded, corpus: TrainingCorpus, finished: Finished, result: TrainingResult) -> None:
    """Write the report of a run."""
    assert result.report is not None
    assert finished.base is not None
    changes = changed_most((finished.base, finished.trained), corpus.held_out, progress=run.progress)
    line = (
        f"{shown_base(loaded.base.name)}{' as a static model' * loaded.static}, trained on "
        f"{format_count(result.corpus.documents, 'document')}: {format_count(result.steps, 'step')} in "
        f"{result.seconds:,.0f} s, in {result.dtype}"
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
    """Return the documents whose neighbours changed most."""
    if len(documents) < 3:
        return []
    texts = [document.text for document in documents]
    near = []
    for model in models:
        vectors = unit_rows(encode_texts(model, texts, show_progress_bar=progress)).astype(np.float32)
        near.append(nearest_documents(vectors)[0][:, :NEIGHBOURS].tolist())
    shared = [len({*before} & {*after}) for before, after in zip(*near, strict=True)]
    rows = np.argsort(shared, kind="stable")[:CHANGED].tolist()
    return [NeighbourChange(row, near[0][row], near[1][row]) for row in rows]


def loss_section(log: Sequence[Mapping[str, Any]], loss: str) -> str:
    """Return a section with the loss over the steps."""
    lines = [line for line in log if "loss" in line]
    item = make_curve([line["step"] for line in lines], [line["loss"] for line in lines], "loss")
    curve = f'<div class="curve"><script type="application/json">{as_script(item)}</script></div>'
    explained = f"The loss is {loss}. Each point is the mean since the last one; smaller batches have a lower loss."
    needed = '<noscript><p class="problem">The curve needs JavaScript.</p></noscript>'
    return section("loss", "Loss", about(explained), curve, needed)


def verdict_section(result: TrainingResult) -> str:
    """Return a section with the verdict, its measures, and the kept model."""
    gain, name = result.gain, result.output.name
    said = gain["summary"] if gain else "Too few documents were held out to measure whether training helped."
    kept = f"{name} is the trained model."
    if result.kept == "base":
        kept = f"{name} is the untrained base; the trained model is in {trained_path(result.output).name}."
    parts = [f"<p>{escape(said)}</p>", f"<p><strong>{escape(kept)}</strong></p>"]
    if gain:
        cells = [[escape(cell.strip()) for cell in line.strip("|").split("|")] for line in gain["table"].splitlines()]
        parts.append(table(cells[0], cells[2:], (1, 2, 3)))
        parts.append(about("Before: the base; after: the trained model; in percent, with 95% intervals."))
    return section("verdict", "Verdict", *parts)


def neighbours_section(changes: Sequence[NeighbourChange], documents: Sequence[Document]) -> str:
    """Return a section of documents with their neighbours before and after training, side by side."""
    if not changes:
        return section("neighbours", "Neighbours", about("Too few documents were held out to compare neighbours."))
    explained = (
        f"The {len(changes)} of {len(documents):,} held-out documents whose {NEIGHBOURS} nearest neighbours changed "
        "most, with their neighbours before (base) and after (trained model). Click a title for the text."
    )
    parts = [about(explained)]
    for change in changes:
        sides = []
        for side, rows in (("before", change.before), ("after", change.after)):
            listed = "".join(f"<li>{_document(documents[row])}</li>" for row in rows)
            sides.append(f'<div><h3>{side.capitalize()}</h3><ol class="{side}">{listed}</ol></div>')
        head = _document(documents[change.row])
        parts.append(f'<div class="changed">{head}<div class="columns">{"".join(sides)}</div></div>')
    return section("neighbours", "Neighbours", *parts)


def _document(document: Document) -> str:
    title = f"<bdi>{escape(document_title(None, document.text))}</bdi>"
    label = "" if document.label is None else f' <span class="number">{escape(str(document.label))}</span>'
    ellipsis = "…" * (len(document.text) > MAX_CHARACTERS)
    text = f'<p class="text">{escape(document.text[:MAX_CHARACTERS])}{ellipsis}</p>'
    return f"<details><summary>{title}{label}</summary>{text}</details>"
