"""Incomplete or damaged indices give an error that names the index, or the same results as before."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.errors import StoreError
from simlte_st.search import Index

DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
}


def found(folder: Path, model: SentenceTransformer, query: str) -> list[Any]:
    index = Index.open(folder, model)
    hits = [index.search(query, mode=mode, explain=True) for mode in ("dense", "text", "hybrid")]
    return [[*map(repr, each)] for each in (*hits, index.link(["d2"], top_k=5))] + [index.table().to_pydict()]


def test_damaged_files_raise_or_do_not_change_results(
    parted: Index, corpus: list[Document], model: SentenceTransformer, tmp_path: Path
) -> None:
    parted.delete(["d7"])
    query, half = corpus[3].text[:100], tmp_path / "half"
    before = found(parted.folder, model, query)
    kinds: dict[tuple[str, str], Path] = {}  # the newest of each kind, as older ones may be unused
    for path in sorted(parted.folder.rglob("*"), key=lambda path: path.stat().st_mtime_ns):
        if path.is_file() and path.parent.name != "_transactions":
            kinds[path.suffix, path.name if "_indices" in path.parts else path.parent.name] = path
    refused, told = set(), []
    for path, name in itertools.product(kinds.values(), DAMAGES):
        if name == "missing" and path.suffix in (".manifest", ".json"):
            continue  # LanceDB opens the previous version, and words are recounted
        shutil.copytree(parted.folder, half)
        DAMAGES[name](half / path.relative_to(parted.folder))
        try:
            assert found(half, model, query) == before, (name, path)
        except StoreError as error:
            told.append(str(error))
            refused.add(path.suffix)
        shutil.rmtree(half)
    assert refused >= {".lance", ".manifest", ".json"}, refused
    assert all(str(half) in each for each in told)


@pytest.mark.parametrize("name", ["settings.json", "punkt.json", "words.json"])
def test_damaged_json_is_an_error(index: Index, corpus: list[Document], model: SentenceTransformer, name: str) -> None:
    for content in ("", '{"format": 3, "mod', "[]"):
        (index.folder / name).write_text(content)
        with pytest.raises(StoreError, match=name):
            Index.open(index.folder, model).search(corpus[0].text, explain=True)
