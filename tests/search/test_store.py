from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DiskFullError, ModelError, StoreError
from simlte_st.files import hold
from simlte_st.models.vectors import unit_rows
from simlte_st.search import Index, store


@pytest.mark.parametrize(
    "where",
    [
        "1=1; DROP TABLE documents",
        "year > 2003) OR (1=1",
        "year > 2003 -- year",
        "id IN (SELECT id FROM documents)",
        "kind = 'it",
        "nowhere = 3",
        "year + 1",
        "1 / (year - 2003) > 0",
        "",
    ],
)
def test_invalid_filters_are_refused(index: Index, corpus: list[Document], where: str) -> None:
    with pytest.raises(ConfigurationError, match=r"columns are: id, year, kind\.") as told:
        index.search(corpus[0].text, where=where)
    assert repr(where) in str(told.value)
    assert len(index) == 10


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("year > 2007", {"d8", "d9"}),
        ("YEAR >= 2008 AND kind = 'odd' OR id = 'd0'", {"d9", "d0"}),
        ("kind = 'it''s; (--' OR year IN (2001, 2002)", {"d1", "d2"}),
        ("year > 3000", set()),
    ],
)
def test_filters(parted: Index, corpus: list[Document], where: str, wanted: set[str]) -> None:
    query = " ".join(document.text for document in corpus)
    for mode in ("dense", "text", "hybrid"):
        assert {hit.id for hit in parted.search(query, where=where, mode=mode)} == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("approximate", [False, True])
