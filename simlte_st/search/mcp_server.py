"""Offer an index to agents over the Model Context Protocol (``simlte mcp``), with three tools that only read.

Tools take ids and texts, never paths, and their output is bounded. The docstring of a tool is what the agent reads.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from math import isfinite
from typing import Annotated, Any

from annotated_types import Interval
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from simlte_st import __version__
from simlte_st.errors import DataError, SimlteError, format_count
from simlte_st.models.names import RerankerSource
from simlte_st.search.hits import Hit, shorten
from simlte_st.search.index import Index

EXCERPT = 8_000
"""Maximum number of characters that ``read`` returns of a document."""

PASSAGE = 1_000
"""Maximum number of characters of a hit's passage."""

COLUMNS, VALUE = 16, 200
"""Maximum number of metadata columns per document, and of characters per value."""

HitCount = Annotated[int, Interval(ge=1, le=30)]
Offset = Annotated[int, Interval(ge=0)]


class IndexTools:
    """The tools, one call at a time, because the model and its caches are shared.

    Args:
        index: The index.
        reranker: Model for ``search(rerank=True)``, or its name or folder; agents cannot choose one.
    """

    def __init__(self, index: Index, reranker: RerankerSource | None = None) -> None:
        self._index, self._reranker, self._turn = index, reranker, threading.Lock()

    def search(
        self, query: str, top_k: HitCount = 10, where: str | None = None, rerank: bool = False
    ) -> list[dict[str, Any]]:
        """Find documents by meaning and by words, best first, each with its best passage.

        Args:
            query: A question, a description or a few words.
            top_k: Maximum number of documents.
            where: SQL condition on the id and the metadata columns, such as year > 2010 AND kind = 'news'.
            rerank: Whether a more accurate model rereads the first hits, which takes longer.
        """
        with self._call():
            if rerank and self._reranker is None:
                raise DataError("This server cannot rerank: it was started without a reranker. Use rerank=false.")
            model = self._reranker if rerank else None
            return [*map(self._hit, self._index.search(query, top_k=top_k, where=where, rerank=model))]

    def read(self, id: str, passage: str | None = None, start: Offset = 0) -> dict[str, Any]:
        """Read a document, or the part of a long one around a passage; end is the offset at which to read on.

        Args:
            id: Id of the document, from a hit.
            passage: Passage of a hit, to read the text around it.
            start: Offset in characters at which to begin.
        """
        with self._call():
            [document] = self._index.documents([id])
            text = document.text
            if passage is not None:
                start = max(0, _find(passage, text, id) - EXCERPT // 4)
            end = min(len(text), start + EXCERPT)
            place = {"start": start, "end": end, "length": len(text), "text": text[start:end]}
            return {"id": id, **place, "metadata": _brief_values(document.metadata or {})}

    def similar(self, id: str, top_k: HitCount = 10, where: str | None = None) -> list[dict[str, Any]]:
        """Find the documents most similar to a document, best first.

        Args:
            id: Id of the document, from a hit.
            top_k: Maximum number of documents.
            where: SQL condition, as for search.
        """
        with self._call():
            self._index.documents([id])  # link also accepts paths
            return [*map(self._hit, self._index.link([id], top_k=top_k, where=where))]

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Admit one call at a time, and pass our errors on to the agent."""
        with self._turn:
            try:
                yield
            except SimlteError as error:
                raise ToolError(str(error)) from error

    def _hit(self, hit: Hit) -> dict[str, Any]:
        passage = shorten(hit.passage or hit.beginning, PASSAGE)
        scores = {"score": hit.score, "cosine": hit.cosine, "bm25": hit.bm25, "reranked": hit.reranked}
        scores = {name: round(score, 4) for name, score in scores.items() if score is not None}
        return {"id": hit.id, "title": hit.title, "passage": passage, **scores, "metadata": _brief_values(hit.metadata)}


def _find(passage: str, text: str, doc_id: str) -> int:
    """Return the offset of a passage in a text, in which white space may differ."""
    words = passage.removesuffix(" …").split()
    if not words or (match := re.search(r"\s+".join(map(re.escape, words)), text)) is None:
        raise DataError(f"{doc_id!r} does not contain this passage: pass a passage of a hit, or start=.")
    return match.start()


def _brief_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first columns that have values; dates and long values as short texts."""

    def short(value: object) -> object:
        is_number = isinstance(value, (int, float)) and isfinite(value)  # JSON has no NaN or infinity
        return value if is_number else shorten(str(value), VALUE)

    return dict(islice(((name, short(value)) for name, value in metadata.items() if value is not None), COLUMNS))


def make_server(index: Index, reranker: RerankerSource | None = None) -> MCPServer:
    """Return an MCP server with the tools for an index."""
    columns = ", ".join(islice(index.columns, COLUMNS)) or "none"
    about = f"{format_count(len(index), 'document')} to search, read and compare. Metadata columns: {columns}."
    name = f"simlte: {index.folder.resolve().name}"
    server = MCPServer(name, instructions=about, version=__version__, log_level="WARNING")
    tools, hints = IndexTools(index, reranker), ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in (tools.search, tools.read, tools.similar):
        server.add_tool(tool, description=inspect.getdoc(tool), annotations=hints)
    return server
