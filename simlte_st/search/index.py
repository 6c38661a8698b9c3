"""Index documents on disk and search them. Imports neither torch nor LanceDB, so that ``--help`` is fast."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, DataError, format_count, keeping
from simlte_st.files import SETTINGS_FILE, hold, write_json
from simlte_st.models.names import ModelSource, RerankerSource, check_model
from simlte_st.reading.document import Document, DocumentSource
from simlte_st.reading.documents import read_documents
from simlte_st.search.add import IndexReport, IndexWriter
from simlte_st.search.encoder import Encoder, create_index, is_index, knows_model, load_encoder, read_settings
from simlte_st.search.hits import Cosine, Criteria, Hit, Mode
from simlte_st.search.rerank import Reranker
from simlte_st.search.searcher import Searcher, normalize_ids, query_batches
from simlte_st.search.store import Store
from simlte_st.words.languages import check_language


class Index:
    """An index on disk, to find documents by text or by example documents.

    Create an index with :meth:`create` and open it with :meth:`open`. Only one process can write at a time; others can
    search meanwhile and find everything written so far. Every method raises :class:`~simlte_st.errors.StoreError` if
    the index cannot be read or written, and ``ModelError`` if its model is missing or has changed; methods that write
    raise ``ConfigurationError`` while another process writes.

    Example:
        ::

            from simlte_st import Index

            index = Index.create("articles.index", "simlte-longformer", parts=True)
            index.add("articles.jsonl")
            for hit in index.search("floods in the north", where="year > 2010", explain=True):
                print(hit.id, hit.cosine, hit.sentences)

    Attributes:
        folder: The folder of the index.
        parts: Whether long documents also have a vector for each passage.
    """

    def __init__(self, folder: Path, model: ModelSource | None, device: str | None) -> None:
        self.folder, self._model, self._device = folder, model, device
        self._settings, self._store = read_settings(folder), Store.open(folder)
        self.parts: bool = self._settings["parts"]
        self._encoder: Encoder | None = None
        self._searcher: Searcher | None = None
        self._reranker: tuple[RerankerSource, Reranker] | None = None

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r})"

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._store.count()

    @property
    def columns(self) -> list[str]:
        """The names of the metadata columns."""
        return list(self._store.metadata().names)

    @classmethod
    @check_arguments
    def create(
        cls,
        path: str | os.PathLike[str],
        model: ModelSource,
        *,
        parts: bool | None = None,
        language: str | None = None,
        exist_ok: bool = False,
        overwrite: bool = False,
        device: str | None = None,
    ) -> Index:
        """Create an index.

        Args:
            path: The folder of the index.
            model: The model that encodes documents and queries, or its name or folder; :meth:`open` loads it by name.
            parts: Also index passages of long documents: as many whole sentences as the model reads at once, or 256
                tokens for a static model (default: the setting of the existing index; off for a new one).
            language: ISO 639-1 code for stemming and stop words (default: detected for each document).
            exist_ok: Open the index if it already exists. It must have the same model and ``parts=``.
            overwrite: Replace an existing index, but nothing else.
            device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available; the CPU for a static
                model).

        Raises:
            ConfigurationError: The folder exists, its index has other settings, or the device or language is unknown.
            ModelError: The model does not exist, or the existing index uses another one.
            MissingExtraError: LanceDB is not installed.
        """
        folder = Path(path)
        language = None if language is None else check_language(language)
        if exist_ok and not overwrite and is_index(folder):
            index = cls.open(folder, model, device)
            if not knows_model(folder, index._settings, model):
                index.load()
            for name, value in {"parts": parts, "language": language}.items():
                if value not in (None, current := index._settings.get(name)):
                    difference = f"without {name}=" if current is None else f"with {name}={current}"
                    raise ConfigurationError(f"{folder} was made {difference}: use another folder, or overwrite=True.")
            return index
        encoder = create_index(folder, model, device, parts=bool(parts), language=language, overwrite=overwrite)
        index = cls.open(folder, model, device)
        index._encoder = encoder
        return index

    @classmethod
    @check_arguments
    def open(cls, path: str | os.PathLike[str], model: ModelSource | None = None, device: str | None = None) -> Index:
        """Open an index.

        Args:
            path: The folder of the index.
            model: The index's model, or its name or folder, if it has moved. It must be the same model, and is loaded
                when first needed.
            device: Device to compute on, as for :meth:`create`.

        Raises:
            StoreError: There is no index, it is incomplete, or it was made by another version.
            MissingExtraError: LanceDB is not installed.
        """
        return cls(Path(path), model, device)

    def load(self, rerank: RerankerSource | None = None) -> Index:
        """Load the model, and the ``rerank=`` model of later searches, now rather than when first needed.

        Returns:
            The index.

        Raises:
            ConfigurationError: The index was created with a loaded model, which cannot be loaded by name.
            ModelError: The ``rerank=`` model cannot be used.
        """
        _ = self.encoder, self._load_reranker(rerank)
        return self

    @property
    def encoder(self) -> Encoder:
        """The model, loaded when first needed; raises the errors of :meth:`load`."""
        if self._encoder is None:
            self._encoder = load_encoder(self.folder, self._settings, self._model, self._device)
        return self._encoder

    def _snapshot(self, criteria: Criteria | None = None, rerank: RerankerSource | None = None) -> Searcher:
        """Check the filter, load the reranker, and return a searcher over a snapshot of the index."""
        read_settings(self.folder, self._settings)
        if self._searcher is None:
            languages = self._settings["languages"] or ["en"]  # an empty index has no languages
            self._searcher = Searcher(self._store, lambda: self.encoder, self.parts, languages)
        searcher = self._searcher.snapshot(criteria or Criteria())
        searcher.reranker = self._load_reranker(rerank)
        return searcher

    def _load_reranker(self, rerank: RerankerSource | None) -> Reranker | None:
        """Return the reranker, which stays loaded until a search names another model."""
        if rerank is None:
            return None
        check_model(rerank)
        if self._reranker is None or self._reranker[0] != rerank:
            self._reranker = rerank, Reranker(rerank, self._device)
        return self._reranker[1]

    @contextmanager
    def _write(self) -> Iterator[Store]:
        """Lock the index for writing, and yield its table."""
        with ExitStack() as stack:
            stack.callback(hold(self.folder).release)
            self._settings = read_settings(self.folder, self._settings)  # another process may have changed them
            self._searcher = None
            yield Store.open(self.folder, exclusive=True)

    @check_arguments
    def add(
        self,
        source: DocumentSource,
        *,
        batch_size: Count = 32,
        columns: Sequence[str] | None = None,
        sync: bool = False,
        device: str | Sequence[str] | None = None,
        progress: bool = True,
    ) -> IndexReport:
        """Add documents, committing each batch, so that an interruption loses at most one.

        A document replaces any document with the same id. Nothing is encoded twice: unchanged documents are skipped,
        and identical texts share a vector. All other columns become metadata; see
        :class:`~simlte_st.search.schema.Metadata`. If a table has no ids, the id is a hash of the text, and the column
        ``row`` holds the row number.

        With several devices, the source is read twice: once to encode all texts that have no vector, and once to
        write. Finished vectors survive an interruption.

        Args:
            source: The documents: anything that :func:`~simlte_st.data.read_documents` accepts, or its reader.
            batch_size: Batch size for the longest texts; shorter ones get larger batches.
            columns: Source columns to keep as metadata, or paths into structs (default: the 256 most frequent).
            sync: Remove documents that are no longer in the source. Documents that could not be read this time are
                kept.
            device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available). Several devices, such
                as ``cuda:0,cuda:1``, share the work, each in its own process.
            progress: Show a progress bar.

        Returns:
            Counts of the documents added, replaced, removed and unchanged.

        Raises:
            DataError: The documents cannot be read, a column is missing, or two columns would get the same name.
            ConfigurationError: ``sync=True`` with a limited number of documents, or the device is not available.
            Interrupted: Ctrl-C, or SIGTERM at the command line; the message gives the number of documents in the index.
        """
        reader = read_documents(source).with_options(metadata=True)
        if device is not None:
            from simlte_st.models.device import check_device  # imports torch

            check_device(device)
        hint = "run it again to add the rest."
        with (
            self._write() as store,
            keeping(lambda: f"{self.folder} has {format_count(len(self), 'document')}: {hint}"),
        ):
            if not knows_model(self.folder, self._settings, self._model):
                self._settings.update(self.encoder.description())  # type: ignore[typeddict-item]
                write_json(self.folder / SETTINGS_FILE, self._settings)
            return IndexWriter(
                store, lambda: self.encoder, self._settings, reader, device=device, batch_size=batch_size,
                columns=columns, sync=sync, progress=progress,
            ).add()  # fmt: skip

    def delete(self, ids: Sequence[str]) -> int:
        """Delete documents and return how many of them were in the index."""
        with self._write() as store:
            before = store.count()
            store.delete(normalize_ids(ids))
            return before - store.count()

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """Return documents with their metadata, in the order of the ids.

        Raises:
            DataError: An id is not in the index.
        """
        return self._store.documents(normalize_ids(ids))

    def table(self, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None) -> pa.Table:
        """Return documents as a table, sorted by id.

        Args:
            columns: Columns to return, among ``id``, ``text``, ``tokens``, ``vector`` and the metadata (default: all).
                The id is always included.
            ids: Ids of the documents to return (default: all).
        """
        columns = [columns] if isinstance(columns, str) else columns
        return self._store.table(columns, None if ids is None else normalize_ids(ids))

    def passages(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of passages by document id, each of shape ``[passages, dimension]``."""
        return self._store.passages(normalize_ids(ids))

    @check_arguments
    def search(
        self,
        query: str,
        *,
        top_k: Count | None = None,
        threshold: Cosine | None = None,
        where: str | None = None,
        mode: Mode = "hybrid",
        rerank: RerankerSource | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """Find documents by text.

        Args:
            query: Text to search for.
            top_k: Number of hits (default: 10, or all with ``threshold=``).
            threshold: Minimum cosine of a hit. All documents are then compared, without the approximate index.
            where: SQL condition on the id and the metadata, such as ``year > 2010``.
            mode: How to rank documents: by vector similarity (``dense``), by words with BM25 (``text``), or by both
                scores together (``hybrid``).
            rerank: Sentence encoder or cross-encoder, or its name or folder, that reranks the first 8 hits by their
                passages (64 by their beginnings if the query is a document). An encoder's passage vectors are cached
                while the index is open; ``threshold=`` still applies to the cosine of the index's own vectors.
            explain: Show the sentences nearest to the query and the words shared with it.

        Returns:
            The hits, best first.

        Raises:
            ConfigurationError: An argument is out of range, or the filter cannot be used.
            DataError: The query is empty.
            ModelError: The ``rerank=`` model cannot be used.
        """
        if not query.strip():
            raise DataError("The query is empty.")
        searcher = self._snapshot(Criteria(top_k, threshold, where, mode, explain), rerank)
        return searcher.search([searcher.text_query(query)])[0]

    @check_arguments
    def unknown_words(self, query: str) -> list[str]:
        """Return the words of a query that no document contains."""
        return self._snapshot().unknown_words(query)

    @check_arguments
    def link(
        self,
        documents: str | os.PathLike[str] | Iterable[str | int | os.PathLike[str]],
        *,
        top_k: Count | None = None,
        threshold: Cosine | None = None,
        where: str | None = None,
        mode: Mode = "hybrid",
        rerank: RerankerSource | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """Find documents that are similar to query documents.

        Documents given by id are never hits; other documents with the same text are marked as identical.

        Args:
            documents: The query documents: ids in the index, file paths, or texts, tried in this order. Several
                documents form one query, with the mean of their vectors and all of their words.
            top_k: Number of hits, as for :meth:`search`.
            threshold: Minimum cosine of a hit, as for :meth:`search`.
            where: SQL condition on the id and the metadata, as for :meth:`search`.
            mode: How to rank documents, as for :meth:`search`.
            rerank: Model that reranks the first hits, as for :meth:`search`.
            explain: Explain the hits, as for :meth:`search`.

        Returns:
            The hits, best first.

        Raises:
            DataError: A query document is empty, or a single word or mistyped id that is neither an id nor a path.
            SimlteError: Other errors, as for :meth:`search`.
        """
        sources = [documents] if isinstance(documents, (str, os.PathLike)) else list(documents)
        if not sources:
            raise DataError("There are no query documents.")
        searcher = self._snapshot(Criteria(top_k, threshold, where, mode, explain), rerank)
        group = [document for source in sources for document in searcher.query_documents(source)]
        return searcher.search(searcher.document_queries([group]))[0]

    @check_arguments
    def link_each(
        self,
        source: DocumentSource,
        *,
        top_k: Count | None = None,
        threshold: Cosine | None = None,
        where: str | None = None,
        mode: Mode = "hybrid",
        rerank: RerankerSource | None = None,
    ) -> Iterator[tuple[str, list[Hit]]]:
        """Find similar documents for each of many query documents, without encoding texts in the index again.

        A query document that is in the index, with the same id and text, is not among its hits.

        Args:
            source: The query documents: anything that :func:`~simlte_st.data.read_documents` accepts, or its reader.
            top_k: Number of hits per query document, as for :meth:`search`.
            threshold: Minimum cosine of a hit, as for :meth:`search`.
            where: SQL condition on the id and the metadata, as for :meth:`search`.
            mode: How to rank documents, as for :meth:`search`.
            rerank: Model that reranks the first hits, as for :meth:`search`.

        Yields:
            The id and the hits of each query document, in order.

        Raises:
            DataError: The documents cannot be read.
            SimlteError: Other errors, as for :meth:`search`.
        """
        criteria = Criteria(top_k, threshold, where, mode)
        self._snapshot(criteria, rerank)  # errors appear before documents are read
        for batch in query_batches(read_documents(source), rerank is not None):
            searcher = self._snapshot(criteria, rerank)
            hits = searcher.search(searcher.document_queries([[document] for document in batch]))
            yield from zip((document.id for document in batch), hits, strict=True)
