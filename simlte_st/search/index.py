"""The index: documents in, hits out. Imports neither torch nor LanceDB, so that ``--help`` is fast."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, DataError, format_count, keeping
from simlte_st.files import hold
from simlte_st.models.encode import Engine
from simlte_st.models.names import ModelSource, check_model
from simlte_st.reading.document import Document, DocumentSource
from simlte_st.reading.documents import read_documents
from simlte_st.search.add import IndexReport, IndexWriter
from simlte_st.search.encoder import Encoder, create_index, is_index, load_encoder, read_settings
from simlte_st.search.hits import Cosine, Criteria, Hit, Mode
from simlte_st.search.searcher import Reranker, Searcher, normalize_ids, query_batches
from simlte_st.search.store import Store
from simlte_st.words.languages import check_language


class Index:
    """Documents on disk, found by text or by other documents.

    Create one with :meth:`create`, and open it with :meth:`open`. One process writes at a time; others can search in
    the meantime and find everything written so far. Every method raises :class:`~simlte_st.errors.StoreError` if the
    index cannot be read or written, and ``ModelError`` if its model is missing or has changed; methods that write raise
    ``ConfigurationError`` while another process writes.

    Example:
        ::

            from simlte_st import Index

            index = Index.create("articles.index", "simlte-longformer", parts=True)
            index.add("articles.jsonl")
            for hit in index.search("floods in the north", where="year > 2010", explain=True):
                print(hit.id, hit.cosine, hit.sentences)

    Attributes:
        folder: The folder of the index.
        parts: Whether it also has a vector for each passage.
    """

    def __init__(self, folder: Path, model: ModelSource | None, device: str | None) -> None:
        self.folder, self._model, self._device = folder, model, device
        self._settings, self._store = read_settings(folder), Store.open(folder)
        self.parts: bool = self._settings["parts"]
        self._encoder: Encoder | None = None
        self._searcher: Searcher | None = None
        self._reranker: tuple[ModelSource, Reranker] | None = None

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
            model: The model that encodes documents and queries, or its name or folder; opening reloads it by name.
            parts: Also find long documents by their passages: as many whole sentences as the model reads at once, or
                256 tokens for a static model (default: as in the existing index; off in a new one).
            language: ISO 639-1 code, for stemming and stop words (default: detected for each document).
            exist_ok: Open the index if it exists, to add to it. It must have the same model and ``parts=``.
            overwrite: Replace an existing index, but nothing else.
            device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one; the CPU for a static
                model).

        Raises:
            ConfigurationError: The folder exists, its index has other settings, or the device or language is unknown.
            ModelError: The model does not exist, or the existing index has another one.
            MissingExtraError: LanceDB is not installed.
        """
        folder = Path(path)
        language = None if language is None else check_language(language)
        if exist_ok and not overwrite and is_index(folder):
            index = cls.open(folder, model, device).load()
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
            model: The model of the index, or its name or folder, if it has moved. It must be the same model, and is
                loaded when first needed.
            device: Where the model computes, as for :meth:`create`.

        Raises:
            StoreError: There is no index, it is incomplete, or another version made it.
            MissingExtraError: LanceDB is not installed.
        """
        return cls(Path(path), model, device)

    def load(self) -> Index:
        """Load the model now rather than when first needed, and return the index.

        Raises:
            ConfigurationError: The index was created with a loaded model, so it cannot load the model by name.
        """
        _ = self.encoder
        return self

    @property
    def encoder(self) -> Encoder:
        """The model, loaded when first needed; raises the errors of :meth:`load`."""
        if self._encoder is None:
            self._encoder = load_encoder(self.folder, self._settings, self._model, self._device)
        return self._encoder

    def _snapshot(self, criteria: Criteria | None = None, rerank: ModelSource | None = None) -> Searcher:
        """Return a searcher of a snapshot of the index, after checking the filter and loading the reranker."""
        read_settings(self.folder, self._settings)
        if self._searcher is None:
            languages = self._settings["languages"] or ["en"]  # an empty index has none
            self._searcher = Searcher(self._store, lambda: self.encoder, self.parts, languages)
        searcher = self._searcher.snapshot(criteria or Criteria())
        if rerank is not None:
            check_model(rerank)
            if self._reranker is None or self._reranker[0] != rerank:
                self._reranker = rerank, Reranker(Encoder(rerank, self._device))
            searcher.reranker = self._reranker[1]
        return searcher

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
        engine: Literal["local", "ray"] = "local",
        actors: Count | None = None,
        address: str | None = None,
        progress: bool = True,
    ) -> IndexReport:
        """Add documents, each batch in one commit: an interruption loses one batch at most.

        A document replaces the one with the same id. Nothing is encoded twice: unchanged documents are skipped, and
        equal texts share a vector. All other columns become metadata; see
        :class:`~simlte_st.search.schema.Metadata`. In a table without ids, the id is a hash of the text, and the
        column ``row`` has the row number.

        With several devices or ``engine="ray"``, the source is read twice: first to encode all texts that have no
        vector, then to write. Finished vectors survive an interruption. All machines of Ray must see the documents and
        the index.

        Args:
            source: The documents: anything that :func:`~simlte_st.data.read_documents` takes, or its reader.
            batch_size: Batch size for the longest texts; shorter ones get larger batches.
            columns: Columns of the source to keep as metadata, or paths into structs (default: the 256 most frequent).
            sync: Remove documents that are no longer in the source. Documents that could not be read this time are
                kept.
            device: Where to compute: cpu, cuda, cuda:1 or mps. Several, such as ``cuda:0,cuda:1``, share the work, each
                in its own process (default: a GPU, if there is one).
            engine: Where to compute: in this process (``local``), or in Ray actors on one or more machines (``ray``).
            actors: Number of Ray actors, each with a CPU and, if there are any, a GPU (default: as many as fit).
            address: Address of the Ray cluster (default: one running on this machine, or a new one).
            progress: Show a progress bar.

        Returns:
            The numbers of documents that were added, replaced, removed and unchanged.

        Raises:
            DataError: The documents cannot be read, or a column is missing or would get the name of another one.
            ConfigurationError: ``sync=True`` with a limited number of documents, or the device, engine or cluster is
                not available.
            MissingExtraError: ``engine="ray"`` without the extra ``ray``.
            Interrupted: Ctrl-C, or SIGTERM at the command line; the message gives the number of documents in the index.
        """
        placement = Engine(device, engine, actors, address)
        reader = read_documents(source).with_options(metadata=True)
        placement.check_devices()
        progress_kept = keeping(
            lambda: f"{self.folder} has {format_count(len(self), 'document')}: run it again to add the others."
        )
        with self._write() as store, progress_kept:
            return IndexWriter(
                store, self.encoder, self._settings, reader, engine=placement, batch_size=batch_size, columns=columns,
                sync=sync, progress=progress,
            ).add()  # fmt: skip

    def delete(self, ids: Sequence[str]) -> int:
        """Delete documents, and return how many of them were in the index."""
        with self._write() as store:
            before = store.count()
            store.delete(normalize_ids(ids))
            return before - store.count()

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """Return documents with their metadata, in the order of the ids.

        Raises:
            DataError: One of them is not in the index.
        """
        return self._store.documents(normalize_ids(ids))

    def table(self, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None) -> pa.Table:
        """Return documents as a table, sorted by id.

        Args:
            columns: Some of ``id``, ``text``, ``tokens``, ``vector`` and the metadata; None for all. The id is always
                included.
            ids: Ids of the documents; None for all.
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
        rerank: ModelSource | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """Find documents by text.

        Args:
            query: Text to search for.
            top_k: Number of hits (default: 10, or all with ``threshold=``).
            threshold: Lowest cosine of a hit. All documents are then compared, without an approximate index.
            where: SQL condition on the id and the metadata, such as ``year > 2010``.
            mode: How to rank documents: by the cosine of vectors (``dense``), by words with BM25 (``text``), or by both
                scores together (``hybrid``).
            rerank: Encoder, or its name or folder, that reads passages of the first 64 hits (their beginnings if the
                query is a document) and ranks these hits again. The open index remembers the vectors of the passages;
                ``threshold=`` still applies to the cosine of the index's own vectors.
            explain: Show the sentences nearest to the query, and the words shared with it.

        Returns:
            The hits, best first.

        Raises:
            ConfigurationError: An argument is out of its range, or the filter cannot be used.
            DataError: The query is empty.
            ModelError: The model of ``rerank=`` cannot be used.
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
        rerank: ModelSource | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """Find documents that are similar to query documents. Query documents are never hits.

        Args:
            documents: The query documents: ids of the index, paths of files, or texts, tried in this order. Several
                form one query: the mean of their vectors, and the words of all.
            top_k: Number of hits, as for :meth:`search`.
            threshold: Lowest cosine of a hit, as for :meth:`search`.
            where: SQL condition on the id and the metadata, as for :meth:`search`.
            mode: How to rank documents, as for :meth:`search`.
            rerank: Encoder that ranks the first hits again, as for :meth:`search`.
            explain: Explain the hits, as for :meth:`search`.

        Returns:
            The hits, best first.

        Raises:
            DataError: A query document is empty, or one word that is no id and no path. Others: see :meth:`search`.
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
        rerank: ModelSource | None = None,
    ) -> Iterator[tuple[str, list[Hit]]]:
        """Find similar documents for each query document, hundreds at once. Texts of the index are not encoded again.

        Args:
            source: The query documents: anything that :func:`~simlte_st.data.read_documents` takes, or its reader.
            top_k: Number of hits for each, as for :meth:`search`.
            threshold: Lowest cosine of a hit, as for :meth:`search`.
            where: SQL condition on the id and the metadata, as for :meth:`search`.
            mode: How to rank documents, as for :meth:`search`.
            rerank: Encoder that ranks the first hits again, as for :meth:`search`.

        Yields:
            The id and the hits of each query document, in order.

        Raises:
            DataError: The documents cannot be read. Others: see :meth:`search`.
        """
        criteria = Criteria(top_k, threshold, where, mode)
        self._snapshot(criteria, rerank)  # errors appear before documents are read
        for batch in query_batches(read_documents(source), rerank is not None):
            searcher = self._snapshot(criteria, rerank)
            hits = searcher.search(searcher.document_queries([[Document("", document.text)] for document in batch]))
            yield from zip((document.id for document in batch), hits, strict=True)
