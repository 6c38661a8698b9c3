"""Rebuild the pages of results from their JSON files.

    python -m benchmarks.pages

The module of a benchmark has ``page(record) -> str``, which fills a template of ``benchmarks/templates`` or joins
blocks with :func:`document`. ``benchmarks.bank.page`` writes the two pages of the bank.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.records import RESULTS, environment_lines, percent, with_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.files import atomic_path, read_json, to_json, write_json

BENCHMARKS = Path(__file__).parent
PAGES = {"ast": "linking.page", "paper": "grid.page", "ta_sbert": "nli.page"}
"""Modules of pages; every other page is in the module of the same name."""

TEMPLATES = Environment(
    loader=FileSystemLoader(BENCHMARKS / "templates"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def document(*blocks: str, machines: Iterable[Mapping[str, Any]] = (), command: str = "") -> str:
    """Return a page of blocks, a list of machines and versions, and the command."""
    parts = [*blocks, environment_lines(machines), f"    {command}" if command else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def fill(template: str, **values: Any) -> str:
    """Fill a template of ``benchmarks/templates``, and reduce several blank lines to one."""
    return re.sub(r"\n{3,}", "\n\n", TEMPLATES.get_template(template).render(values).strip()) + "\n"


def explanation(doc: str | None) -> str:
    """Return the docstring of a benchmark without its title and commands."""
    return (doc or "").split("\n\n", 2)[2].strip()


def table(rows: pd.DataFrame | Iterable[Mapping[str, str]]) -> str:
    """Return a Markdown table without empty rows and columns.

    Args:
        rows: Cells by column for each row; the first column names the row. In a data frame the index names the rows,
            unless it only numbers them.
    """
    cells = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if isinstance(cells.index, pd.RangeIndex) and len(cells):
        cells = cells.set_index(cells.columns[0])
    cells = cells.astype(object).fillna("")
    cells = cells.loc[(cells != "").any(axis=1), (cells != "").any()]
    lines = [[name, *line] for name, line in zip(cells.index, cells.to_numpy().tolist(), strict=True)]
    return markdown_table([cells.index.name or "", *cells], lines) if lines else ""


def read_printed(name: str, levels: int = 1) -> pd.DataFrame:
    """Read a table that a paper prints, from ``benchmarks/printed``.

    With two levels, the columns are data set and metric in the file, metric and data set in the frame.
    """
    header = list(range(levels)) if levels > 1 else 0
    numbers = pd.read_csv(BENCHMARKS / "printed" / f"{name}.csv", header=header, index_col=0).rename_axis(None)
    return numbers.swaplevel(axis=1) if levels > 1 else numbers


def with_printed(cells: pd.DataFrame, printed: pd.DataFrame, digits: int = 1) -> pd.DataFrame:
    """Append the papers' numbers to cells, in parentheses."""
    numbers = printed.reindex_like(cells).map(f"({{:.{digits}f}})".format, na_action="ignore").astype(object).fillna("")
    return (cells.astype(object).fillna("") + " " + numbers).map(str.strip)


def retrieval_cells(systems: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return the cells of retrieval metrics by system, with their intervals."""
    metrics = {"R@10": "recall@10", "R@100": "recall@100", "MRR": "mrr"}
    rows = {name: {title: with_interval(row, key) for title, key in metrics.items()} for name, row in systems.items()}
    return pd.DataFrame(rows).T


TEMPLATES.globals["machines"] = environment_lines
TEMPLATES.filters.update(table=table, percent=percent, with_interval=with_interval, shell=shlex.join)
TEMPLATES.filters.update(commas="{:,.0f}".format, signed_percent="{:+.1%}".format)


def render(name: str, record: Mapping[str, Any]) -> str:
    """Return the page of a record by the name of its file, which may have a suffix, as in ``index_scale_60000``."""
    words = name.split("_")
    stems = ["_".join(words[:end]) for end in range(len(words), 0, -1)]
    stem = next(stem for stem in stems if stem in PAGES or (BENCHMARKS / f"{stem}.py").exists())
    page: str = importlib.import_module(f"benchmarks.{PAGES.get(stem, stem)}").page(record)
    return page


def write_results(name: str, record: Mapping[str, Any], folder: Path | None = None, verbose: bool = True) -> None:
    """Write a record and its page to ``NAME.json`` and ``NAME.md``, and print the page."""
    folder = folder or RESULTS
    write_json(folder / f"{name}.json", record)
    write_page(name, render(name, json.loads(to_json(record))), folder, verbose)


def write_page(name: str, page: str, folder: Path, verbose: bool = True) -> None:
    """Write a page and print it."""
    with atomic_path(folder / f"{name}.md") as path:
        path.write_text(page, encoding="utf-8")
    if verbose:
        print(page, end="")


def records(folder: Path = RESULTS) -> list[Path]:
    """Return the JSON files with a page of their own."""
    paths = sorted(folder.rglob("*.json"))
    return [path for path in paths if path.with_suffix(".md").exists() and path.stem not in ("recipe", "verdict")]


def main() -> None:
    for path in records():
        write_page(path.stem, render(path.stem, read_json(path)), path.parent, verbose=False)
        print(path.with_suffix(".md"))


if __name__ == "__main__":
    main()
