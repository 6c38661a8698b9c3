"""Documents into the table of an index: only what is new is encoded, and each batch is one commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.data.analyzer import terms_of
from simlte_st.data.document import Document, content_id
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.segmenters import PunktSegmenter, Segmenter, make_segmenter, peek
from simlte_st.errors import ConfigurationError
from simlte_st.files import read_json, write_json
from simlte_st.index.encoder import Encoder
from simlte_st.index.metadata import Metadata
from simlte_st.index.passages import passages_of
from simlte_st.index.settings import PUNKT_FILE
from simlte_st.index.store import Store, text_hash
from simlte_st.index.texts import TextParts, VectorsAhead, batches
from simlte_st.index.words import count_words
from simlte_st.models.config import EngineConfig
from simlte_st.models.encode import make_parts
from simlte_st.models.parts import PartEncoder
from simlte_st.models.truncation import Truncation
from simlte_st.progress import complete, progress_bar

logger = logging.getLogger(__name__)

_SHOWN = 5  # ids that a summary names


@dataclass
class IndexReport:
    """What became of documents that were added.

    Attributes:
        added: Documents that are new.
        replaced: Documents that were there and are another text, or have other metadata, now.
        unchanged: Documents that were there as they are.
        removed: Documents that were removed as they are no longer in the source.
        kept: Ids of the documents that ``sync`` kept although they were not read: what could not be read this time is
            not gone.
        unnamed: How many rows could not be read whose ids are not known, so that all documents are kept that they may
            be.
        encoded: Texts and passages that were encoded.
        reused: Texts and passages whose vector was there.
        documents: Documents in the index now.
        vectors: Vectors that a search compares.
        truncation: How much the model read of the texts and passages that a search compares.
        parts: Whether the index has passages.
        misfits: By column, values left out as they are not of its type, and the first document that has one.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: list[str] = field(default_factory=list)
    unnamed: int = 0
    encoded: int = 0
    reused: int = 0
    documents: int = 0
    vectors: int = 0
    truncation: Truncation = field(default_factory=Truncation)
    parts: bool = False
    misfits: dict[str, tuple[int, str]] = field(default_factory=dict)

    def summary(self) -> str:
        """Say it in a few lines."""
        lines = [
            f"{self.added:,} documents added, {self.replaced:,} replaced, {self.removed:,} removed, "
            f"{self.unchanged:,} as they were; {self.encoded:,} texts encoded, {self.reused:,} vectors reused",
            f"the index has {self.documents:,} documents, found by {self.vectors:,} vectors",
        ]
        if self.kept:
            shown = ", ".join(map(repr, self.kept[:_SHOWN])) + (", ..." if len(self.kept) > _SHOWN else "")
            why = "that could not be read this time"
            if self.unnamed:
                why = f"that are not in the source: {self.unnamed:,} rows that could not be read may be some of them"
            lines.append(f"kept {len(self.kept):,} documents {why} ({shown})")
        if self.truncation.cut_texts:
            lines.append(self.truncation.summary() + ("" if self.parts else " parts=True indexes all of them."))
        for name, (count, first) in self.misfits.items():
            lines.append(
                f"column {name}: {count:,} values left out, binary or not of its type (first: document {first!r})"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "truncation": self.truncation.to_dict()}


def add_documents(
    store: Store,
    encoder: Encoder,
    documents: Any,
    folder: Path,
    workers: EngineConfig,
    *,
    parts: bool,
    batch_size: int,
    sync: bool,
    progress: bool,
) -> IndexReport:
    """Add documents; see :meth:`simlte_st.index.Index.add`."""
    reader = documents if isinstance(documents, DocumentReader) else read_documents(documents, metadata=True)
    metadata, report, seen = Metadata(store.metadata()), IndexReport(parts=parts), set[str]()
    first, stream = peek(_named(reader), lambda document: len(document.text))
    segmenter = _segmenter(folder / PUNKT_FILE, first)
    _learn(store, metadata, first)
    if workers.elsewhere:
        stream = _named(reader)  # from the beginning again
        missing_texts = TextParts(reader, folder, encoder, segmenter if parts else None)
        make_parts(missing_texts, PartEncoder(encoder.model, batch_size), workers, progress)
    ahead = VectorsAhead(folder)
    with progress_bar("Indexing", length_hint(reader, 0) or None, shown=progress) as bar:
        for number, batch in enumerate(batches(stream), start=1):
            new = {document.id: document for document in batch if document.id not in seen}
            report.unchanged += len(batch) - len(new)
            seen |= new.keys()
            _learn(store, metadata, new.values())
            cut, made = segmenter if parts else None, ahead.of_batch(number)
            _add_batch(store, encoder, metadata, cut, list(new.values()), made, batch_size, report)
            bar.update(len(batch))
        complete(bar)
    ahead.discard()
    if sync:
        if reader.report.stopped_at is not None:
            raise ConfigurationError("Only a part of the documents was read (limit=): nothing is removed for it.")
        missing = sorted({*store.rows("part = 0", ["id"])["id"].to_pylist()} - seen)
        folders = tuple(name for name in reader.unread if name.endswith("/"))
        report.unnamed = reader.unnamed
        report.kept = [name for name in missing if reader.unnamed or name in reader.unread or name.startswith(folders)]
        gone = sorted({*missing} - {*report.kept})
        store.delete(gone)
        report.removed = len(gone)
    store.tidy()
    count_words(store, folder)
    tokens = store.rows("searched", ["tokens"])["tokens"].to_numpy()
    report.documents, report.vectors = store.count(), len(tokens)
    report.truncation = encoder.truncation().add(tokens)
    report.misfits = metadata.misfits
    return report


