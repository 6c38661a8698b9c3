"""Arguments and output that the commands of the analyses share."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.papers.reading import TokenizedText
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.errors import ConfigurationError, SimlteError
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import check_apart, check_place, to_json, write_json

FILES = ("output", "bars", "heatmap", "lines")
"""Options that name a file of results."""


def make_parser(
    description: str | None, *, documents: str | None = "+", models: bool = True
) -> argparse.ArgumentParser:
    """Return a parser; ``documents`` is how many sources it takes, as argparse's ``nargs``, None for no sources."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if documents:
        parser.add_argument(
            "source", metavar="SOURCE", nargs=documents, help="files, folders or data sets of documents"
        )
        parser.add_argument("--text-column", metavar="NAME", help="column of the text")
        parser.add_argument("--id-column", metavar="NAME", help="column of the ids")
        parser.add_argument("--encoding", default="utf-8", help="encoding of text files (default: %(default)s)")
        parser.add_argument("--limit", type=int, metavar="N", help="use no more than N documents")
        parser.add_argument("--output", metavar="FILE.json", help="write the results there too")
    if models:
        parser.add_argument("--model", required=True, metavar="MODEL", help="folder or name of a model")
        parser.add_argument("--compare", metavar="MODEL", help="another one, such as what training made of it")
        parser.add_argument("--batch-size", type=int, default=8, metavar="N", help="default: %(default)s")
    parser.add_argument("--overwrite", action="store_true", help="replace files of results")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="show no progress bars")
    return parser


def add_tagger(parser: argparse.ArgumentParser) -> None:
    """Add the options of analyses of parts of speech."""
    parser.add_argument(
        "--pipeline", default="en_core_web_sm", metavar="NAME", help="spaCy pipeline (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the intervals (default: %(default)s)")


@contextmanager
def short_errors() -> Iterator[None]:
    """End the command with the message of an error of ours, without a traceback."""
    try:
        yield
    except SimlteError as error:
        raise SystemExit(str(error)) from None


def check_files(options: argparse.Namespace) -> None:
    """Check that the files of results can be written without losing anything, before work begins."""
    for path in [Path(file) for name in FILES if (file := getattr(options, name, None))]:
        check_apart(getattr(options, "source", []), path)
        check_place(path)
        if path.exists() and not (options.overwrite and path.is_file()):
            raise ConfigurationError(f"{path} exists already: choose another file, or replace a file with --overwrite.")


def open_documents(options: argparse.Namespace) -> DocumentReader:
    """Open the documents."""
    names = ("text_column", "id_column", "encoding", "limit")
    return read_documents(options.source, **{name: getattr(options, name) for name in names})


def model_names(options: argparse.Namespace) -> list[str]:
    """Name the models to analyse, each once."""
    return list(dict.fromkeys(name for name in (options.model, options.compare) if name))


def columns() -> int:
    """Return the width of the terminal."""
    return max(40, shutil.get_terminal_size().columns)


def token_table(name: str, read: TokenizedText, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out numbers for each token of a text in a model; what the model does not read is noted on standard error."""
    for line in read.notes(name):
        print(line, file=sys.stderr)
    cells = [[token, *row] for token, row in zip(read.tokens, rows, strict=True)]
    return f"{name}\n{markdown_table(['token', *header], cells)}"


def report(
    options: argparse.Namespace, text: str, values: Mapping[str, Any], reader: DocumentReader | None = None
) -> None:
    """Print the results, and write them to the file of results."""
    if reader is not None:
        print(reader.report.summary(), file=sys.stderr)
        values = {"data": options.source[0] if len(options.source) == 1 else options.source, **values}
    print(to_json(values) if options.json else text)
    if getattr(options, "output", None):
        write_json(options.output, values)
