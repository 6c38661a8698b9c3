"""Add documents to an index, encoding only new texts and committing each batch."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from operator import length_hint
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from simlte_st.errors import ConfigurationError, format_count, list_names
from simlte_st.files import SETTINGS_FILE, write_json
from simlte_st.models.encode import Device, make_parts, several_devices
from simlte_st.models.limits import Truncation, warn_of_language, warn_of_truncation
from simlte_st.models.parts import Part, PartEncoder, Parts
from simlte_st.models.vectors import unit_rows
from simlte_st.progress import TextBar
from simlte_st.reading.document import Document, content_id, peek, searched_text
from simlte_st.reading.documents import DocumentReader, ReadReport
from simlte_st.search.encoder import Encoder, IndexSettings, document_batches, in_context
from simlte_st.search.schema import MAX_COLUMNS, Metadata, own_schema
from simlte_st.search.store import PUNKT_FILE, Store, text_hash
from simlte_st.search.words import count_index_words
from simlte_st.words.analyzer import extract_terms
from simlte_st.words.languages import LanguageFinder
from simlte_st.words.sentences import Segmenter

VECTORS_FOLDER = "vectors.parts"
"""Subfolder for vectors that are not in the table yet."""

REMEDY = "parts=True makes the whole text of each document searchable, at about {times:.1f} times the cost."
"""Advice when a model truncates many tokens; passages are off by default because of their cost."""

Vectors: TypeAlias = Mapping[str, tuple[ArrayLike, int]]
"""Vectors and token counts, by text hash."""

Row: TypeAlias = dict[str, Any]
"""A row of the table, by column name; the metadata columns vary between indexes."""


@dataclass
class IndexReport:
    """The outcome of adding documents to an index.

    Attributes:
        reading: Counts of the documents read and skipped in the source.
        truncation: Counts of the tokens that the model reads and truncates.
        added: Number of new documents.
        replaced: Number of documents whose text or metadata has changed.
        unchanged: Number of documents that were already in the index.
        removed: Number of documents that were removed because the source no longer has them.
        kept: Ids of documents that ``sync`` kept because they could not be read.
        encoded: Number of texts and passages that were encoded.
        reused: Number of texts and passages whose vector was already in the index.
        documents: Number of documents now in the index.
        vectors: Number of searchable vectors.
        misfits: Number of dropped values, by column: binary values, values that do not fit the column's type, and
            values of columns beyond the maximum number.
    """

    reading: ReadReport
    truncation: Truncation
    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: list[str] = field(default_factory=list)
    encoded: int = 0
    reused: int = 0
    documents: int = 0
    vectors: int = 0
    misfits: dict[str, int] = field(default_factory=dict)

    def summary(self) -> str:
        """Return the report in a few lines."""
        lines = [
            f"{format_count(self.added, 'document')} added, {self.replaced:,} replaced, {self.removed:,} removed, "
            f"{self.unchanged:,} unchanged; {format_count(self.encoded, 'text')} encoded, "
            f"{format_count(self.reused, 'vector')} reused",
            f"the index has {format_count(self.documents, 'document')} and {format_count(self.vectors, 'vector')}",
        ]
        if self.kept:
            lines.append(f"kept {format_count(len(self.kept), 'document')} that could not be read this time")
        if self.truncation.cut_texts:
            lines.append(self.truncation.summary())
        if self.misfits:
            columns = list_names(f"{name} ({count:,})" for name, count in self.misfits.items())
            reasons = f"are binary, do not fit their column's type, or exceed {MAX_COLUMNS} columns"
            lines.append(f"dropped values that {reasons}: {columns}. Choose the columns with columns=.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, without ``reading``."""
        values = {name: value for name, value in asdict(self).items() if name != "reading"}
        return values | {"truncation": self.truncation.to_dict()}


