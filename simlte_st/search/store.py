"""Store an index in a LanceDB table: write and read rows, and search them by vectors or BM25.

LanceDB is embedded, stores its tables in a folder, and handles more data than fits in memory. A single table with
atomic commits offers vector search (exact or approximate), filters, and BM25. FAISS and hnswlib hold only vectors, in
memory; to do the same, Chroma and Qdrant need a server or keep everything in memory.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from math import ceil, sqrt
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError, DataError, StoreError, list_names
from simlte_st.extras import require
from simlte_st.files import read_json, refuse_full_disk, write_json
from simlte_st.reading.document import Document, peek, to_nfc
from simlte_st.search.schema import MAX_EXACT, OWN_COLUMNS, explain_filter_error, first_line, own_schema, typed_literals
from simlte_st.words.sentences import PunktSegmenter

T = TypeVar("T")

Nearest: TypeAlias = dict[str, tuple[float, int]]
"""The cosine and the ``part`` of each document's nearest row, by document id."""

TABLE = "documents"

PUNKT_FILE = "punkt.json"
"""Parameters of the sentence segmenter, learned when sentences are first needed."""

_INDICES = {"terms": "terms_idx", "vector": "vector_idx", "searched": "searched_idx"}
_MIN_FILES, _MAX_FILES = 16, 64  # small files to tolerate; 14 of them make a search of 800 rows 1.4 times slower
_UNINDEXED = 0.125  # fraction of the rows, up to _FEW, that the indices may lack
_OLD = timedelta(minutes=2)  # how long the files of an old version are kept for running searches
_MAX_VALUES = 1000  # in one SQL list
_SIMILAR = 1000  # ids to compare with a mistyped one
_ROUNDING = 1e-6  # exact and approximate searches round the same cosine differently

APPROXIMATE_FROM = 50_000
"""Number of rows above which vectors get an approximate index (IVF); exact search over fewer is fast."""

PROBES = 100
"""Number of partitions to search for a few rows; recall@10 is .974 to .987 with 60,000 to a million rows
(``benchmarks.index_scale``)."""

_FEW = 100  # rows
_MAX_SEGMENTS = 8  # before an index is rebuilt: with eight, a query takes up to twice as long as with one

_QUOTED = re.compile(r"'(?:[^']|'')*'")
_HINTS = {
    "read": "If it is a copy, copy it again; otherwise index the documents again, in another folder.",
    "written": "Earlier writes are kept.",
}


@contextmanager
def store_errors(folder: Path, action: Literal["read", "written"]) -> Iterator[None]:
    """Convert the three classes of exceptions that LanceDB raises to :class:`~simlte_st.errors.StoreError`."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        refuse_full_disk(f"The index {folder}", error)
        raise StoreError(f"The index {folder} cannot be {action}: {first_line(error)}. {_HINTS[action]}") from error


def read_index_file(folder: Path, name: str, parse: Callable[[Any], T]) -> T:
    """Read a JSON file of an index."""
    try:
        return parse(read_json(folder / name))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{folder / name} is missing or damaged. {_HINTS['read']}") from error


def text_hash(text: str) -> str:
    """Return the digest that identifies a text and its vector."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


def sql_in(column: str, values: Iterable[str]) -> str:
    """Return an SQL condition that a column equals one of several texts."""
    literals = ", ".join(map(sql_text, values))
    return f"{column} IN ({literals})" if literals else "false"


def sql_text(value: str) -> str:
    """Return a text as an SQL literal."""
    return "'{}'".format(value.replace("'", "''"))


