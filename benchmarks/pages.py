"""Rebuild the pages of results from their JSON files.

    python -m benchmarks.pages

The module of a benchmark has ``page(record) -> str``; :data:`PAGES` names the modules. ``benchmarks.bank.page``
writes the two pages of the bank.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.records import RESULTS, environment_lines
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import atomic_path, read_json, to_json, write_json

PAGES = {
    "ast": "benchmarks.linking.page",
    "citation": "benchmarks.citation",
    "corpus_size": "benchmarks.corpus_size",
    "encode_rates": "benchmarks.encode_rates",
    "index_scale": "benchmarks.index_scale",
    "languages": "benchmarks.languages",
    "longformer": "benchmarks.longformer",
    "longformer_lengths": "benchmarks.longformer_lengths",
    "models": "benchmarks.models",
    "own_documents": "benchmarks.own_documents",
    "paper": "benchmarks.grid.page",
    "search": "benchmarks.search",
    "speed": "benchmarks.speed",
    "star_transformer": "benchmarks.star_transformer",
    "static": "benchmarks.static",
    "ta_sbert": "benchmarks.nli.page",
    "training": "benchmarks.training",
}
"""The module with the page of each file, including files with a suffix such as ``index_scale_60000``."""


def document(*blocks: str, machines: Iterable[Mapping[str, Any]] = (), command: str = "") -> str:
    """Return a page of blocks, a list of machines and versions, and the command."""
    parts = [*blocks, "\n".join(environment_lines(machines)), f"    {command}" if command else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def explanation(doc: str | None) -> str:
    """Return the docstring of a benchmark without its title and commands."""
    return (doc or "").split("\n\n", 2)[2].strip()


def table(rows: Iterable[Mapping[str, str]]) -> str:
    """Return a Markdown table of rows, given as cells by column; the first column names the row.

    Rows with nothing but a name and columns without cells are dropped.
    """
    filled = [list(row.items()) for row in rows if any(list(row.values())[1:])]
    named = dict.fromkeys(column for row in filled for number, (column, cell) in enumerate(row) if cell or not number)
    header = [column for column in dict.fromkeys(column for row in filled for column, _ in row) if column in named]
    return markdown_table(header, [[dict(row).get(column, "") for column in header] for row in filled])


def render(name: str, record: Mapping[str, Any]) -> str:
    """Return the page of a record by the name of its file."""
    stem = max((each for each in PAGES if name == each or name.startswith(f"{each}_")), key=len)
    page: str = importlib.import_module(PAGES[stem]).page(record)
    return page


def write_results(name: str, record: Mapping[str, Any], folder: Path | None = None, aloud: bool = True) -> None:
    """Write a record and its page to ``NAME.json`` and ``NAME.md``, and print the page."""
    folder = folder or RESULTS
    write_json(folder / f"{name}.json", record)
    write_page(name, render(name, json.loads(to_json(record))), folder, aloud)


def write_page(name: str, page: str, folder: Path, aloud: bool = True) -> None:
    """Write a page and print it."""
    with atomic_path(folder / f"{name}.md") as path:
        path.write_text(page, encoding="utf-8")
    if aloud:
        print(page, end="")


def records(folder: Path = RESULTS) -> list[Path]:
    """Return the JSON files with a page of their own."""
    found = sorted(folder.rglob("*.json"))
    return [path for path in found if path.with_suffix(".md").exists() and path.stem not in ("recipe", "verdict")]


def main() -> None:
    for path in records():
        write_page(path.stem, render(path.stem, read_json(path)), path.parent, aloud=False)
        print(path.with_suffix(".md"))


if __name__ == "__main__":
    main()