def test_many_queries_are_searched_in_one_call(
    tmp_path: Path, approximate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store.Store.create(tmp_path, 16)
    draw = np.random.default_rng(0)
    vectors = unit_rows(draw.normal(size=(3000, 16))).astype(np.float32)
    questions = unit_rows(vectors[::300] + draw.normal(size=(10, 16)) / 10).astype(np.float32)
    made.merge(_rows(vectors, parts=3))
    if approximate:
        monkeypatch.setattr(store, "APPROXIMATE_FROM", 3000)
        made.tidy()
    best = (questions @ vectors.T).reshape(10, 1000, 3).max(axis=2)
    for where, rows in (("searched", np.arange(1000)), ("id IN ('3', '4', '700')", np.array([3, 4, 700]))):
        found = made.nearest_many(questions, where, 12)
        right = [{str(rows[i]) for i in np.argsort(-own)[:12]} for own in best[:, rows]]
        shared = [len({*each} & names) / len(names) for each, names in zip(found, right, strict=True)]
        assert np.mean(shared) > (0.97 if approximate else 0.999), "also where a filter leaves few"
        for question, each, cosines in zip(questions, found, best, strict=True):
            assert [*each] == [*made.nearest_many(question[None], where, 12)[0]]
            assert [cosine for cosine, _ in each.values()] == pytest.approx([cosines[int(n)] for n in each], abs=1e-5)
    above = made.nearest_many(questions, "searched", threshold=0.6)
    assert [{*each} for each in above] == [{str(i) for i in np.flatnonzero(own >= 0.6)} for own in best]


def _rows(vectors: NDArray[np.float32], first: int = 0, parts: int = 1) -> pa.Table:
    names = [str(row // parts) for row in range(first, first + len(vectors))]
    columns = {
        "id": names,
        "part": pa.array([row % parts for row in range(len(names))], pa.int32()),
        "hash": names,
        "tokens": pa.array([0] * len(names), pa.int32()),
        "searched": [True] * len(names),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
    }
    return pa.table(columns)


def _partitions(made: store.Store, vector: NDArray[np.float32]) -> int:
    """Count the partitions in all segments of the index: the number that a full search reads."""
    query = made._table.search(vector, vector_column_name="vector").distance_type("cosine").nprobes(10_000)
    number = re.search(r"partitions_ranked=([^,]+),", query.limit(1).analyze_plan())
    return int(number[1]) if number else 0


def test_partitions_follow_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "APPROXIMATE_FROM", 1000)
    monkeypatch.setattr(store, "_MAX_SEGMENTS", 3)
    monkeypatch.setattr(store, "_FEW", 10)  # rows that may stay unindexed
    made = store.Store.create(tmp_path, 8)
    vectors = unit_rows(np.random.default_rng(0).normal(size=(5000, 8))).astype(np.float32)

    def grow(first: int, last: int) -> int:
        made.merge(_rows(vectors[first:last], first))
        made.tidy()
        return _partitions(made, vectors[0])

    assert grow(0, 900) == 0, "all are compared"
    assert grow(900, 1600) == 80 == 2 * round(1600**0.5)
    made.tidy()
    assert _partitions(made, vectors[0]) == 80, "an index that is there is not merged to LanceDB's own number"
    assert [grow(at, at + 50) for at in (1600, 1650)] == [160, 240], "of the same partitions, a segment for what is new"
    assert grow(1700, 1750) == 83, "one segment again, where there are too many"
    assert grow(1750, 4000) == 125
    made.delete([str(row) for row in range(1500, 4000)])
    made.tidy()
    assert _partitions(made, vectors[0]) == 1500 // store.partition_size(1500) == 78


def test_index_of_another_model_is_refused(index: Index, model: SentenceTransformer, corpus: list[Document]) -> None:
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1
    again = Index.open(index.folder, model)
    with pytest.raises(ModelError, match=r"a different model .*weights: was '"):
        again.add(corpus)
    with pytest.raises(ModelError, match="a different model"):
        again.search("ba bun")
    assert len(again.search("ba bun", mode="text")) > 0  # compares no vectors
    with pytest.raises(ModelError, match="a different model"):
        Index.create(index.folder, model, exist_ok=True)


def test_index_loads_its_model_by_name(
    index: Index, encoder_path: Path, corpus: list[Document], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="model="):
        Index.open(index.folder).search("ba bun")  # its model was given without a name
    place = tmp_path / "model"
    shutil.copytree(encoder_path, place)
    Index.create(tmp_path / "named", place).add(corpus)
    assert Index.open(tmp_path / "named").search(corpus[4].text, top_k=1)[0].id == "d4"
    place.rename(tmp_path / "moved")
    with pytest.raises(ModelError, match=r"named uses this model: .*model="):
        Index.open(tmp_path / "named").search("ba bun")
    assert Index.open(tmp_path / "named", tmp_path / "moved").search(corpus[4].text, top_k=1)[0].id == "d4"


def test_model_with_dot_similarity_gives_a_warning(
    model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model.similarity_fn_name = "dot"
    Index.create(tmp_path / "index", model)
    model.append(Normalize())
    Index.create(tmp_path / "unit", model)
    assert caplog.text.count("The model's similarity is dot, but an index ranks by cosine.") == 1


def test_create_does_not_replace_existing_folders(index: Index, model: SentenceTransformer, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="already exists"):
        Index.create(index.folder, model)
    for options, made in (({"parts": True}, "with parts=False"), ({"language": "de"}, "without language=")):
        with pytest.raises(ConfigurationError, match=f"made {made}:"):
            Index.create(index.folder, model, exist_ok=True, **options)
    assert Index.create(index.folder, model, exist_ok=True).parts is False
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text.txt").write_text("ba")
    for options in ({"exist_ok": True}, {"overwrite": True}):
        with pytest.raises(ConfigurationError, match="already exists and is not an index"):
            Index.create(tmp_path / "mine", model, **options)
    assert (tmp_path / "mine" / "text.txt").read_text() == "ba"
    assert len(Index.open(index.folder, model)) == 10


def test_index_is_replaced_only_by_a_complete_one(
    index: Index, model: SentenceTransformer, static_model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError("lance error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "_make_index", full)
        with pytest.raises(DiskFullError, match=r"The index .* cannot be written: the disk is full"):
            Index.create(index.folder, static_model, overwrite=True)
    lock = hold(index.folder)
    with pytest.raises(ConfigurationError, match="is already working"):
        Index.create(index.folder, static_model, overwrite=True)
    lock.release()
    assert len(Index.open(index.folder, model)) == len(index) == 10
    assert [path.name for path in index.folder.parent.iterdir()] == ["index"]
    made = Index.create(index.folder, static_model, parts=True, overwrite=True)
    assert (len(made), made.parts) == (0, True)
    assert made.add([Document("a", "Ba bun bis.")]).documents == len(Index.open(index.folder, static_model)) == 1
    for use in (lambda: index.search("ba bun"), lambda: index.delete(["d1"])):
        with pytest.raises(StoreError, match="was replaced"):
            use()


@pytest.mark.parametrize("changed", [{"format": 99}, {"format": 1}, {"analyzer": {"version": 1}}])
def test_index_of_another_version_is_refused(index: Index, changed: Any) -> None:
    place = index.folder / "settings.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **changed}))
    with pytest.raises(StoreError, match="another version"):
        Index.open(index.folder)
    with pytest.raises(StoreError, match=r"no index at .*simlte index"):
        Index.open(index.folder.parent)