@dataclass
class IndexWriter:
    """Adds documents to an index, committing each batch; see :meth:`simlte_st.search.Index.add`.

    Modifies ``settings`` in place, and loads the model only if there are new texts.
    """

    store: Store
    get_encoder: Callable[[], Encoder]
    settings: IndexSettings
    reader: DocumentReader
    device: Device
    batch_size: int
    columns: Sequence[str] | None
    sync: bool
    progress: bool

    def __post_init__(self) -> None:
        store, settings = self.store, self.settings
        first, self.stream = peek(_with_stable_ids(self.reader), lambda document: len(document.text))
        self.first_texts = texts = [document.text for document in first]
        if not store.count():  # warn once, and discard the sentence segmenter of a run that was killed
            encoder = self.get_encoder()
            warn_of_language({encoder.name or "The model": encoder.quick or encoder.model}, texts)
            if not (encoder.quick or settings["parts"]):
                warn_of_truncation(encoder.model, texts, REMEDY)
            (store.folder / PUNKT_FILE).unlink(missing_ok=True)
        self.segmenter = store.segmenter(texts) if settings["parts"] else None
        self.metadata = Metadata(store.metadata(), self.columns)
        self.metadata.check_names(first)
        self.report = IndexReport(self.reader.report, Truncation(**settings["truncation"]))
        self.learn_columns(first)

    @cached_property
    def find_language(self) -> LanguageFinder:
        """The function that finds a text's language, which takes half a second to load."""
        return LanguageFinder(self.first_texts, self.settings["language"], self.settings["languages"])

    def add(self) -> IndexReport:
        """Add the documents and return the report."""
        store, reader, report = self.store, self.reader, self.report
        folder = store.folder / VECTORS_FOLDER
        if several_devices(self.device) and not (encoder := self.get_encoder()).is_static:
            self.stream = _with_stable_ids(reader)  # restart: the source is read twice
            missing_texts = TextParts(reader, folder, encoder, self.segmenter)
            make_parts(missing_texts, PartEncoder(encoder.model, self.batch_size), self.device, self.progress)
        ids = set[str]()
        with TextBar("Indexing", None, show=self.progress) as bar:
            for number, batch in enumerate(document_batches(self.stream, report.truncation.budget), start=1):
                new = {document.id: document for document in batch if document.id not in ids}
                ids |= new.keys()
                report.unchanged += len(batch) - len(new)
                bar.documents = length_hint(reader, 0) or None
                bar.begin(len(batch))
                self.write(list(new.values()), _read_vectors(folder, number), bar)
        shutil.rmtree(folder, ignore_errors=True)  # all vectors are in the table now
        report.reading = reader.report
        if self.sync:
            self._remove_missing(ids)
        store.tidy()
        count_index_words(store)
        tokens = store.rows("searched", ["tokens"])["tokens"].to_numpy()
        report.documents, report.vectors = store.count(), len(tokens)
        report.truncation.add(tokens)
        report.misfits = dict(self.metadata.misfits)
        return report

    def _remove_missing(self, ids: set[str]) -> None:
        """Remove documents that are no longer in the source, except those that could not be read."""
        reader = self.reader
        if reader.report.stopped_at is not None:
            raise ConfigurationError("limit= leaves documents unread, and sync=True would remove them: use only one.")
        missing = [doc_id for doc_id in self.store.ids() if doc_id not in ids]
        prefixes = tuple(name for name in reader.unread if not name or name.endswith("/"))
        unread = [doc_id for doc_id in missing if doc_id in reader.unread or doc_id.startswith(prefixes)]
        removed = sorted({*missing} - {*unread})
        self.store.delete(removed)
        self.report.kept, self.report.removed = unread, len(removed)

    def learn_columns(self, documents: Iterable[Document]) -> None:
        """Add new metadata columns, and turn integers into floats where fractions follow."""
        if fields := self.metadata.learn(documents):
            self.store.add_columns(fields)
        for name in self.metadata.fractional:
            if self.store.convert_to_floats(name):
                self.metadata.types[name] = pa.float64()

    def write(self, documents: list[Document], vectors: Vectors, bar: TextBar) -> None:
        """Write new and changed documents; texts in ``vectors`` are not encoded again."""
        self.learn_columns(documents)
        ids, columns = [document.id for document in documents], ["id", "hash", *self.metadata.types]
        stored = {row["id"]: row for row in self.store.find_rows("id", ids, columns, "part = 0").to_pylist()}
        changed: list[tuple[Document, Row]] = []
        for document in documents:
            values = {"id": document.id, "hash": text_hash(document.text), **self.metadata.values(document)}
            if values == stored.get(document.id):
                self.report.unchanged += 1
                continue
            self.report.replaced += document.id in stored
            self.report.added += document.id not in stored
            changed.append((document, values))
        if not changed:
            return
        rows: list[Row] = []
        all_terms = self._extract_terms(changed)
        for (document, values), terms in zip(changed, all_terms, strict=True):
            passages = self.get_encoder().passages(document, self.segmenter) if self.segmenter else []
            rows.append({**values, "part": 0, "searched": not passages, "text": document.text, "terms": terms})
            context = str(values["hash"]) if passages and self.get_encoder().is_static else ""
            for part, passage in enumerate(passages, start=1):
                digest = text_hash(context + passage)  # with the document that its vector depends on
                rows.append({**values, "part": part, "hash": digest, "searched": True, "passage": passage})
        self.store.merge(self._table(rows, vectors, bar))

    def _extract_terms(self, documents: Sequence[tuple[Document, Row]]) -> list[str]:
        """Return each document's terms, separated by spaces, and save new languages in the settings.

        They include those of names; vectors do not, since hybrid search would not gain.
        """
        languages = [self.find_language(document.text) for document, _ in documents]
        if {*languages} - {*self.settings["languages"]}:
            self.settings["languages"] = list(dict.fromkeys([*self.settings["languages"], *languages]))
            write_json(self.store.folder / SETTINGS_FILE, self.settings)
        texts = (searched_text(document.text, values) for document, values in documents)
        pairs = zip(texts, languages, strict=True)
        return [" ".join(term.term for term in extract_terms(text, language)) for text, language in pairs]

    def _table(self, rows: list[Row], vectors: Vectors, bar: TextBar) -> pa.Table:
        """Return the rows with their vectors, encoding texts that are in neither the table nor ``vectors``."""
        texts = {row["hash"]: row.get("passage") or row["text"] for row in rows}
        stored = self.store.find_rows("hash", list(texts), ["hash", "vector", "tokens"]).to_pylist()
        indexed = {row["hash"]: (row["vector"], row["tokens"]) for row in stored}
        self.report.encoded += len(texts) - len(indexed)
        self.report.reused += len(rows) - len(texts) + len(indexed)
        missing = {digest: text for digest, text in texts.items() if digest not in indexed and digest not in vectors}
        vectors = {**vectors, **indexed}
        if missing:
            encoder = self.get_encoder()
            with bar.reading([*missing.values()], None if encoder.quick else encoder.model):
                encoded = encoder.encode([*missing.values()], self.batch_size)
            vectors |= zip(missing, zip(*encoded, strict=True), strict=True)
        document: ArrayLike = ()
        for row in rows:  # a document precedes its passages
            vector, row["tokens"] = vectors[row["hash"]]
            if row["part"] == 0:
                document = vector
            elif row["hash"] in missing and self.get_encoder().is_static:
                vector = in_context(np.asarray(vector)[None], document)[0]
            row["vector"] = np.asarray(vector, dtype=np.float32)
        types = {field.name: field.type for field in own_schema(self.settings["dimension"])} | self.metadata.types
        return pa.Table.from_pylist(rows, pa.schema(types))


