"""What an index holds: its documents, as a table or one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from simlte_st.data.document import Document
from simlte_st.errors import DataError
from simlte_st.index.store import Store


def read_table(store: Store, columns: Sequence[str] | None, ids: Sequence[str] | None) -> pa.Table:
    """Return documents as a table; see :meth:`simlte_st.index.Index.table`."""
    wanted = ["text", "tokens", "vector", *store.metadata().names] if columns is None else columns
    wanted = list(dict.fromkeys(["id", *wanted]))
    rows = store.rows("part = 0", wanted) if ids is None else store.rows_of("id", ids, wanted, "part = 0")
    return rows.sort_by("id")


def read_documents(store: Store, ids: Sequence[str]) -> list[Document]:
    """Return documents with their metadata, in the order of the ids.

    Raises:
        DataError: One is not in the index.
    """
    names = store.metadata().names
    rows = read_table(store, ["text", *names], ids).to_pylist()
    documents = {row["id"]: Document(row["id"], row["text"], metadata={n: row[n] for n in names}) for row in rows}
    for name in ids:
        if name not in documents:
            raise DataError(f"{store.folder} has no document with the id {name!r}.")
    return [documents[name] for name in ids]
