"""From documents to a page and a table: topics, a map, and near-duplicates."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simlte_st.config import configured
from simlte_st.data.topic_terms import topic_terms
from simlte_st.exploration.config import ExploreConfig, check_output
from simlte_st.exploration.corpus import TABLE_COLUMNS, Corpus, Halves, encode_halves, open_corpus
from simlte_st.exploration.duplicates import duplicate_groups
from simlte_st.exploration.layout import lay_out, nearest_documents
from simlte_st.exploration.page import Exploration, page_of
from simlte_st.exploration.topics import Stability, compare_topics, find_topics
from simlte_st.files import atomic_path
from simlte_st.search import Index
from simlte_st.search.encoder import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simlte_st.overrides import ExploreOverrides

HALVED = 1_000
"""Documents that are split into halves, to choose the number of topics."""


@dataclass(frozen=True, slots=True)
class ExploreReport:
    """What a page shows.

    Attributes:
        page: The page.
        table: The table beside it.
        documents: Number of documents.
        topics: Name and number of documents of each topic.
        none: Number of documents without a topic.
        stability: How far halves of documents agree on this number of topics.
        trustworthiness: How well the map keeps the neighbours of documents, from 0 to 1.
        copies: Number of documents that duplicate or nearly duplicate an earlier one.
        label: The column that topics were compared with, and the agreement.
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
        """Return a summary of a few lines."""
        lines = [
            f"{self.documents:,} documents in {len(self.topics)} topics, {self.none:,} in none (halves agree by "
            f"{self.stability.agreement:.2f}); {self.copies:,} duplicates; the map's trustworthiness is "
            f"{self.trustworthiness:.2f}",
            *(f"  {size:>7,}  {name}" for name, size in self.topics),
            f"Open {self.page} in a browser; {self.table} has the places and topics.",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


@configured(ExploreConfig)
def explore(
    model: Model | Index,
    documents: Any = None,
    config: ExploreConfig | None = None,
    *,
    output: str | os.PathLike[str],
    index_model: Model | None = None,
    **overrides: Unpack[ExploreOverrides],
) -> ExploreReport:
    """Write a page that shows what is in a corpus, and a table beside it.

    Memory holds the documents and their vectors. Encoding takes most of the time: for a large corpus build an index
    first, which can be interrupted and resumed, and explore that. Of an index with passages nothing is encoded; of
    another one the halves of a thousand documents, which decide the number of topics.

    Args:
        model: The model, together with ``documents``; or an index or its folder.
        documents: What :func:`~simlte_st.data.read_documents` takes.
        config: What the page shows.
        output: The page, a file whose name ends in .html. The table has the same name with .parquet: id, x, y, topic
            (-1 for none), topic_name, copy_group (the id of its first document), text, and all columns of the source.
        index_model: The model of the index, if it has been moved.
        **overrides: Settings of :class:`~simlte_st.exploration.config.ExploreConfig`, in place of those of ``config``.

    Returns:
        What the page shows.

    Raises:
        ConfigurationError: A file exists or cannot be written, or a value is out of range.
        DataError: The documents cannot be read, there are too few, or a column is missing.
        ModelError: There is no such model.
        StoreError: There is no index, or it cannot be read.
        MissingExtraError: The extra ``explore`` is not installed.
    """
    config = ExploreConfig.make(config, overrides)
    page = check_output(output, documents, config.overwrite)
    corpus, encoder = open_corpus(model, documents, config, index_model)
    found = explore_corpus(corpus, encode_halves(corpus, encoder, HALVED, config), config)
    written, table = page_of(found), page.with_suffix(".parquet")
    with atomic_path(page, table) as temporary:
        pq.write_table(_table(found), temporary.with_name(table.name))
        temporary.write_text(written, encoding="utf-8")
    topics, duplicates, label = found.topics, found.duplicates.report, found.comparison
    return ExploreReport(
        page=str(page),
        table=str(table),
        documents=len(corpus),
        topics=list(zip(found.topic_names, topics.sizes.tolist(), strict=True)),
        none=topics.none,
        stability=topics.stability,
        trustworthiness=found.layout.trustworthiness,
        copies=duplicates.exact + duplicates.near,
        label=None if label is None else {"name": label.name, "nmi": label.nmi, "ari": label.ari},
    )


def explore_corpus(corpus: Corpus, halves: Halves, config: ExploreConfig) -> Exploration:
    """Find everything that the page and the table show."""
    how: dict[str, Any] = {"seed": config.seed, "progress": config.progress}
    topics = find_topics(corpus.vectors, halves, config.topics, **how)
    near, cosines = nearest_documents(corpus.vectors, progress=config.progress)
    return Exploration(
        corpus=corpus,
        topics=topics,
        terms=topic_terms(corpus.texts, topics.assigned, len(topics.centres), config.language),
        comparison=None if corpus.label is None else compare_topics(corpus.label, topics.assigned, len(topics.centres)),
        near=near,
        cosines=cosines,
        layout=lay_out(corpus.vectors, **how),
        duplicates=duplicate_groups(corpus.texts, config.similarity, progress=config.progress),
    )


def _table(found: Exploration) -> pa.Table:
    corpus, topics, groups = found.corpus, found.topics.assigned.tolist(), found.duplicates.groups.tolist()
    ids, names, sizes = [document.id for document in corpus.documents], found.topic_names, np.bincount(groups)
    arrays = [
        pa.array(ids, pa.string()),
        pa.array(found.layout.places[:, 0], pa.float32()),
        pa.array(found.layout.places[:, 1], pa.float32()),
        pa.array(topics, pa.int32()),
        pa.array([names[topic] if topic >= 0 else None for topic in topics], pa.string()),
        pa.array([ids[group] if sizes[group] > 1 else None for group in groups], pa.string()),
        pa.array(corpus.texts, pa.string()),
    ]
    own = {column.name: column.to_arrow() for column in corpus.columns}
    return pa.table({**dict(zip(TABLE_COLUMNS, arrays, strict=True)), **own})
