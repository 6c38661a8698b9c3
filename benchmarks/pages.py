"""The pages of results, each made of its JSON file alone.

    python -m benchmarks.pages      # make the pages of benchmarks/results anew

The module of a benchmark has ``page(record) -> str``; :data:`PAGES` names it. The pages of the bank and of the models
also need what is too large for their JSON, and are made by their benchmarks.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.records import RESULTS, environment_lines
from simlte_st.files import atomic_path, read_json, to_json, write_json

PAGES = {
    "ast": "benchmarks.linking.page",
    "citation": "benchmarks.citation",
    "corpus_size": "benchmarks.corpus_size",
    "encode_engines": "benchmarks.encode_engines",
    "encode_rates": "benchmarks.encode_rates",
    "export": "benchmarks.export",
    "first_hour": "benchmarks.first_hour",
    "first_seconds": "benchmarks.first_seconds",
    "index_links": "benchmarks.index_links",
    "index_parts": "benchmarks.index_parts",
    "index_rerank": "benchmarks.index_rerank",
    "index_scale": "benchmarks.index_scale",
    "languages": "benchmarks.languages_page",
    "longformer": "benchmarks.longformer",
    "longformer_lengths": "benchmarks.longformer_lengths",
    "lsa": "benchmarks.lsa",
    "mails": "benchmarks.mails",
    "near_duplicates": "benchmarks.near_duplicates",
    "own_documents": "benchmarks.own_documents",
    "paper": "benchmarks.grid.page",
    "soak": "benchmarks.soak",
    "speed": "benchmarks.speed",
    "star_transformer": "benchmarks.star_transformer",
    "starvation": "benchmarks.starvation",
    "static_speed": "benchmarks.static_speed",
    "static": "benchmarks.static_page",
    "static_start": "benchmarks.static_start",
    "ta_sbert": "benchmarks.nli.page",
    "topics": "benchmarks.topics",
    "training": "benchmarks.training",
}
"""The module that has the page of each file, or of files whose names go on, as ``index_scale_60000``."""


def document(*blocks: str, machines: Iterable[Mapping[str, Any]] = (), command: str = "") -> str:
    """Return a page: blocks, then machines and versions as a list, then the command, with empty lines between them."""
    parts = [*blocks, "\n".join(environment_lines(machines)), f"    {command}" if command else ""]
    return "\n\n".join(part for part in parts if part) + "\n"


def explanation(doc: str | None) -> str:
    """Return what the docstring of a benchmark says behind its title and its commands."""
    return (doc or "").split("\n\n", 2)[2].strip()


def render(name: str, record: Mapping[str, Any]) -> str:
    """Return the page of a record, which is that of a file of this name."""
    stem = max((each for each in PAGES if name == each or name.startswith(f"{each}_")), key=len)
    page: str = importlib.import_module(PAGES[stem]).page(record)
    return page


def write_results(name: str, record: Mapping[str, Any], folder: Path | None = None, aloud: bool = True) -> None:
    """Write a record and the page that it makes, ``NAME.json`` and ``NAME.md``, and print the page."""
    folder = folder or RESULTS
    write_json(folder / f"{name}.json", record)
    write_page(name, render(name, json.loads(to_json(record))), folder, aloud)


def write_page(name: str, page: str, folder: Path, aloud: bool = True) -> None:
    """Write a page, and print it."""
    with atomic_path(folder / f"{name}.md") as path:
        path.write_text(page, encoding="utf-8")
    if aloud:
        print(page, end="")


def records(folder: Path = RESULTS) -> list[Path]:
    """Return the JSON files that a page can be made of."""
    found = sorted(folder.rglob("*.json"))
    return [
        path for path in found if path.with_suffix(".md").exists() and path.stem not in ("models", "recipe", "verdict")
    ]


def main() -> None:
    for path in records():
        write_page(path.stem, render(path.stem, read_json(path)), path.parent, aloud=False)
        print(path.with_suffix(".md"))


if __name__ == "__main__":
    main()
