"""``simlte link``: documents of an index that belong to others."""

from __future__ import annotations

import argparse
import json
import os
from contextlib import ExitStack
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import add_arguments
from simlte_st.cli.messages import note
from simlte_st.cli.options import add_options, config_from
from simlte_st.cli.search import add_search_options, check_columns, check_format, write_hits
from simlte_st.config import ProgressConfig
from simlte_st.errors import ConfigurationError
from simlte_st.files import valid_unicode
from simlte_st.search.config import LinkEachConfig, SearchConfig

if TYPE_CHECKING:
    from simlte_st.data.documents import DocumentReader
    from simlte_st.search import Index

_WRITTEN = 512  # query documents whose hits are written at a time


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "link",
        help="find the documents of an index that belong to given documents",
        description="Find the documents of an index that belong to given ones. Several given documents are one query; "
        "with --each every document of a source is one.",
        examples=(
            "simlte link articles.index article-17 notes.txt --top-k 20 --explain",
            "simlte link articles.index article-17 --format jsonl",
            "simlte link articles.index --each tweets.jsonl --output links.parquet",
        ),
    )
    add_arguments(parser, "index")
    parser.add_argument("documents", metavar="DOCUMENT", nargs="*", help="an id of the index, a file, or a text")
    parser.add_argument(
        "--each", metavar="SOURCE", help="documents, each a query of its own; the column seed of the hits has its id"
    )
    add_search_options(parser, SearchConfig)
    add_options(parser, ProgressConfig)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Link."""
    from simlte_st.search import Index

    if bool(arguments.documents) == bool(arguments.each):
        raise ConfigurationError("Give either documents to link or --each SOURCE.")
    check_format(arguments)
    config = config_from(arguments, SearchConfig)
    reader = _reader(config, arguments) if arguments.each else None
    index = Index.open(arguments.index, arguments.model)
    if reader is not None:
        return link_each(index, reader, config, arguments)
    check_columns(index.columns, arguments)
    documents = [each if os.path.exists(each) else valid_unicode(each) for each in arguments.documents]
    return write_hits(index.link(documents, config), arguments, index)


def _reader(config: SearchConfig, arguments: argparse.Namespace) -> DocumentReader:
    """Return what reads the documents of ``--each``."""
    from simlte_st.data.documents import read_documents
    from simlte_st.files import check_apart

    if config.explain or not arguments.output:
        raise ConfigurationError("--each needs --output FILE.parquet or FILE.jsonl, and cannot --explain.")
    check_apart(arguments.each, Path(arguments.output))
    return read_documents(arguments.each)


def link_each(index: Index, reader: DocumentReader, config: SearchConfig, arguments: argparse.Namespace) -> int:
    """Write the hits of each document of a source, with its id in the column ``seed``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from simlte_st.files import atomic_path
    from simlte_st.progress import with_progress_bar

    links = with_progress_bar(
        index.link_each(reader, config.part(LinkEachConfig)),
        "linking",
        length_hint(reader, 0),
        shown=arguments.progress,
    )
    linked = found = 0
    writer: Any = None
    with atomic_path(arguments.output) as temporary, ExitStack() as stack:
        while batch := list(islice(links, _WRITTEN)):
            table = pa.concat_tables(
                hits.to_arrow().add_column(0, "seed", pa.array([name] * len(hits), pa.string())) for name, hits in batch
            )
            if arguments.format == "jsonl":
                rows = ({"seed": name, **hit.to_dict()} for name, hits in batch for hit in hits)
                writer = writer or stack.enter_context(temporary.open("w", encoding="utf-8"))
                writer.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
            else:
                writer = writer or stack.enter_context(pq.ParquetWriter(temporary, table.schema))
                writer.write_table(table)
            linked, found = linked + len(batch), found + len(table)
    if reader.report.skipped:
        note(reader.report.summary(), arguments)
    note(f"{found:,} hits of {linked:,} documents written to {arguments.output}", arguments)
    return 0
