"""The index: documents in, hits out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.config import configured
from simlte_st.data.document import Document, composed
from simlte_st.data.documents import read_documents
from simlte_st.data.tokens import in_batches
from simlte_st.errors import ConfigurationError, DataError, keeping
from simlte_st.files import SETTINGS_FILE, hold, write_json
from simlte_st.models.names import check_model
from simlte_st.search.config import AddConfig, LinkEachConfig, SearchConfig, check_query
from simlte_st.search.hits import Hits
from simlte_st.search.kept import remove_unused
from simlte_st.search.link import document_queries, known_documents, query_documents
from simlte_st.search.searcher import Searcher
from simlte_st.search.settings import check_new_index, load_encoder, make_folder, read_settings, read_token_vectors
from simlte_st.search.store import Store

if TYPE_CHECKING:  # with torch and transformers, which a search by words alone does not need
    from typing_extensions import Unpack

    from simlte_st.models.token_vectors import TokenVectors
    from simlte_st.overrides import AddOverrides, LinkEachOverrides, SearchOverrides
    from simlte_st.search.add import IndexReport
    from simlte_st.search.encoder import Encoder, Model
    from simlte_st.search.rerank import Reranker

_TOGETHER = 512  # queries of :meth:`Index.link_each` that are searched for at a time
_TOGETHER_CHARACTERS = 400_000  # of them, so that long ones do not keep their hits for minutes
_READ_TOGETHER = 16  # those whose hits a model reads, which takes a second or two each


class Index:
    """Documents on disk, found by text or by other documents.

    It is made by :meth:`create` and :meth:`open`. One process writes at a time; others can search meanwhile, and find
    what is written by then. Every method raises :class:`~simlte_st.errors.StoreError` where the index cannot be read or
    written, and ``ModelError`` where its model is gone or is another one now; those that write raise
    ``ConfigurationError`` while another process does.

    Example:
        ::

            from simlte_st import Index

            index = Index.create("articles.index", "simlte-longformer", parts=True)
            index.add("articles.jsonl")
            for hit in index.search("floods in the north", where="year > 2010", explain=True):
                print(hit.id, hit.cosine, hit.sentences)

    Attributes:
        folder: Where it is.
        parts: Whether it has a vector for each passage too.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], store: Store, model: Model | None, device: str | None = None
    ) -> None:
        self.folder, self._settings, self._store, self._model, self._device = folder, settings, store, model, device
        self.parts: bool = settings["parts"]
        self._read_by: tuple[Any, Reranker] | None = None

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r})"

    def __len__(self) -> int:
        """Count the documents."""
        return self._store.count()

    @property
    def languages(self) -> list[str]:
        """The languages that words are stemmed in, by their ISO 639-1 codes."""
        return list(self._settings["languages"] or ["en"])  # the second of an empty one

    @property
    def columns(self) -> list[str]:
        """The names of the columns of metadata."""
        return list(self._store.metadata().names)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        model: Model,
        *,
        parts: bool | None = None,
        exist_ok: bool = False,
        device: str | None = None,
    ) -> Index:
        """Create an index.

        Args:
            path: Its folder, which is created.
            model: The model, or its name or folder, by which it is found again when the index is opened.
            parts: Also find documents that are longer than the model reads by passages: runs of whole sentences, as
                many as the model reads at once (256 tokens of a static model, which reads any number), with a vector
                each. None keeps the choice of an index that exists; otherwise it means no.
            exist_ok: Open the index if it exists and was made with the same model and ``parts``.
            device: Where a model that is named computes, such as ``"cpu"`` or ``"cuda:1"``; None for a GPU, if there is
                one.

        Raises:
            ConfigurationError: The folder exists or was made with other settings, or there is no such device.
            ModelError: The model does not exist, or the index there has another one.
            MissingExtraError: LanceDB is not installed.
        """
        folder = Path(path)
        if exist_ok and (folder / SETTINGS_FILE).exists():
            index = cls.open(folder, model, device).load()
            if parts not in (None, index.parts):
                made = "with" if index.parts else "without"
                raise ConfigurationError(f"{folder} was made {made} passages (parts): make another index.")
            return index
        check_new_index(folder)
        check_model(model)
        from simlte_st.search.encoder import Encoder  # with torch

        encoder = Encoder(model, device)
        settings, store = make_folder(folder, encoder, bool(parts))
        index = cls(folder, settings, store, model, device)
        index.__dict__["encoder"] = encoder
        return index

    @classmethod
    def open(cls, path: str | os.PathLike[str], model: Model | None = None, device: str | None = None) -> Index:
        """Open an index.

        Args:
            path: Its folder.
            model: The model it was made with, where that is not found by its name. It is loaded, and compared with what
                the index knows of it, when it is first needed.
            device: Where it computes, as for :meth:`create`.

        Raises:
            StoreError: There is no index, it is incomplete, or it was made by another version.
            MissingExtraError: LanceDB is not installed.
        """
        folder = Path(path)
        settings = read_settings(folder)
        return cls(folder, settings, Store.open(folder, settings.get("table_version", 0)), model, device)

    def load(self) -> Index:
        """Load the model now rather than when it is first needed, and return the index.

        Raises:
            ConfigurationError: It had no name, and none was given.
        """
        _ = self.encoder
        return self

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded when it is first needed; raises what :meth:`load` does."""
        return load_encoder(self.folder, self._settings, self._model, self._device)

    @cached_property
    def _reader(self) -> Encoder | TokenVectors:
        if "encoder" in self.__dict__ or self._device is not None:
            return self.encoder
        return read_token_vectors(self.folder, self._settings, self._model) or self.encoder

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._store, lambda: self._reader, self.parts, self.languages)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        lock = hold(self.folder)
        try:
            self._settings = read_settings(self.folder)  # others may have changed them
            yield
        finally:
            lock.release()

    def _write_settings(self, **changed: Any) -> None:
        self._settings |= changed
        write_json(self.folder / SETTINGS_FILE, self._settings)

    @configured(AddConfig)
    def add(self, documents: Any, config: AddConfig | None = None, **overrides: Unpack[AddOverrides]) -> IndexReport:
        """Add documents, each batch in one commit: an interruption loses one batch at most.

        A document replaces the one with the same id. Nothing is encoded twice: an unchanged document is left alone, and
        a text that is there under another id has its vector already. All other columns become metadata, see
        :class:`~simlte_st.search.schema.Metadata`. Documents of a table without ids are named by the hash of their
        text; a second one of the same text with other columns by the hash of both.

        Args:
            documents: What :func:`~simlte_st.data.read_documents` takes. Read twice where several devices or ``"ray"``
                encode: they first encode the texts that have no vector yet, then this process writes. What they have
                finished stays in the index when this is interrupted. All machines of Ray have to see the documents and
                the index.
            config: How to add them. With ``sync=True``, documents of the index that are not among these are removed,
                but not those that could not be read this time, which the report names.
            **overrides: Settings of :class:`~simlte_st.search.AddConfig`, in place of those of ``config``.

        Returns:
            What became of them.

        Raises:
            DataError: They cannot be read, or their columns have no place in the index.
            ConfigurationError: ``sync=True`` with a limited number of documents, or there is no such device, engine or
                cluster, or no room in it.
            MissingExtraError: ``engine="ray"`` without the extra ``ray``.
            Interrupted: Ctrl-C, or SIGTERM at the command line; the message says how many documents are there.
        """
        from simlte_st.models.device import check_devices
        from simlte_st.search.add import add_documents

        config = AddConfig.make(config, overrides)
        check_devices(config)
        with self._writing():
            self.__dict__.pop("_searcher", None)
            with keeping(lambda: f"{len(self):,} documents are in {self.folder}: start again to add the others."):
                report = add_documents(self._store, self.encoder, documents, config, self._settings)
            self._write_settings(table_version=self._store.version)
            remove_unused(self.folder, self._store)
            return report

    def delete(self, ids: Sequence[str]) -> int:
        """Delete documents, and return how many of them there were."""
        with self._writing():
            before = len(self)
            self._store.delete([each for name in ids for each in dict.fromkeys((name, composed(name)))])
            self._write_settings(table_version=self._store.version)
            remove_unused(self.folder, self._store)
            return before - len(self)

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """Return documents with their metadata, in the order of the ids.

        Raises:
            DataError: One is not in the index.
        """
        return self._store.documents(ids)

    def table(self, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None) -> pa.Table:
        """Return documents as a table in the order of their ids.

        Args:
            columns: Some of ``id``, ``text``, ``tokens``, ``vector`` and the metadata; None for all. The id is always
                there.
            ids: Ids of the documents; None for all.
        """
        return self._store.table(columns, ids)

    def passages(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of the passages of documents that have some: each of shape ``[passages, dimension]``."""
        rows = self._store.rows_of("id", ids, ["id", "part", "vector"], "part > 0")
        vectors: dict[str, list[list[float]]] = {}
        for row in rows.sort_by([("id", "ascending"), ("part", "ascending")]).to_pylist():
            vectors.setdefault(row["id"], []).append(row["vector"])
        return {name: np.array(own, dtype=np.float32) for name, own in vectors.items()}

    @configured(SearchConfig)
    def search(self, query: str, config: SearchConfig | None = None, **overrides: Unpack[SearchOverrides]) -> Hits:
        """Find documents by text.

        Args:
            query: What to look for.
            config: Which hits are returned.
            **overrides: Settings of :class:`~simlte_st.search.SearchConfig`, in place of those of ``config``.

        Returns:
            The hits, from the best on.

        Raises:
            ConfigurationError: A value is out of range, or the filter cannot be used.
            DataError: The query is empty.
            ModelError: That of ``rerank=`` cannot be used.
        """
        config = SearchConfig.make(config, overrides)
        check_query(query)
        searcher = self._searcher.now()
        config = searcher.checked(config)
        reranker = self._reranker(config.rerank)
        wanted = searcher.text_query(query, config.mode != "text" or config.explain)
        return searcher.search([wanted], config, config.explain, reranker)[0]

    @configured(SearchConfig)
    def link(
        self,
        documents: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        config: SearchConfig | None = None,
        **overrides: Unpack[SearchOverrides],
    ) -> Hits:
        """Find the documents that belong to others, which are not among the hits.

        Args:
            documents: The query documents: ids of the index, paths of files, or texts, looked for in this order.
                Several are one query: the mean of their vectors, and the words of all.
            config: Which hits are returned.
            **overrides: Settings of :class:`~simlte_st.search.SearchConfig`, in place of those of ``config``.

        Returns:
            The hits, from the best on.

        Raises:
            DataError: A query document is empty, or one word that is neither an id nor a path.
            ConfigurationError: A value is out of range, or the filter cannot be used.
            ModelError: That of ``rerank=`` cannot be used.
        """
        config = SearchConfig.make(config, overrides)
        several = isinstance(documents, Iterable) and not isinstance(documents, (str, bytes, os.PathLike))
        names: list[Any] = list(documents) if several else [documents]  # type: ignore[arg-type]
        if not names:
            raise DataError("There are no documents to link.")
        searcher = self._searcher.now()
        config = searcher.checked(config)
        group = [document for name in names for document in query_documents(searcher.store, name)]
        reranker = self._reranker(config.rerank)
        queries = document_queries(searcher, [group], config.mode != "text" or config.explain)
        return searcher.search(queries, config, config.explain, reranker)[0]

    @configured(LinkEachConfig)
    def link_each(
        self, documents: Any, config: LinkEachConfig | None = None, **overrides: Unpack[LinkEachOverrides]
    ) -> Iterator[tuple[str, Hits]]:
        """Find for each of many documents those that belong to it: each is a query of its own.

        Hundreds of vectors are looked for at a time. A text that the index has is not encoded again.

        Args:
            documents: What :func:`~simlte_st.data.read_documents` takes; read as a stream.
            config: Which hits are returned for each, as for :meth:`link`.
            **overrides: Settings of :class:`~simlte_st.search.LinkEachConfig`, in place of those of ``config``.

        Yields:
            The id of each query document, in their order, and its hits.

        Raises:
            DataError: The documents cannot be read. Other errors are as for :meth:`link`.
        """
        config = LinkEachConfig.make(config, overrides)
        reranker, most = self._reranker(config.rerank), _TOGETHER if config.rerank is None else _READ_TOGETHER
        for batch in in_batches(read_documents(documents), lambda one: len(one.text), _TOGETHER_CHARACTERS, most):
            searcher = self._searcher.now()
            groups = [[each] for each in known_documents(searcher.store, batch)]
            queries = document_queries(searcher, groups, config.mode != "text")
            found = searcher.search(queries, searcher.checked(config), reranker=reranker)
            yield from zip((one.id for one in batch), found, strict=True)

    def _reranker(self, model: Any) -> Reranker | None:
        """Return what reads hits with a model, which is loaded once; None where none is wanted."""
        if model is None:
            return None
        check_model(model)
        from simlte_st.search.rerank import Reranker  # with torch

        if self._read_by is None or self._read_by[0] != model:
            self._read_by = model, Reranker(self.folder, model, self._device)
        return self._read_by[1]