def _with_stable_ids(reader: DocumentReader) -> Iterator[Document]:
    """Yield documents; if a table has no ids, use a hash of the text, because row numbers may change.

    Among documents that share a text but differ in other columns, all but the first get a hash of text and columns. The
    column ``row`` holds the row number, unless the source has a column of that name.
    """
    columns: dict[str, str] = {}
    for document in reader:
        if reader.report.text_column is not None and reader.report.id_column is None:
            doc_id, metadata_id = content_id(document.text), content_id(repr(sorted((document.metadata or {}).items())))
            if columns.setdefault(doc_id, metadata_id) != metadata_id:
                doc_id = content_id(f"{doc_id} {metadata_id}")
            document = Document(doc_id, document.text, metadata={"row": document.id, **(document.metadata or {})})
        yield document


def _read_vectors(folder: Path, number: int) -> Vectors:
    """Return the vectors of a batch of :class:`TextParts`, scaled to length 1, and their token counts.

    Vectors from an earlier run are still valid: texts are identified by hash, and an index has a single model.
    """
    vectors: dict[str, tuple[ArrayLike, int]] = {}
    for path in folder.absolute().glob(f"part-{number:08d}-*.parquet"):
        table = pq.read_table(path)
        rows = unit_rows(table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1))
        vectors.update(zip(table["id"].to_pylist(), zip(rows, table["tokens"].to_pylist(), strict=True), strict=True))
    return vectors


class TextParts(Parts):
    """Texts and passages that lack a vector, for other processes to encode, in one part per batch of documents."""

    def __init__(self, reader: DocumentReader, folder: Path, encoder: Encoder, segmenter: Segmenter | None) -> None:
        super().__init__(reader, folder.absolute())
        self._encoder, self._segmenter = encoder, segmenter
        self.folder.mkdir(exist_ok=True)

    @property
    def total(self) -> int | None:
        """Number of documents, if each is encoded as one text; otherwise None."""
        return None if self._segmenter else super().total

    def __iter__(self) -> Iterator[Part]:
        """Yield the texts of each batch that have no vector yet."""
        store, hashes = Store.open(self.folder.parent), set[str]()
        for number, batch in enumerate(document_batches(self.reader, self._encoder.budget), start=1):
            passages = [(document.text, *self._encoder.passages(document, self._segmenter)) for document in batch]
            texts = {text_hash(text): text for text in chain(*passages)}
            new = [digest for digest in texts if digest not in hashes]
            hashes.update(store.find_rows("hash", new, ["hash"])["hash"].to_pylist())
            if missing := [digest for digest in new if digest not in hashes]:
                hashes.update(missing)
                yield Part.of(self.folder, number, missing, [texts[digest] for digest in missing])