class Store:
    """The table of an index."""

    def __init__(self, folder: Path, table: Any) -> None:
        self.folder, self._table = folder, table

    @classmethod
    def create(cls, folder: Path, dimension: int) -> Store:
        """Create an empty table."""
        with store_errors(folder, "written"):
            store = cls(folder, open_database(folder).create_table(TABLE, schema=own_schema(dimension)))
            store._make_index("terms")
        return store

    @classmethod
    def open(cls, folder: Path, exclusive: bool = False) -> Store:
        """Open the table; ``exclusive`` if no other process can write in the meantime."""
        with store_errors(folder, "read"):
            return cls(folder, open_database(folder, exclusive).open_table(TABLE))

    def snapshot(self) -> Store:
        """Return a snapshot of the table, for consistent reads."""
        with store_errors(self.folder, "read"):
            store = Store.open(self.folder)
            store._table.checkout(store._table.version)
        return store

    def segmenter(self, texts: Sequence[str] = ()) -> PunktSegmenter:
        """Return the sentence segmenter; the first call trains it on texts (default: a sample of the index)."""
        if (self.folder / PUNKT_FILE).exists():
            return read_index_file(self.folder, PUNKT_FILE, PunktSegmenter.from_dict)
        if not texts:
            ids = np.random.default_rng(0).permutation(self.ids()).tolist()
            tables = (self.table(["text"], ids[start : start + _FEW]) for start in range(0, len(ids), _FEW))
            texts, _ = peek((text for table in tables for text in table["text"].to_pylist()), len)
        segmenter = PunktSegmenter.learn(texts)
        with suppress(PermissionError):  # readers may lack write permission
            write_json(self.folder / PUNKT_FILE, segmenter.to_dict())
        return segmenter

    def metadata(self) -> pa.Schema:
        """Return the metadata columns."""
        with store_errors(self.folder, "read"):
            return pa.schema([field for field in self._table.schema if field.name not in OWN_COLUMNS])

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """Add columns that are null in all rows."""
        with store_errors(self.folder, "written"):
            self._table.add_columns(pa.schema(fields))

    def convert_to_floats(self, column: str) -> bool:
        """Convert a column of integers to floats; return False if a float would round one of them."""
        if self.count(f"`{column}` > {MAX_EXACT} OR `{column}` < -{MAX_EXACT}"):
            return False
        floats, integers = f"{column}_floats", f"{column}_integers"
        with store_errors(self.folder, "written"):  # LanceDB has no cast from integers to floats
            self._table.add_columns({floats: f"CAST(`{column}` AS DOUBLE)"})
            self._table.alter_columns({"path": column, "rename": integers}, {"path": floats, "rename": column})
            self._table.drop_columns([integers])
        return True

    def merge(self, rows: pa.Table) -> None:
        """Write all rows of some documents in one commit, replacing all rows with the same ids."""
        ids = sql_in("id", rows["id"].unique().to_pylist())
        with store_errors(self.folder, "written"):
            if self._table.count_rows(ids):
                merge = self._table.merge_insert(["id", "part"]).when_matched_update_all().when_not_matched_insert_all()
                merge.when_not_matched_by_source_delete(ids).execute(rows)
            else:  # faster than a merge, whose time grows with the table
                self._table.add(rows)
            self._join_files()

    def delete(self, ids: Sequence[str]) -> None:
        """Delete all rows of documents."""
        with store_errors(self.folder, "written"):
            for start in range(0, len(ids), _MAX_VALUES):
                self._table.delete(sql_in("id", ids[start : start + _MAX_VALUES]))
                self._join_files(self._table.version % _MAX_FILES == 0)  # deletions add versions, but no files

    def tidy(self) -> None:
        """Update search indices that lack many rows.

        Rows outside an index are still found, but more slowly, and BM25 ignores them when it weights words. An index is
        rebuilt if most rows are new, since LanceDB would keep partitions learned from only a few rows, or if it has too
        few or too many partitions.
        """
        with store_errors(self.folder, "written"):
            rows, unindexed = self._table.count_rows(), 0
            for column, name in _INDICES.items():
                stats = self._table.index_stats(name)
                if stats is None and (column == "terms" or rows < APPROXIMATE_FROM):
                    continue
                if stats is None or stats.num_unindexed_rows > stats.num_indexed_rows or self._outgrows(column, rows):
                    self._make_index(column)
                else:
                    unindexed = max(unindexed, stats.num_unindexed_rows)
            self._join_files(unindexed > min(_FEW, rows * _UNINDEXED))

    def _join_files(self, now: bool = False) -> None:
        """Join small files, update the search indices and remove old versions, if there are many files or ``now``.

        This takes the same time however many rows are new, so it is done once for many commits.
        """
        table = self._table
        small_files = table.stats()["fragment_stats"]["num_small_fragments"]
        if now or small_files > min(_MAX_FILES, max(_MIN_FILES, partition_size(table.count_rows()))):
            table.optimize(cleanup_older_than=_OLD)
            # Reopened, because the old table object keeps the files of old indices open.
            self._table = open_database(self.folder, exclusive=True).open_table(TABLE)

    def _outgrows(self, column: str, rows: int) -> bool:
        """Return whether a vector index has too few or too many partitions, or too many segments."""
        if column != "vector":
            return False
        index = next(index for index in self._table.list_indices() if index.name == _INDICES[column])
        planned_rows = (2 * (index.index_details or {}).get("target_partition_size", 0)) ** 2
        return not planned_rows / 2 < rows < planned_rows * 2 or index.num_segments >= _MAX_SEGMENTS

    def _make_index(self, column: str) -> None:
        kinds = require("lancedb.index", "index", "indexes")
        size = partition_size(self._table.count_rows())
        configs = {
            "terms": kinds.FTS(  # documents and queries are already split into terms
                base_tokenizer="whitespace", max_token_length=None, lower_case=False, stem=False,
                remove_stop_words=False, ascii_folding=False,
            ),
            # Uncompressed vectors, so that cosines are exact.
            "vector": kinds.IvfFlat(distance_type="cosine", target_partition_size=size),
            "searched": kinds.Bitmap(),  # without it, each search spends half of its time reading the column
        }  # fmt: skip
        self._table.create_index(column, config=configs[column], replace=True, name=_INDICES[column])

    def count(self, where: str = "part = 0") -> int:
        """Count the rows that meet a condition (default: the documents)."""
        with store_errors(self.folder, "read"):
            return int(self._table.count_rows(where))

    def rows(self, where: str, columns: Sequence[str], limit: int | None = None) -> pa.Table:
        """Read columns of the rows that meet a condition, or of the first ``limit`` ones."""
        with store_errors(self.folder, "read"):
            return self._table.search().where(where).select(list(columns)).limit(limit).to_arrow()

    def find_rows(self, column: str, values: Sequence[str], columns: Sequence[str], where: str = "true") -> pa.Table:
        """Read columns of the rows whose ``column`` has one of several values."""
        groups = [values[start : start + _MAX_VALUES] for start in range(0, len(values), _MAX_VALUES)] or [[]]
        return pa.concat_tables(self.rows(f"{where} AND {sql_in(column, group)}", columns) for group in groups)

    def ids(self) -> list[str]:
        """Return the ids of all documents, sorted."""
        return sorted(self.rows("part = 0", ["id"])["id"].to_pylist())

    def similar_ids(self, text: str) -> list[str]:
        """Return up to :data:`_SIMILAR` ids that begin and end like a text, in any case, or any if there are none.

        This takes about 20 ms for 100,000 ids; a comparison with each of them would take a second.
        """
        lower, size, ids = text.lower(), len(text.lower()), list[str]()
        at_the_ends, inside = [(0, 2), (size - 2, size)], [(size * k // 4, size * (k + 1) // 4) for k in range(4)]
        for changes in at_the_ends, inside, [(0, size)]:
            pairs = ((sql_text(lower[: max(0, start)]), sql_text(lower[end:])) for start, end in changes)
            where = " OR ".join(f"starts_with(lower(id), {a}) AND ends_with(lower(id), {b})" for a, b in pairs)
            ids = ids or self.rows(f"part = 0 AND ({where})", ["id"], _SIMILAR)["id"].to_pylist()
        return sorted(ids)

    def nearest_many(
        self, vectors: NDArray[np.float32], where: str, top_k: int | None = None, threshold: float | None = None
    ) -> list[Nearest]:
        """Return the documents nearest to each vector, nearest first.

        One LanceDB call searches for all vectors; if a vector gets too few documents, it is searched for again with a
        higher limit.
        """
        nearest: list[Nearest] = [{} for _ in vectors]
        pending, total = np.arange(len(vectors)), self.count("true")
        limit = max(1, total if top_k is None else top_k)
        is_approximate = top_k is not None and total >= APPROXIMATE_FROM
        probes = probe_count(total, self.count(where), limit) if is_approximate else total
        while len(pending):
            rows = self._nearest_rows(vectors[pending], where, limit, threshold, None if top_k is None else probes)
            if "query_index" not in rows.column_names:  # LanceDB numbers queries only if there are several
                rows = rows.append_column("query_index", pa.array(np.zeros(len(rows), dtype=np.int32)))
            row_counts = np.bincount(rows["query_index"].to_numpy(), minlength=len(pending))
            rankings: list[Nearest] = [{} for _ in pending]
            columns = [rows[name].to_pylist() for name in ("query_index", "id", "part", "_distance")]
            for position, doc_id, part, distance in zip(*columns, strict=True):
                rankings[position].setdefault(doc_id, (1 - distance, part))
            incomplete = []
            for number, ranking, row_count in zip(pending, rankings, row_counts, strict=True):
                if top_k is None or len(ranking) >= top_k or (row_count < limit and probes == total):
                    nearest[number] = dict(sorted(ranking.items(), key=lambda item: (-item[1][0], item[0]))[:top_k])
                else:  # several rows belong to one document, or the filter leaves few rows near the query
                    incomplete.append(number)
            pending = np.array(incomplete, dtype=np.int64)
            limit, probes = limit * 4, _or_all(probes * 4, total)
        return nearest

    def _nearest_rows(
        self, vectors: NDArray[np.float32], where: str, limit: int, threshold: float | None, probes: int | None
    ) -> pa.Table:
        with store_errors(self.folder, "read"):
            query = self._table.search(vectors, vector_column_name="vector").distance_type("cosine").where(where)
            if threshold is not None:
                query = query.distance_range(upper_bound=1 - threshold + _ROUNDING)
            query = query.bypass_vector_index() if probes is None else query.nprobes(probes)
            return query.select(["id", "part", "_distance"]).limit(limit).to_arrow()

    def bm25_scores(self, terms: Mapping[str, float], where: str, top_k: int) -> dict[str, float]:
        """Return the BM25 scores of the documents with any of the weighted terms, best first."""
        if not terms:
            return {}
        lance, by_weight = require("lancedb.query", "index", "indexes"), defaultdict[float, list[str]](list)
        for term, weight in terms.items():
            by_weight[weight].append(term)
        clauses = [lance.MatchQuery(" ".join(group), "terms", boost=weight) for weight, group in by_weight.items()]
        optional = [(lance.Occur.SHOULD, clause) for clause in clauses]
        query = lance.BooleanQuery(optional) if len(clauses) > 1 else clauses[0]
        with store_errors(self.folder, "read"):
            query = self._table.search(query, query_type="fts").where(where)
            rows = query.select(["id", "_score"]).limit(top_k).to_arrow()
        scores = zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True)
        return dict(sorted(scores, key=lambda item: (-item[1], item[0])))

    def table(self, columns: Sequence[str] | None = None, ids: Sequence[str] | None = None) -> pa.Table:
        """Return documents as a table; see :meth:`simlte_st.search.Index.table`."""
        names = ["text", "tokens", "vector", *self.metadata().names] if columns is None else columns
        names = list(dict.fromkeys(["id", *names]))
        rows = self.rows("part = 0", names) if ids is None else self.find_rows("id", ids, names, "part = 0")
        return rows.sort_by("id")

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """Return documents with their metadata, in the order of the ids."""
        rows = self.table(["text", *self.metadata().names], ids).to_pylist()
        documents = {row["id"]: Document(row.pop("id"), row.pop("text"), metadata=row) for row in rows}
        if missing := [doc_id for doc_id in ids if doc_id not in documents]:
            raise DataError(f"{self.folder} has no document with the id {missing[0]!r}.")
        return [documents[doc_id] for doc_id in ids]

    def passages(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of passages by document id, each of shape ``[passages, dimension]``."""
        rows = self.find_rows("id", ids, ["id", "part", "vector"], "part > 0")
        rows = rows.sort_by([("id", "ascending"), ("part", "ascending")])
        names, starts = np.unique(rows["id"].to_numpy(), return_index=True)
        vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(-1, rows.field("vector").type.list_size)
        return dict(zip(names.tolist(), np.split(vectors, starts[1:]), strict=False))  # no array for no document

    def check_filter(self, where: str) -> str:
        """Check a user's filter and return it in parentheses; LanceDB ignores text after the first condition."""
        where = to_nfc(where)
        unquoted = _QUOTED.sub(" ", where)
        depths = np.cumsum([(sign == "(") - (sign == ")") for sign in unquoted] or [0])
        if any(sign in unquoted for sign in (";", "--", "/*", "'")) or depths.min() < 0 or depths[-1]:
            problem = "it must be one condition, with every quote and parenthesis closed"
        else:
            condition = f"({typed_literals(where, self._table.schema)})"
            try:
                self._table.count_rows(condition)
                return condition
            except (ValueError, RuntimeError, OSError) as error:
                problem = explain_filter_error(error)
        raise ConfigurationError(
            f"The filter {where!r} cannot be used: {problem}. Write an SQL condition with text in single quotes, "
            f"such as \"year > 2010 AND kind = 'news'\". The columns are: {list_names(['id', *self.metadata().names])}."
        )


def partition_size(rows: int) -> int:
    """Return the number of rows per partition, for about ``2 * sqrt(rows)`` partitions.

    By default, LanceDB makes one partition per 4,096 rows, and its ``optimize`` merges smaller ones unless the index
    has a ``target_partition_size``.
    """
    return max(1, round(sqrt(rows) / 2))


def probe_count(rows: int, matching: int, nearest: int) -> int:
    """Return the number of partitions to search.

    A filter leaves fewer rows in each partition, so more partitions are searched, to compare the same number of rows.
    """
    return _or_all(ceil(PROBES * rows / max(1, matching) * sqrt(max(1.0, nearest / _FEW))), rows)


def _or_all(partitions: int, rows: int) -> int:
    """Return ``partitions``, or ``rows`` if that is nearly all of the partitions."""
    return partitions if partitions < rows // partition_size(rows) else rows


def open_database(folder: Path, exclusive: bool = False) -> Any:
    """Connect to LanceDB in an index folder; ``exclusive`` if no other process can write in the meantime."""
    # LanceDB logs straight to standard error, bypassing Python, and warns of deprecations.
    os.environ.setdefault("LANCEDB_LOG", "error")
    # With an interval of 0, searches see the writes of other processes at once.
    interval = None if exclusive else timedelta(0)
    # An absolute path, because LanceDB would expand a "~" in a relative one.
    return require("lancedb", "index", "indexes").connect(folder.absolute(), read_consistency_interval=interval)
