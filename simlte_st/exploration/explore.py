"""Explore a corpus: write a page and a table with its topics, map and near-duplicates, and search in the page."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simlte_st.arguments import Count, Plural, PositiveShare, Seed, check_arguments
from simlte_st.errors import ConfigurationError
from simlte_st.extras import check_installed
from simlte_st.files import atomic_path, check_apart, check_file
from simlte_st.models.names import ModelSource, check_model
from simlte_st.reading.document import DocumentSource
from simlte_st.reading.documents import DocumentReader, ReadReport, read_documents
from simlte_st.search.encoder import check_encoder, is_index, read_settings
from simlte_st.words.languages import check_language

if TYPE_CHECKING:
    from simlte_st.exploration.analysis import Stability
    from simlte_st.search import Index

    ModelOrIndex: TypeAlias = ModelSource | Index
else:
    ModelOrIndex = ModelSource

MAX_HALVES = 1_000
"""Maximum number of documents to split into halves for choosing the number of topics."""


@dataclass(frozen=True, slots=True)
class ExploreReport:
    """Result of :func:`explore`.

    Attributes:
        page: Path of the page.
        table: Path of the table.
        documents: Number of documents.
        topics: Name of each topic and its number of documents.
        none: Number of documents without a topic.
        stability: Agreement between document halves for this number of topics.
        trustworthiness: How well the map preserves neighbours, from 0 to 1.
        copies: Number of documents that are exact or near-duplicates of an earlier document.
        reading: Report on the documents read and skipped; None for an index.
    """

    page: str
    table: str
    documents: int
    topics: list[tuple[str, int]]
    none: int
    stability: Stability
    trustworthiness: float
    copies: int
    reading: ReadReport | None = None

    def summary(self) -> str:
        """Return a summary in a few lines."""
        lines = [
            f"{self.documents:,} documents in {len(self.topics)} topics, {self.none:,} in none (halves agree by "
            f"{self.stability.agreement:.2f}); {self.copies:,} duplicates; the map's trustworthiness is "
            f"{self.trustworthiness:.2f}",
            *(f"  {size:>7,}  {name}" for name, size in self.topics),
            f"Open {self.page} in a browser; {self.table} has the map positions and topics.",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {name: value for name, value in asdict(self).items() if name != "reading"}


@check_arguments
def explore(
    model: ModelOrIndex,
    source: DocumentSource | None = None,
    *,
    output: str | os.PathLike[str],
    index_model: ModelSource | None = None,
    title: str | None = None,
    topics: Plural | None = None,
    language: str | None = None,
    similarity: PositiveShare = 0.75,
    batch_size: Count = 32,
    device: str | None = None,
    seed: Seed = 0,
    search: bool = True,
    overwrite: bool = False,
    progress: bool = True,
) -> ExploreReport:
    """Write a page with the topics, map and near-duplicates of a corpus, and a table.

    The documents and their vectors are held in memory. Encoding takes most of the time, so for a large corpus, first
    build an index, which can be resumed, and explore the index. An index with passages needs no further encoding;
    otherwise, halves of up to a thousand documents are encoded to choose the number of topics.

    Args:
        model: Model to encode the documents of ``source=`` (a folder, a name or a loaded model); or an index or its
            folder.
        source: Documents: anything :func:`~simlte_st.data.read_documents` takes or returns; None for an index.
        output: Path of the page, ending in .html. The table has the same name, ending in .parquet, and the columns id,
            x, y, topic (-1 for none), topic_name, copy_group (id of the first document in a group of duplicates), text,
            and all columns of the source.
        index_model: Model of the index, if the model has been moved.
        title: Column of titles (default: title, headline, subject or name; otherwise the first line of each document).
        topics: Number of topics (default: the smallest on which document halves agree about as well as on any other).
        language: ISO 639-1 code of the documents' language, for stemming and stop words in topic names (default:
            detected for each document).
        similarity: Minimum share of five-word runs that near-duplicates have in common, above 0 and at most 1.
        batch_size: Batch size for encoding.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available).
        seed: Random seed of the topics and the map.
        search: Include search in the page, by words and, with a static model, by vectors. The page takes up to 5 kB per
            document (5 MB for fewer than 1,000).
        overwrite: Overwrite an existing page and table.
        progress: Show progress bars.

    Returns:
        The paths of the page and the table, and the main results.

    Raises:
        ConfigurationError: An output file exists or cannot be written, or an argument is out of range.
        DataError: The documents cannot be read, there are fewer than ten of them, or a column is missing.
        ModelError: The model does not exist or cannot be loaded.
        StoreError: The index does not exist or cannot be read.
        MissingExtraError: The ``explore`` extra is not installed.
    """
    language = None if language is None else check_language(language)
    if source is not None and index_model is not None:
        raise ConfigurationError("index_model= is for an index, which has its own documents: give it or a source.")
    reader = None if source is None else read_documents(source).with_options(metadata=True)
    page = _check_output(output, reader, overwrite)
    if isinstance(model, (str, os.PathLike)):
        if reader is None:
            check_encoder(Path(model), read_settings(Path(model)), index_model)
        elif not is_index(model):
            check_model(model)
    import pyarrow.parquet as pq

    from simlte_st.exploration.analysis import find_topics, lay_out, nearest_documents, topic_terms
    from simlte_st.exploration.corpus import encode_halves, open_corpus
    from simlte_st.exploration.page import Exploration, build_page
    from simlte_st.exploration.search_data import can_tokenize, index_words
    from simlte_st.views.duplicates import find_duplicates

    options: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
    corpus, encoder = open_corpus(model, reader, index_model, title=title, device=device, **options)
    halves = encode_halves(corpus, encoder, MAX_HALVES, seed=seed, **options)
    neighbours, cosines = nearest_documents(corpus.vectors, progress=progress)
    clusters = find_topics(corpus.vectors, halves, topics, neighbours, seed=seed, progress=progress)
    exploration = Exploration(
        corpus=corpus,
        topics=clusters,
        terms=topic_terms(corpus.texts, clusters.by_document, len(clusters.centres), language),
        neighbours=neighbours,
        cosines=cosines,
        layout=lay_out(corpus.vectors, seed=seed, progress=progress),
        duplicates=find_duplicates(corpus.texts, similarity=similarity, progress=progress),
        similarity=similarity,
        words=index_words(corpus.documents, language) if search else None,
        model=encoder.quick if search and encoder.quick and can_tokenize(encoder.quick) else None,
    )
    html, table = build_page(exploration), page.with_suffix(".parquet")
    with atomic_path(page, table) as temporary:
        pq.write_table(exploration.table(), temporary.with_name(table.name))
        temporary.write_text(html, encoding="utf-8")
    return ExploreReport(
        page=str(page),
        table=str(table),
        documents=len(corpus.documents),
        topics=list(zip(exploration.topic_names, clusters.sizes.tolist(), strict=True)),
        none=clusters.outliers,
        stability=clusters.stability,
        trustworthiness=exploration.layout.trustworthiness,
        copies=exploration.duplicates.report.exact + exploration.duplicates.report.near,
        reading=corpus.reading,
    )


def _check_output(output: str | os.PathLike[str], reader: DocumentReader | None, overwrite: bool) -> Path:
    """Check early that the page and its table can be written, and that bokeh is installed."""
    page = Path(output)
    if page.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"{page}: the name of the page must end in .html.")
    for path in (page, page.with_suffix(".parquet")):
        check_apart(reader, path)
        check_file(path, overwrite)
    check_installed("bokeh", "explore", "the page")
    return page
