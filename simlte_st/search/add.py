"""Documents into an index: only what is new is encoded, and each batch is one commit."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simlte_st.data.document import Document, content_id
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.segmenters import PunktSegmenter, Segmenter, make_segmenter, peek
from simlte_st.data.tokens import in_batches
from simlte_st.errors import ConfigurationError
from simlte_st.files import write_json
from simlte_st.models.encode import make_parts
from simlte_st.models.language import warn_of_language
from simlte_st.models.pace import TextBar
from simlte_st.models.parts import Part, PartEncoder, Parts, part_files, part_number
from simlte_st.models.static import is_static
from simlte_st.models.truncation import Truncation, warn_of_truncation
from simlte_st.models.vectors import unit_rows
from simlte_st.search.config import AddConfig
from simlte_st.search.encoder import Encoder
from simlte_st.search.schema import MOST_COLUMNS, Metadata, own_schema
from simlte_st.search.store import PUNKT_FILE, Store, read_part, text_hash
from simlte_st.search.words import DocumentTerms, count_words

BATCH = 256
"""Documents of a commit, or fewer of long ones: what an interruption can lose."""

STATIC_BATCHES = 8
"""How many times as many a commit has that a static embedding encodes: each looks through the ids of the table."""

VECTORS_FOLDER = "vectors.parts"
"""Vectors that are not in the table yet."""

_BATCH_CHARACTERS = 4_000_000
_SHOWN = 5  # ids that a summary names

REMEDY = "parts=True finds documents by all of it, for about {times:.1f} times the work."
"""What to do where a model truncates much. It is not done unasked, because of what it costs."""

Made = Mapping[str, tuple[Any, int]]
"""By the hash of a text: its vector and its tokens."""


@dataclass
class IndexReport:
    """What became of the documents that were added.

    Attributes:
        added: Documents that are new.
        replaced: Documents whose text or metadata has changed.
        unchanged: Documents that were there as they are.
        removed: Documents that were removed because the source no longer has them.
        kept: Ids of the documents that ``sync`` kept although the source does not have them: what could not be read
            this time may still be there.
        encoded: Texts and passages that were encoded.
        reused: Texts and passages whose vector was there.
        documents: Documents in the index now.
        vectors: Vectors that a search compares.
        truncation: How much the model read of the texts and passages that a search compares.
        misfits: By column, the number of values left out (binary, or not of its type), and the first document with one.
        left_out: By column that was left out because there are too many, the number of documents with a value.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: list[str] = field(default_factory=list)
    encoded: int = 0
    reused: int = 0
    documents: int = 0
    vectors: int = 0
    truncation: Truncation = field(default_factory=Truncation)
    misfits: dict[str, tuple[int, str]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def summary(self) -> str:
        """Return it in a few lines."""
        lines = [
            f"{self.added:,} documents added, {self.replaced:,} replaced, {self.removed:,} removed, "
            f"{self.unchanged:,} as they were; {self.encoded:,} texts encoded, {self.reused:,} vectors reused",
            f"the index has {self.documents:,} documents, found by {self.vectors:,} vectors",
        ]
        if self.kept:
            lines.append(
                f"kept {len(self.kept):,} documents that are not among those that could be read ({_some(self.kept)})"
            )
        if self.truncation.cut_texts or self.truncation.unread:
            lines.append(self.truncation.summary())
        for name, (count, first) in self.misfits.items():
            lines.append(
                f"column {name}: {count:,} values left out, binary or not of its type (first: document {first!r})"
            )
        if self.left_out:
            lines.append(
                f"{len(self.left_out):,} rare columns were left out ({_some(list(self.left_out))}): an index has "
                f"{MOST_COLUMNS} at most, the most frequent ones. columns= names those to keep."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "truncation": self.truncation.to_dict()}


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def add_documents(
    store: Store, encoder: Encoder, documents: Any, config: AddConfig, settings: dict[str, Any]
) -> IndexReport:
    """Add documents to an index; see :meth:`simlte_st.search.Index.add`. Its settings are changed in place."""
    folder, parts = store.folder, settings["parts"]
    reader = documents if isinstance(documents, DocumentReader) else read_documents(documents, metadata=True)
    first, stream = peek(_named(reader), lambda document: len(document.text))
    if not store.count():  # a message once: not of each addition
        warn_of_language({encoder.name or "The model": encoder.model}, (document.text for document in first))
        if not parts:
            warn_of_truncation(encoder.model, [document.text for document in first], REMEDY)
    learned = _segmenter(store, first, config.language)  # explanations need it, too
    segmenter = learned if parts else None
    metadata = Metadata(store.metadata(), config.columns, config.dates or ())
    metadata.check_names(first)
    terms = DocumentTerms(store, settings, [document.text for document in first], config.language)
    writer = _Writer(store, encoder, segmenter, metadata, terms, config.batch_size)
    writer.learn_columns(first)
    if config.elsewhere:
        stream = _named(reader)  # from the beginning again
        missing_texts = TextParts(reader, folder, encoder, segmenter)
        make_parts(missing_texts, PartEncoder(encoder.model, config.batch_size), config, config.progress)
    ahead = _files_ahead(folder)
    seen = set[str]()
    with TextBar(encoder.model, "Indexing", None, shown=config.progress) as bar:
        for number, batch in enumerate(_batches(stream, encoder), start=1):
            new = {document.id: document for document in batch if document.id not in seen}
            seen |= new.keys()
            writer.report.unchanged += len(batch) - len(new)
            bar.documents = length_hint(reader, 0) or None
            bar.begin(len(batch))
            writer.write(list(new.values()), _made_ahead(ahead.get(number, ())), bar)
    shutil.rmtree(folder / VECTORS_FOLDER, ignore_errors=True)  # all are in the table
    if config.sync:
        _remove_missing(store, reader, seen, writer.report)
    store.tidy()
    count_words(store)
    return writer.finish()


def _named(reader: DocumentReader) -> Iterator[Document]:
    """Name documents of a table without ids by the hash of their text: the number of a row may name another row later.

    A second document of the same text with other columns is named by the hash of both.
    """
    columns: dict[str, str] = {}
    for document in reader:
        if reader.report.text_column is not None and reader.report.id_column is None:
            name, own = content_id(document.text), content_id(repr(sorted((document.metadata or {}).items())))
            if columns.setdefault(name, own) != own:
                name = content_id(f"{name} {own}")
            document = Document(name, document.text, metadata=document.metadata)
        yield document


def _segmenter(store: Store, sample: Iterable[Document], language: str | None) -> Segmenter:
    if not store.count():  # a killed process may have learned from other documents
        learned = make_segmenter("punkt", lambda: (document.text for document in sample), language)
        assert isinstance(learned, PunktSegmenter)
        write_json(store.folder / PUNKT_FILE, learned.to_dict())
    return read_part(store.folder, PUNKT_FILE, PunktSegmenter.from_dict)


def _batches(documents: Iterable[Document], encoder: Encoder) -> Iterator[list[Document]]:
    times = STATIC_BATCHES if is_static(encoder.model) else 1
    return in_batches(documents, lambda document: len(document.text), times * _BATCH_CHARACTERS, times * BATCH)


def _remove_missing(store: Store, reader: DocumentReader, seen: set[str], report: IndexReport) -> None:
    """Remove the documents that the source no longer has, but none that it may have and that could not be read."""
    if reader.report.stopped_at is not None:
        raise ConfigurationError("Only a part of the documents was read (limit=): sync=True would remove the rest.")
    missing = sorted({*store.rows("part = 0", ["id"])["id"].to_pylist()} - seen)
    folders = tuple(name for name in reader.unread if name.endswith("/"))
    report.kept = [name for name in missing if reader.unnamed or name in reader.unread or name.startswith(folders)]
    gone = sorted({*missing} - {*report.kept})
    store.delete(gone)
    report.removed = len(gone)


class _Writer:
    """Writes documents into the table of an index, a batch in one commit, and counts what became of them."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        segmenter: Segmenter | None,
        metadata: Metadata,
        terms: DocumentTerms,
        batch_size: int,
    ) -> None:
        self._store, self._encoder, self._segmenter, self._batch_size = store, encoder, segmenter, batch_size
        self._metadata, self._terms = metadata, terms
        self.report = IndexReport()

    def learn_columns(self, documents: Iterable[Document]) -> None:
        """Add the columns of metadata that are new."""
        fields = self._metadata.learn(documents)
        if fields:
            self._store.add_columns(fields)

    def write(self, documents: list[Document], ahead: Made, bar: TextBar) -> None:
        """Write those documents that are new or have changed; ``ahead`` has vectors that were made before."""
        self.learn_columns(documents)
        names, columns = [one.id for one in documents], ["id", "hash", *self._metadata.types]
        there = {row["id"]: row for row in self._store.rows_of("id", names, columns, "part = 0").to_pylist()}
        rows: list[dict[str, Any]] = []
        for document in documents:
            values = {"id": document.id, "hash": text_hash(document.text), **self._metadata.values(document)}
            if values == there.get(document.id):
                self.report.unchanged += 1
                continue
            self.report.replaced += document.id in there
            self.report.added += document.id not in there
            passages = self._encoder.passages(document, self._segmenter)
            rows.append({**values, "part": 0, "searched": not passages, "text": document.text})
            for part, passage in enumerate(passages, start=1):
                own = {"part": part, "hash": text_hash(passage), "searched": True, "passage": passage}
                rows.append({**values, **own})
        whole = [row for row in rows if row["part"] == 0]
        for row, terms in zip(whole, self._terms.of([row["text"] for row in whole]), strict=True):
            row["terms"] = terms
        if rows:
            self._store.merge(self._table(rows, ahead, bar))

    def _table(self, rows: list[dict[str, Any]], ahead: Made, bar: TextBar) -> pa.Table:
        texts = {row["hash"]: row["text"] if row["part"] == 0 else row["passage"] for row in rows}
        known = self._store.rows_of("hash", list(texts), ["hash", "vector", "tokens"])
        made = {row["hash"]: (row["vector"], row["tokens"]) for row in known.to_pylist()}
        missing = [one for one in texts if one not in made]
        self.report.encoded += len(missing)
        self.report.reused += len(rows) - len(missing)
        made |= {one: ahead[one] for one in missing if one in ahead}
        here = [one for one in missing if one not in ahead]
        with bar.reading([texts[one] for one in here]):
            encoded = self._encoder.counted([texts[one] for one in here], self._batch_size)
        made |= zip(here, zip(*encoded, strict=True), strict=True)
        flat = np.stack([np.asarray(made[row["hash"]][0], dtype=np.float32) for row in rows]).reshape(-1)
        schema = own_schema(self._encoder.dimension)
        own = {field.name: field.type for field in schema if field.name not in ("tokens", "vector")}
        columns = {
            name: pa.array([row.get(name) for row in rows], kind) for name, kind in (own | self._metadata.types).items()
        }
        columns["tokens"] = pa.array([made[row["hash"]][1] for row in rows], pa.int32())
        columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(flat), self._encoder.dimension)
        return pa.table(columns)

    def finish(self) -> IndexReport:
        """Return the report, with what the index holds now."""
        tokens = self._store.rows("searched", ["tokens"])["tokens"].to_numpy()
        self.report.documents, self.report.vectors = self._store.count(), len(tokens)
        self.report.truncation = self._encoder.truncation().add(tokens)
        self.report.misfits, self.report.left_out = self._metadata.misfits, dict(self._metadata.left_out)
        return self.report


class TextParts(Parts):
    """The texts and passages that have no vector in an index yet; those of a batch of documents are a part."""

    def __init__(self, reader: DocumentReader, folder: Path, encoder: Encoder, segmenter: Segmenter | None) -> None:
        self._index, self._encoder, self._segmenter = folder.absolute(), encoder, segmenter
        super().__init__(reader, self._index / VECTORS_FOLDER)
        self.folder.mkdir(exist_ok=True)

    @property
    def total(self) -> int | None:
        """The documents, where each has one text."""
        return None if self._segmenter else super().total

    def __iter__(self) -> Iterator[Part]:
        """Read the documents."""
        store, seen = Store.open(self._index), set[str]()
        for number, batch in enumerate(_batches(self.reader, self._encoder), start=1):
            pieces = [each for one in batch for each in (one.text, *self._encoder.passages(one, self._segmenter))]
            texts = {text_hash(text): text for text in pieces}
            seen.update(store.rows_of("hash", [one for one in texts if one not in seen], ["hash"])["hash"].to_pylist())
            missing = [one for one in texts if one not in seen]
            seen.update(missing)
            if missing:
                yield Part.of(self.folder, number, missing, [texts[one] for one in missing])


def _files_ahead(folder: Path) -> dict[int, list[Path]]:
    """Return the files of :class:`TextParts` by the number of their batch.

    Whatever is in them is right: a text is known by its hash, and the index has one model.
    """
    files: dict[int, list[Path]] = {}
    for path in part_files(folder / VECTORS_FOLDER):
        files.setdefault(part_number(path), []).append(path)
    return files


def _made_ahead(paths: Iterable[Path]) -> Made:
    """Return the vectors of files, scaled to length 1, and the tokens of their texts."""
    made: dict[str, tuple[Any, int]] = {}
    for path in paths:
        table = pq.read_table(path)
        rows = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
        counted = zip(unit_rows(rows), table["tokens"].to_pylist(), strict=True)
        made.update(zip(table["id"].to_pylist(), counted, strict=True))
    return made
