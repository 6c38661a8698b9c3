"""Arguments and output of the analysis commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from sentence_transformers import SentenceTransformer

from simlte_st.data import read_documents
from simlte_st.files import write_json
from simlte_st.models.loading import load_model
from simlte_st.reading.documents import DocumentReader


def make_parser(doc: str | None, *, documents: bool = True, models: bool = True) -> argparse.ArgumentParser:
    """Make the parser of a command that reads documents, models or both."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if documents:
        parser.add_argument("source", metavar="SOURCE", nargs="+", help="files, folders or data sets of documents")
        parser.add_argument("--text-column", metavar="NAME", help="column of the text")
        parser.add_argument("--limit", type=int, metavar="N", help="use at most N documents")
    if models:
        parser.add_argument("--model", required=True, metavar="MODEL", help="folder or name of a model")
        parser.add_argument("--compare", metavar="MODEL", help="another model, such as the same one after training")
    parser.add_argument("--output", metavar="FILE.json", help="write the results to this file too")
    return parser


def open_documents(options: argparse.Namespace) -> DocumentReader:
    """Open the documents."""
    return read_documents(options.source, text_column=options.text_column, limit=options.limit)


def open_models(options: argparse.Namespace) -> dict[str, SentenceTransformer]:
    """Load the models by name."""
    names = dict.fromkeys(name for name in (options.model, options.compare) if name)
    return {name: load_model(name).model.eval() for name in names}


def report(
    options: argparse.Namespace, text: str, values: Mapping[str, Any], reader: DocumentReader | None = None
) -> None:
    """Print the results, and write them to ``--output`` if given."""
    if reader is not None:
        print(reader.report.summary(), file=sys.stderr)
    print(text)
    if options.output:
        write_json(options.output, values)
