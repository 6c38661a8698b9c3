"""The index: documents in, hits out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from simlte_st.checks import check_text
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.files import SETTINGS_FILE, hold, write_json
from simlte_st.index import contents
from simlte_st.index.calibration import Calibration, fit_threshold, read_labels, score_pairs
from simlte_st.index.hits import Hits
from simlte_st.index.queries import Mode, check_search
from simlte_st.index.searcher import Searcher
from simlte_st.index.seeds import find_seed, find_texts
from simlte_st.index.sentence_vectors import remove_unused
from simlte_st.index.settings import load_encoder, make_folder, read_settings
from simlte_st.index.store import Store

if TYPE_CHECKING:  # with torch and transformers, which a search by words alone does not need
    from simlte_st.index.adding import IndexReport
    from simlte_st.index.encoder import Encoder, Model

_TOGETHER = 512  # questions of :meth:`Index.link_each` that are asked at a time


class Index:
    """Documents on disk, found by text or by other documents.

    Made by :meth:`create` and :meth:`open`. One process writes at a time; others can search meanwhile, and find what is
    written by then.

    Example:
        ::

            from simlte_st import Index

            index = Index.create("articles.index", "simlte-longformer", parts=True)
            index.add("articles.jsonl")
            for hit in index.search("floods in the north", where="year > 2010", why=True):
                print(hit.id, hit.cosine, hit.sentences)

    Attributes:
        folder: Where it is.
        parts: Whether it has a vector for each passage too.
        calibration: The threshold of :meth:`calibrate`; None where there is none yet.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], store: Store, model: Model | None, device: str | None = None
    ) -> None:
        self.folder, self._settings, self._store, self._model, self._device = folder, settings, store, model, device
        self.parts: bool = settings["parts"]
        self.calibration = Calibration(**settings["calibration"]) if settings["calibration"] else None

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r})"

    def __len__(self) -> int:
        """Count the documents."""
        return self._store.count()

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
        """Make an index.

        Args:
            path: Its folder, which is made.
            model: The model, or its name or folder, which is then found again when the index is opened.
            parts: Give each document longer than the model reads a vector for each passage too: whole sentences, as
                many as the model reads. It is then found by its best passage. None: as the index is that is there, else
                no.
            exist_ok: Open the index that is there, if it was made with the same model and ``parts``.
            device: Where a model computes that is given by its name, such as ``"cpu"`` or ``"cuda:1"``; None for a GPU,
                if there is one.

        Raises:
            ConfigurationError: Something is there, or it was made otherwise, there is no such device, or another
                process writes.
            ModelError: There is no such model, or the index there has another.
            StoreError: It cannot be written.
            MissingExtraError: LanceDB is not installed.
        """
        folder = Path(path)
        if exist_ok and (folder / SETTINGS_FILE).exists():
            index = cls.open(folder, model, device).load()
            if parts not in (None, index.parts):
                made = "with" if index.parts else "without"
                raise ConfigurationError(f"{folder} was made {made} passages (parts): make another index.")
            return index
        from simlte_st.index.encoder import Encoder

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
            model: The model it was made with, where it is not found by the name that it had. It is loaded, and compared
                with what the index knows of it, when it is first needed.
            device: Where it computes, as for :meth:`create`.

        Raises:
            StoreError: There is no index, it is incomplete, or made by a newer version.
            MissingExtraError: LanceDB is not installed.
        """
        folder = Path(path)
        return cls(folder, read_settings(folder), Store.open(folder), model, device)

    def load(self) -> Index:
        """Load the model now rather than when it is first needed, and give the index.

        Raises:
            ModelError: The model is gone, or another one.
            ConfigurationError: It had no name, and none was given.
        """
        _ = self.encoder
        return self

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded when it is first needed; raises what :meth:`load` does."""
        return load_encoder(self.folder, self._settings, self._model, self._device)

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self._store, lambda: self.encoder, self.parts)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        lock = hold(self.folder)
        try:
            yield
        finally:
            lock.release()

    def add(
        self,
        documents: Any,
        *,
        batch_size: int = 32,
        sync: bool = False,
        progress: bool = False,
        device: str | Sequence[str] | None = None,
        engine: Literal["local", "ray"] = "local",
        actors: int | None = None,
        address: str | None = None,
    ) -> IndexReport:
        """Add documents, each batch in one commit: what an interruption loses is one batch at most.

        A document whose id is there replaces it. Nothing is encoded twice: a document that is there as it is given is
        left alone, and a text that is there under another id has its vector already. All columns become metadata, see
        :class:`~simlte_st.index.metadata.Metadata`. Documents of a table without ids are called by the hash of their
        text; a second one of the same text with other columns by the hash of both.

        Args:
            documents: What :func:`~simlte_st.data.read_documents` takes.
            batch_size: Texts encoded at once.
            sync: Afterwards remove the documents that are in the index and not among these; what could not be read
                this time stays, and is named in the report.
            progress: Show a progress bar.
            device: Several devices, in a process each, encode first what has no vector yet; then this process writes.
                The documents are read twice. What is finished stays, in the index, when this is interrupted. None or
                one: this process encodes as it writes.
            engine: ``"ray"`` lets actors of Ray Data encode first, see :func:`simlte_st.encode_documents`; all machines
                have to see the documents and the index.
            actors: Of Ray.
            address: Of Ray.

        Returns:
            What became of them.

        Raises:
            DataError: They cannot be read, or their columns have no place in the index.
            ConfigurationError: Another process writes, ``sync`` with documents that were limited in number, or there
                is no such device, engine or cluster, or no room in it.
            MissingExtraError: ``engine="ray"`` without the extra ``ray``.
            ModelError: The model is gone, or another one.
            StoreError: The index cannot be written; what was written before is there.
        """
        from simlte_st.index.adding import add_documents
        from simlte_st.models.config import EngineConfig
        from simlte_st.models.device import check_devices

        workers = EngineConfig(device=device, engine=engine, actors=actors, address=address)
        check_devices(workers)
        with self._writing():
            self.__dict__.pop("_searcher", None)
            options: dict[str, Any] = {"batch_size": batch_size, "sync": sync, "progress": progress}
            encoder, folder = self.encoder, self.folder
            report = add_documents(self._store, encoder, documents, folder, workers, parts=self.parts, **options)
            remove_unused(folder, self._store)
            return report

    def delete(self, ids: Sequence[str]) -> int:
        """Delete documents; give how many there were.

        Raises:
            ConfigurationError: Another process writes.
            StoreError: The index cannot be written.
        """
        with self._writing():
            before = len(self)
            self._store.delete(list(ids))
            remove_unused(self.folder, self._store)
            return before - len(self)

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """Return documents with their metadata, in the order of the ids.

        Raises:
            DataError: One is not in the index.
        """
        return contents.read_documents(self._store, ids)

    def table(self, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None) -> pa.Table:
        """Return documents as a table in the order of their ids.

        Args:
            columns: Of ``id``, ``text``, ``tokens``, ``vector`` and the metadata; None for all of these. The id is
                always there.
            ids: Of the documents; None for all.

        Raises:
            StoreError: The index cannot be read.
        """
        return contents.read_table(self._store, columns, ids)

    def search(
        self,
        text: str,
        *,
        top: int | None = None,
        threshold: float | None = None,
        where: str | None = None,
        mode: Mode = "hybrid",
        why: bool = False,
    ) -> Hits:
        """Find documents by text.

        Args:
            text: What to look for.
            top: How many documents at most; None for 10, or for all with a threshold.
            threshold: Lowest cosine. All documents are then compared, whether there is an approximate index or not.
            where: An SQL condition on the id and the metadata, such as ``"year > 2010"``.
            mode: ``"dense"``: by the cosine of vectors. ``"text"``: by BM25. ``"hybrid"``: by the ranks in both.
            why: Find reasons: the nearest sentences, and shared words.

        Returns:
            The hits, from the best on.

        Raises:
            ConfigurationError: A value is out of range, or the filter cannot be used.
            DataError: The text is empty.
            ModelError: The model is gone, or another one.
            StoreError: The index cannot be read.
        """
        check_search(mode, top, threshold)
        check_text("text", text)
        if not text.strip():
            raise DataError("The text to search for is empty.")
        question = self._searcher.ask_text(text, mode != "text" or why)
        return self._searcher.find([question], top, threshold, where, mode, why)[0]

    def link(
        self,
        seeds: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        top: int | None = None,
        threshold: float | None = None,
        where: str | None = None,
        mode: Mode = "hybrid",
        why: bool = False,
    ) -> Hits:
        """Find the documents that belong to others, which are not among the hits.

        Args:
            seeds: The others: ids of the index, paths of files, or texts; looked for in this order. Several are one
                question: the mean of their vectors, and the words of all.
            top: As for :meth:`search`; where no threshold is given either, the calibrated one is taken if there is one.
            threshold: Lowest cosine.
            where: An SQL condition on the id and the metadata.
            mode: What is searched, as for :meth:`search`.
            why: Find reasons: the nearest sentences, and shared words.

        Returns:
            The hits; their ``threshold`` is the one that was taken.

        Raises:
            DataError: A seed is empty, or seems to be an id or a path but is none.
            ConfigurationError: A value is out of range, or the filter cannot be used.
            ModelError: The model is gone, or another one.
            StoreError: The index cannot be read.
        """
        threshold = self._threshold(top, threshold, mode)
        several = isinstance(seeds, Iterable) and not isinstance(seeds, (str, bytes, os.PathLike))
        names: list[Any] = list(seeds) if several else [seeds]  # type: ignore[arg-type]
        if not names:
            raise DataError("There is no seed to find documents for.")
        documents = [document for seed in names for document in find_seed(self._store, seed)]
        questions = self._searcher.ask_documents([documents], mode != "text" or why)
        return self._searcher.find(questions, top, threshold, where, mode, why)[0]

    def link_each(
        self,
        seeds: Any,
        *,
        top: int | None = None,
        threshold: float | None = None,
        where: str | None = None,
        mode: Mode = "hybrid",
    ) -> Iterator[tuple[str, Hits]]:
        """Find for each of many documents those that belong to it: each is a question of its own.

        Vectors are looked for hundreds at a time, words for a few. A text that the index has is not encoded anew.

        Args:
            seeds: What :func:`~simlte_st.data.read_documents` takes; read as a stream.
            top: As for :meth:`link`, for each.
            threshold: As for :meth:`link`.
            where: As for :meth:`link`.
            mode: As for :meth:`link`.

        Yields:
            The id of each seed, in their order, and its hits.

        Raises:
            DataError: The seeds cannot be read. Other errors are as for :meth:`link`.
        """
        threshold = self._threshold(top, threshold, mode)
        reader = iter(read_documents(seeds))
        while batch := list(islice(reader, _TOGETHER)):
            asked = [[each] for each in find_texts(self._store, batch)]
            found = self._searcher.find(
                self._searcher.ask_documents(asked, mode != "text"), top, threshold, where, mode
            )
            yield from zip((document.id for document in batch), found, strict=True)

    def _threshold(self, top: int | None, threshold: float | None, mode: Mode) -> float | None:
        check_search(mode, top, threshold)
        if top is None and threshold is None and self.calibration is not None and mode != "text":
            return self.calibration.threshold
        return threshold

    def calibrate(
        self, labels: str | os.PathLike[str] | Iterable[Mapping[str, Any]], precision: float = 0.9
    ) -> Calibration:
        """Choose a threshold by labelled pairs and keep it: :meth:`link` then takes it by default.

        Args:
            labels: A file of JSON lines, or mappings, with ``seed`` (an id or a text), ``id`` (of the index) and
                ``label`` (1 where they belong together, else 0).
            precision: Share of the links that shall be right: the lowest threshold that reaches it is chosen.

        Raises:
            DataError: The labels cannot be used, or name a document that is not in the index.
            ConfigurationError: No threshold reaches the precision, or another process writes.
            ModelError: As :meth:`search`.
            StoreError: The index cannot be read or written.
        """
        pairs = read_labels(labels)
        self.documents(sorted({document for _, document, _ in pairs}))  # are they there?
        seeds = {seed: find_seed(self._store, seed) for seed, _, _ in pairs}
        questions = dict(zip(seeds, self._searcher.ask_documents([*seeds.values()], True), strict=True))
        calibration = fit_threshold(score_pairs(self._store, questions, pairs), [each[2] for each in pairs], precision)
        with self._writing():
            self._settings["calibration"] = calibration.to_dict()
            write_json(self.folder / SETTINGS_FILE, self._settings)
        self.calibration = calibration
        return calibration