def _named(reader: DocumentReader) -> Iterator[Document]:
    """Name documents of a table without ids by the hash of their text: a row's number names another row elsewhere.

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


def _segmenter(punkt: Path, sample: Iterable[Document]) -> Segmenter:
    if not punkt.exists():
        learned = make_segmenter("punkt", lambda: (document.text for document in sample))
        assert isinstance(learned, PunktSegmenter)
        write_json(punkt, learned.to_dict())
    return PunktSegmenter.from_dict(read_json(punkt))


def _learn(store: Store, metadata: Metadata, documents: Iterable[Document]) -> None:
    before = set(metadata.renamed)
    fields = metadata.learn(documents)
    if fields:
        store.add_columns(fields)
    for source in sorted(metadata.renamed.keys() - before):
        logger.info("The column %r is called %s in the index.", source, metadata.renamed[source])


def _add_batch(
    store: Store,
    encoder: Encoder,
    metadata: Metadata,
    segmenter: Segmenter | None,
    documents: list[Document],
    ahead: Mapping[str, NDArray[np.floating[Any]]],
    batch_size: int,
    report: IndexReport,
) -> None:
    rows_before = {
        row["id"]: row
        for row in store.rows_of(
            "id", [one.id for one in documents], ["id", "hash", *metadata.types], "part = 0"
        ).to_pylist()
    }
    rows: list[dict[str, Any]] = []
    for document in documents:
        values = metadata.values(document)
        row = {"id": document.id, "hash": text_hash(document.text), **values}
        if row == rows_before.get(document.id):
            report.unchanged += 1
            continue
        report.replaced += document.id in rows_before
        report.added += document.id not in rows_before
        passages = passages_of(document, segmenter, encoder.count, encoder.budget) if segmenter else []
        terms = " ".join(each.term for each in terms_of(document.text))
        whole = {"part": 0, "searched": not passages, "text": document.text, "terms": terms, "passage": None}
        rows.append({**row, **whole})
        for part, passage in enumerate(passages, start=1):
            own = {
                "hash": text_hash(passage),
                "part": part,
                "searched": True,
                "text": None,
                "terms": None,
                "passage": passage,
            }
            rows.append({**row, **own})
    if rows:
        store.merge(_with_vectors(store, encoder, metadata, rows, ahead, batch_size, report))


def _with_vectors(
    store: Store,
    encoder: Encoder,
    metadata: Metadata,
    rows: list[dict[str, Any]],
    ahead: Mapping[str, NDArray[np.floating[Any]]],
    batch_size: int,
    report: IndexReport,
) -> pa.Table:
    texts = {row["hash"]: row["passage"] if row["text"] is None else row["text"] for row in rows}
    known = store.rows_of("hash", list(texts), ["hash", "vector"])
    vectors = dict(zip(known["hash"].to_pylist(), known["vector"].to_pylist(), strict=True))
    missing = [one for one in texts if one not in vectors]
    vectors.update((one, ahead[one]) for one in missing if one in ahead)
    here = [one for one in missing if one not in ahead]
    vectors.update(zip(here, encoder.documents([texts[one] for one in here], batch_size), strict=True))
    report.encoded += len(missing)
    report.reused += len(rows) - len(missing)
    flat = np.stack([np.asarray(vectors[row["hash"]], dtype=np.float32) for row in rows]).reshape(-1)
    counts = dict(zip(texts, encoder.count(list(texts.values())), strict=True))
    kinds = {"id": pa.string(), "part": pa.int32(), "hash": pa.string(), "searched": pa.bool_(), "text": pa.string()}
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in (kinds | metadata.types).items()}
    columns["terms"] = pa.array([row["terms"] for row in rows], pa.string())
    columns["passage"] = pa.array([row["passage"] for row in rows], pa.string())
    columns["tokens"] = pa.array([counts[row["hash"]] for row in rows], pa.int32())
    columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(flat), encoder.dimension)
    return pa.table(columns)
