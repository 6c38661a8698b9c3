"""From documents to the page: topics, a map, near copies, outliers, and the corpus in numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simlte_st.checks import check_count, check_number, check_seed
from simlte_st.data.columns import Column, columns_of, titles_of
from simlte_st.data.topic_terms import topic_terms
from simlte_st.errors import ConfigurationError
from simlte_st.exploration.copies import Copies, find_copies
from simlte_st.exploration.corpus import describe_corpus
from simlte_st.exploration.figure import bokeh
from simlte_st.exploration.follow import Follow, follow
from simlte_st.exploration.layout import Layout, lay_out, nearest_documents
from simlte_st.exploration.outliers import find_outliers
from simlte_st.exploration.page import page_data, write_page
from simlte_st.exploration.pile import Halves, Pile, encode_halves, open_pile
from simlte_st.exploration.sections import (
    copies_section,
    corpus_section,
    document_links,
    outliers_section,
    topics_section,
)
from simlte_st.exploration.topics import Stability, Topics, find_topics
from simlte_st.extras import require
from simlte_st.files import atomic_path, check_apart, check_new, check_place
from simlte_st.index import Index
from simlte_st.index.encoder import Model

HALVES = 1_000
"""Documents that are cut into halves, to choose the number of topics."""

TYPICAL = 3
"""Documents that are shown of a topic."""

RESERVED = ("id", "x", "y", "topic", "topic_name", "copy_group", "text")
"""Columns of the table beside the page; a column of the source with such a name gets a ``_`` after it."""

_SHORT = 2  # terms of a topic's name on the map


@dataclass(frozen=True, slots=True)
class ExploreReport:
    """What a page shows.

    Attributes:
        page: The page.
        table: The table beside it.
        documents: Number of documents.
        topics: Name and number of documents of each topic.
        none: Documents that belong to none.
        stability: The agreement of halves on this number of topics.
        trustworthiness: How much the map keeps of who is near whom, from 0 to 1.
        copies: Documents that are copies of others.
        label: Column that topics were compared with, and the agreement.
    """

    page: str
    table: str
    documents: int
    topics: list[tuple[str, int]]
    none: int
    stability: Stability
    trustworthiness: float
    copies: int
    label: dict[str, Any] | None

    def summary(self) -> str:
        """Say it in a few lines."""
        lines = [
            f"{self.documents:,} documents in {len(self.topics)} topics, {self.none:,} in none (halves agree by "
            f"{self.stability.agreement:.2f}); {self.copies:,} are copies; the map's trustworthiness is "
            f"{self.trustworthiness:.2f}",
            *(f"  {size:>7,}  {name}" for name, size in self.topics),
            f"Open {self.page} in a browser; {self.table} holds places and topics.",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def explore(
    model: Model | Index,
    documents: Any = None,
    *,
    output: str | os.PathLike[str],
    label: str | None = None,
    title: str | None = None,
    topics: int | None = None,
    similarity: float = 0.75,
    index_model: Model | None = None,
    device: str | None = None,
    batch_size: int = 32,
    overwrite: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> ExploreReport:
    """Write a page that shows what is in a pile of documents, and a table beside it.

    Memory holds the documents and their vectors. What takes long is encoding: of a large pile make an index first,
    which can be interrupted, and explore that.

    Args:
        model: The model, with ``documents``; or, without, an index or its folder.
        documents: What :func:`~simlte_st.data.read_documents` takes.
        output: The page, a file whose name ends in .html. The table is a file of that name that ends in .parquet: id,
            x, y, topic (-1 for none), topic_name, copy_group (the id of its first document), text, and all columns.
        label: Column that topics are compared with: classes, numbers or dates.
        title: Column of titles. Without it: one called title, headline, subject or name; else the first line.
        topics: Number of topics; without it the number on which halves of documents agree most.
        similarity: Share of their five-word runs that documents have in common, from which on they are near copies.
        index_model: The model of the index, where it is elsewhere now.
        device: Where the model computes; None for a GPU, if there is one.
        batch_size: Texts encoded at once.
        overwrite: Replace both files.
        seed: Decides everything that is drawn.
        progress: Show progress bars.

    Returns:
        What the page shows.

    Raises:
        ConfigurationError: A file exists or cannot be written, or a value is out of range.
        DataError: The documents cannot be read, there are too few, or a column is missing.
        ModelError: There is no such model.
        StoreError: There is no index, or it cannot be read.
        MissingExtraError: The extra ``explore`` is not installed.
    """
    page = check_output(output, documents, overwrite)
    check_number("similarity", similarity, above=0, most=1)
    check_seed(seed)
    if topics is not None:
        check_count("topics", topics, least=2)
    named = {parameter: name for parameter, name in (("label", label), ("title", title)) if name is not None}
    pile, encoder = open_pile(
        model,
        documents,
        device=device,
        index_model=index_model,
        columns=named,
        batch_size=batch_size,
        progress=progress,
    )
    columns = columns_of(pile.documents)
    titles = titles_of(pile.documents, columns, title)
    compared = next((column for column in columns if column.name == label), None)
    halves = encode_halves(pile, encoder, HALVES, seed=seed, batch_size=batch_size, progress=progress)
    return write_exploration(
        pile,
        halves,
        columns,
        titles,
        compared,
        page,
        topics=topics,
        similarity=similarity,
        seed=seed,
        progress=progress,
    )


def check_output(output: str | os.PathLike[str], documents: Any, overwrite: bool) -> Path:
    """Check, before work begins, that the page and its table can be written and what they need is installed."""
    page = Path(output)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"{page}: the page is a file whose name ends in .html.")
    for path in (page, table_path(page)):
        try:
            check_apart(documents, path, is_document=path == page)
        except ConfigurationError as error:
            if path == page:
                raise
            raise ConfigurationError(
                f"{page}: the table beside it, {path}, would replace the documents: choose another name for the page."
            ) from error
        check_place(path)
        check_new(path, overwrite and path.is_file())
    bokeh("bokeh")
    require("datasketch", "explore", "finding near copies")
    require("py3langid", "explore", "finding documents of another language")
    return page


def table_path(page: Path) -> Path:
    """Return the place of the table: ``pile.parquet`` beside ``pile.html``."""
    return page.with_suffix(".parquet")


def rename_reserved(columns: Sequence[Column]) -> list[Column]:
    """Return the columns under names that none of :data:`RESERVED` has."""
    taken, named = set(RESERVED), []
    for column in columns:
        name = column.name
        while name in taken:
            name += "_"
        taken.add(name)
        named.append(replace(column, name=name))
    return named


def write_exploration(
    pile: Pile,
    halves: Halves,
    columns: Sequence[Column],
    titles: Sequence[str],
    label: Column | None,
    page: Path,
    *,
    topics: int | None = None,
    similarity: float = 0.75,
    seed: int = 0,
    progress: bool = False,
) -> ExploreReport:
    """Write the page and its table: everything of :func:`explore` but reading and encoding."""
    texts, columns = pile.texts, rename_reserved(columns)
    found = find_topics(pile.vectors, halves, topics, seed=seed, progress=progress)
    terms = topic_terms(texts, found.assigned, len(found.centres))
    names = [", ".join(each) or f"topic {number}" for number, each in enumerate(terms, start=1)]
    near, cosines = nearest_documents(pile.vectors, progress=progress)
    places = lay_out(pile.vectors, seed=seed, progress=progress)
    copies = find_copies(texts, similarity, seed=seed, progress=progress)
    followed = None if label is None else follow(label, found.assigned, len(names))
    link = document_links(titles)
    sections = [
        topics_section(
            names,
            found.sizes.tolist(),
            typical_documents(found, copies),
            followed.rows if followed else [],
            followed.name if followed else "",
            _topic_notes(found, followed),
            found.tried,
            link,
        ),
        copies_section(copies, link),
        outliers_section(find_outliers(texts, cosines), link),
        corpus_section(describe_corpus(pile, seed=seed, progress=progress), pile.truncation, pile.reading),
    ]
    data = page_data(
        [document.id for document in pile.documents],
        titles,
        texts,
        columns,
        assigned=found.assigned,
        topic_names=names,
        short_names=[", ".join(each[:_SHORT]) for each in terms],
        name_places=_middles(places, found),
        near=near,
        cosines=cosines,
        groups=copies.groups,
    )
    about = f"{len(pile):,} documents · {len(names)} topics"
    map_note = (
        "Documents that are near each other are alike; directions and distances across the map mean nothing. "
        f"Trustworthiness {places.trustworthiness:.2f} (1 where all neighbours on the map are neighbours by vectors)."
    )
    written = write_page(pile.name, escape(about), escape(map_note), sections, places.places, data)
    _write_table(table_path(page), pile, columns, found, names, places, copies)
    with atomic_path(page) as temporary:
        temporary.write_text(written, encoding="utf-8")
    return ExploreReport(
        page=str(page),
        table=str(table_path(page)),
        documents=len(pile),
        topics=list(zip(names, found.sizes.tolist(), strict=True)),
        none=int((found.assigned < 0).sum()),
        stability=found.stability,
        trustworthiness=places.trustworthiness,
        copies=copies.report.exact + copies.report.near,
        label=None if followed is None else {"name": followed.name, "nmi": followed.nmi, "ari": followed.ari},
    )


def typical_documents(topics: Topics, copies: Copies) -> list[list[int]]:
    """Return the documents nearest to the centre of each topic, no two of them copies of each other."""
    typical = []
    for topic in range(len(topics.centres)):
        members = np.flatnonzero(topics.assigned == topic)
        ordered = members[np.argsort(-topics.cosines[members], kind="stable")]
        _, first = np.unique(copies.groups[ordered], return_index=True)
        typical.append(ordered[np.sort(first)][:TYPICAL].tolist())
    return typical


def _topic_notes(topics: Topics, followed: Follow | None) -> list[str]:
    none = int((topics.assigned < 0).sum())
    notes = [
        f"{len(topics.centres)} topics. First and second halves of documents, clustered by themselves, agree by "
        f"{topics.stability.agreement:.2f} (adjusted mutual information: 0 by chance, 1 where both halves of each "
        "document fall alike)"
        + ("; the number is the one at which they tell most of each other." if len(topics.tried) > 1 else "."),
    ]
    if none:
        belong = "document belongs to none: its" if none == 1 else "documents belong to none: their"
        notes.append(f"{none:,} {belong} halves would fall into two topics rather than into one.")
    return [*notes, followed.summary()] if followed else notes


def _middles(layout: Layout, topics: Topics) -> NDArray[np.float32]:
    """Return the place of each topic's name: the document nearest to the median place of the topic's documents."""
    middles = np.zeros((len(topics.centres), 2), dtype=np.float32)
    for topic in range(len(middles)):
        own = layout.places[topics.assigned == topic]
        if len(own):
            middles[topic] = own[np.linalg.norm(own - np.median(own, axis=0), axis=1).argmin()]
    return middles


def _write_table(
    path: Path,
    pile: Pile,
    columns: Sequence[Column],
    topics: Topics,
    names: Sequence[str],
    layout: Layout,
    copies: Copies,
) -> None:
    ids = [document.id for document in pile.documents]
    sizes = np.bincount(copies.groups, minlength=len(ids))
    made: dict[str, pa.Array] = {
        "id": pa.array(ids, pa.string()),
        "x": pa.array(layout.places[:, 0], pa.float32()),
        "y": pa.array(layout.places[:, 1], pa.float32()),
        "topic": pa.array(topics.assigned, pa.int32()),
        "topic_name": pa.array(
            [names[topic] if topic >= 0 else None for topic in topics.assigned.tolist()], pa.string()
        ),
        "copy_group": pa.array(
            [ids[group] if sizes[group] > 1 else None for group in copies.groups.tolist()], pa.string()
        ),
        "text": pa.array(pile.texts, pa.string()),
    }
    made |= {column.name: column.to_arrow() for column in columns}
    with atomic_path(path) as temporary:
        pq.write_table(pa.table(made), temporary)
