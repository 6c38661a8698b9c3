from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document, read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.models import device
from simlte_st.models.parts import Part, PartEncoder
from simlte_st.search import Index, encoder
from simlte_st.search.add import VECTORS_FOLDER
from simlte_st.search.store import Store


def test_documents_are_stored_with_vectors_and_metadata(index: Index, corpus: list[Document], model: Any) -> None:
    assert len(index) == len(corpus)
    assert index.documents(["d3", "d1"]) == [corpus[3], corpus[1]]
    vectors = index._store.rows("id = 'd3'", ["vector"])["vector"].to_pylist()
    expected = model.encode([corpus[3].text], normalize_embeddings=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    with pytest.raises(DataError, match="'nowhere'"):
        index.documents(["d3", "nowhere"])


def test_nothing_is_encoded_twice(index: Index, corpus: list[Document], encoded: list[str]) -> None:
    assert re.match(r"0 .* 0 replaced, 0 removed, 10 unchanged; 0 texts", index.add(corpus).summary())
    report = index.add([replace(corpus[2], id="copy"), replace(corpus[3], metadata={"year": 1900, "kind": "odd"})])
    assert encoded == []
    assert (report.added, report.replaced, report.reused, report.documents) == (1, 1, 2, 11)
    assert index.documents(["d3"])[0].metadata == {"year": 1900, "kind": "odd"}
    report = index.add([replace(corpus[2], text="ba bun bis"), replace(corpus[4], id="twice")] * 2)
    assert encoded == ["ba bun bis"]
    assert (report.added, report.replaced, report.documents) == (3, 1, 14)  # the reader calls the second ones #2
    assert index.documents(["d2", "d2#2", "twice#2"])[0].text == "ba bun bis"
    assert (index.delete(["d2", "nowhere", "twice"]), len(index)) == (2, 12)


def test_model_is_loaded_only_for_new_texts_or_files(
    encoder_path: Path, corpus: list[Document], tmp_path: Path
) -> None:
    model, place = shutil.copytree(encoder_path, tmp_path / "model"), tmp_path / "index"
    Index.create(place, model).add(corpus)
    for documents, is_loaded in [(corpus, False), ([replace(corpus[2], metadata={"year": 1})], False), (corpus, True)]:
        if is_loaded:
            (model / "config.json").touch()
        index = Index.create(place, model, exist_ok=True)
        assert (index.add(documents).truncation.cut_texts, index._encoder is not None) == (10, is_loaded)
    assert Index.create(place, model, exist_ok=True)._encoder is None, "the new times of the files are kept"
    assert Index.open(place).add([Document("new", "Ba bun.")]).encoded == 1


def test_passages_are_whole_sentences_within_the_length(
    parted: Index, corpus: list[Document], encoded: list[str]
) -> None:
    rows = parted._store.rows("id = 'd4'", ["part", "searched", "tokens", "text", "passage"]).to_pylist()
    rows.sort(key=lambda row: row["part"])
    assert [row["searched"] for row in rows] == [False, True, True]
    assert [row["text"] is None for row in rows] == [False, True, True]
    assert " ".join(row["passage"] for row in rows[1:]) == corpus[4].text
    assert all(row["tokens"] <= 62 for row in rows[1:])
    assert all(row["passage"].endswith(".") for row in rows[1:])
    longer = corpus[4].text + " Bis bun."
    report = parted.add([replace(corpus[4], text=longer)])
    assert encoded == [longer, longer.removeprefix(rows[1]["passage"]).strip()]  # the first passage is unchanged
    assert report.truncation.cut_texts == 0
    shorter = parted.add([replace(corpus[4], text="Bis bun.")])
    assert shorter.vectors == 19  # no passage of the longer text remains
    assert [row["part"] for row in parted._store.rows("id = 'd4'", ["part"]).to_pylist()] == [0]


def test_integers_become_floats_where_fractions_follow(index: Index, documents: list[str]) -> None:
    index.add([Document("late", documents[20], metadata={"year": 2020.5})])
    assert index.table(["year"])["year"].to_pylist() == [*map(float, range(2000, 2010)), 2020.5]
    assert [hit.id for hit in index.search(documents[20], where="year > 2009 AND year < 1e9")] == ["late"]
    assert index.columns == ["kind", "year"]
    index.add([Document("huge", documents[21], metadata={"number": 2**53 + 1})])
    report = index.add([Document("later", documents[22], metadata={"number": 0.5})])
    assert (report.misfits, index.table(["number"], ["huge"])["number"].to_pylist()) == ({"number": 1}, [2**53 + 1])


def test_odd_ids(index: Index, documents: list[str]) -> None:
    for name in ("it's", 'a\\b/"c"', "../über/文.txt", "'; DROP TABLE documents; --", "%_", "a\nb"):
        index.add([Document(name, documents[20])])
        index.add([Document(name, documents[21])])
        assert index.documents([name])[0].text == documents[21]
        assert index.search(documents[21], top_k=1)[0].id == name
        assert name not in {hit.id for hit in index.link(name, top_k=11)}
        assert (index.delete([name]), len(index)) == (1, 10)


def test_sync_keeps_unreadable_files(model: SentenceTransformer, tmp_path: Path, monkeypatch: Any) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "gone.txt", "sub/d.txt", "subject.txt"):
        (files / name).parent.mkdir(exist_ok=True)
        (files / name).write_text(f"Ba bun {name}. Bis.")
    index = Index.create(tmp_path / "index", model)
    index.add(files)
    for name in ("gone.txt", "subject.txt"):
        (files / name).unlink()
    (files / "b.txt").write_bytes(b"Ba \0\0\0 bun" * 50)  # binary
    (files / "c.txt").write_text(" ")
    listed = os.scandir

    def refused(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    report = index.add(files, sync=True)
    assert (report.kept, report.removed) == (["b.txt", "c.txt", "sub/d.txt"], 2)
    assert "kept 3 documents" in report.summary()
    assert len(index.documents(["a.txt", "b.txt", "c.txt", "sub/d.txt"])) == len(index) == 4
    with pytest.raises(DataError, match=r"gone\.txt"):
        index.documents(["gone.txt"])


def test_sync_keeps_unusable_rows_with_known_ids(model: SentenceTransformer, tmp_path: Path) -> None:
    def write(*rows: Any) -> Path:
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        return path

    index = Index.create(tmp_path / "index", model)
    index.add(write(*({"id": name, "text": f"Ba bun {name}."} for name in "abcde")))
    first = {"id": "a", "text": "Ba bun a."}
    report = index.add(write(first, {"id": "b", "text": None}, {"id": "c"}, {"id": "d", "text": " "}), sync=True)
    assert (report.kept, report.removed) == (["b", "c", "d"], 1)
    report = index.add(write(first, '{"id": "b", "text": "Ba b'), sync=True)
    assert report.removed == 0, "which document the broken line was is not known"
    report = index.add(write(first), sync=True)
    assert (report.kept, len(index)) == ([], 1)
    assert [hit.id for hit in index.search("Ba bun b.")] == ["a"]
    with pytest.raises(ConfigurationError, match="leaves documents unread"):
        index.add(read_documents([first["text"]], limit=1), sync=True)


def test_rows_without_ids_are_numbered(static_model: SentenceTransformer, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,row\nBa bun.,x\n")
    (tmp_path / "rows.jsonl").write_text('{"text": "Ba bun."}\n{"text": ""}\n{"text": "Lo lim."}\n')
    for name, numbers in (("rows.jsonl", ["0", "2"]), ("rows.csv", ["x"])):
        index = Index.create(tmp_path / f"{name}.index", static_model)
        assert [index.add(tmp_path / name).added for _ in range(2)] == [len(numbers), 0]
        assert sorted(index.table(["row"])["row"].to_pylist()) == numbers


def test_several_devices_encode_before_one_process_writes(
    parted: Index,
    model: Any,
    corpus: list[Document],
    encoded: list[str],
    tmp_path: Path,
    monkeypatch: Any,
    contents: Any,
) -> None:
    pools: list[list[str]] = []
    monkeypatch.setattr(device, "device_pool", lambda model, devices: pools.append(devices) or nullcontext())
    made = Index.create(tmp_path / "made", model, parts=True)
    made.add(corpus[:2])
    encoded.clear()
    report = made.add([*corpus, replace(corpus[5], id="copy")], device=["cpu", "cpu"])
    assert (encoded, pools) == ([], [["cpu", "cpu"]])
    assert (report.added, report.documents, report.unchanged) == (9, 11, 2)
    made.delete(["copy"])
    for one, other in zip(contents(made), contents(parted), strict=True):
        assert one[:5] == other[:5]
        np.testing.assert_allclose(one[5], other[5], atol=2e-4)  # rounded to four digits
    assert not (tmp_path / "made" / VECTORS_FOLDER).exists()
    with pytest.raises(DataError, match="only be read once"):
        made.add((one for one in corpus), device=["cpu", "cpu"])


def test_encoded_texts_survive_an_interruption(
    model: SentenceTransformer, corpus: list[Document], encoded: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(encoder, "BATCH", 3)
    monkeypatch.setattr(device, "device_pool", lambda model, devices: nullcontext())  # faster, with the same result
    index, merges = Index.create(tmp_path / "made", model), []
    merge, make = Store.merge, PartEncoder.make

    def stop_at_the_second(store: Store, rows: Any) -> None:
        merges.append(rows)
        if len(merges) == 2:
            raise KeyboardInterrupt
        merge(store, rows)

    monkeypatch.setattr(Store, "merge", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        index.add(corpus, device=["cpu"])
    assert len(index) == 3
    parts: list[Part] = []
    monkeypatch.setattr(PartEncoder, "make", lambda self, part, pool: parts.append(part) or make(self, part, pool))
    changed = [*corpus[:9], replace(corpus[9], text="ba bun bis")]
    assert index.add(changed, device=["cpu"]).documents == 10
    assert [part.texts for part in parts] == [["ba bun bis"]]
    assert encoded == []
    vector = index._store.rows("id = 'd9'", ["vector"])["vector"].to_pylist()
    np.testing.assert_allclose(vector, model.encode(["ba bun bis"], normalize_embeddings=True), atol=1e-5)


def test_ids_are_normalised_like_the_reader(static_model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", static_model)
    index.add([{"id": 70 + number, "text": f"Ba bun {number}."} for number in range(3)] + [{"id": "é", "text": "Ba."}])
    assert [one.id for one in index.documents([71, "e\u0301"])] == ["71", "é"]  # type: ignore[list-item]
    assert index.passages(["71"]) == {}
    assert (index.delete("70"), len(index)) == (1, 3)
    with pytest.raises(DataError, match=r"b'72'.* not bytes"):
        index.delete(b"72")  # type: ignore[arg-type]
    assert index.table(["text"], [72])["id"].to_pylist() == ["72"]  # type: ignore[list-item]
