from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document, read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.models import encode
from simlte_st.models.parts import Part, PartEncoder
from simlte_st.search import Index, add
from simlte_st.search.add import VECTORS_FOLDER
from simlte_st.search.store import Store


def test_documents_come_back_with_vectors_and_metadata(index: Index, corpus: list[Document], model: Any) -> None:
    assert len(index) == len(corpus)
    assert index.documents(["d3", "d1"]) == [corpus[3], corpus[1]]
    vectors = index._store.rows("id = 'd3'", ["vector"])["vector"].to_pylist()
    expected = model.encode([corpus[3].text], normalize_embeddings=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    with pytest.raises(DataError, match="'nowhere'"):
        index.documents(["d3", "nowhere"])


def test_nothing_is_encoded_twice(index: Index, corpus: list[Document], encoded: list[str]) -> None:
    assert re.match(r"0 .* 0 replaced, 0 removed, 10 as they were; 0 texts", index.add(corpus).summary())
    report = index.add([replace(corpus[2], id="copy"), replace(corpus[3], metadata={"year": 1900, "kind": "odd"})])
    assert encoded == []
    assert (report.added, report.replaced, report.reused, report.documents) == (1, 1, 2, 11)
    assert index.documents(["d3"])[0].metadata == {"year": 1900, "kind": "odd"}
    report = index.add([replace(corpus[2], text="ba bun bis"), replace(corpus[4], id="twice")] * 2)
    assert encoded == ["ba bun bis"]
    assert (report.added, report.replaced, report.documents) == (3, 1, 14)  # the reader calls the second ones #2
    assert index.documents(["d2", "d2#2", "twice#2"])[0].text == "ba bun bis"
    assert index.delete(["d2", "nowhere", "twice"]) == 2
    assert len(index) == 12


def test_sync_removes_what_the_source_has_no_more(index: Index, corpus: list[Document], encoded: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="Only a part"):
        index.add(read_documents(corpus, limit=3), sync=True)
    assert len(index) == 10
    assert index.add(corpus[:7], sync=True).removed == 3
    assert (len(index), encoded) == (7, [])
    assert {hit.id for hit in index.search(corpus[9].text, top_k=10)} == {one.id for one in corpus[:7]}


def test_passages_are_whole_sentences_that_fit(parted: Index, corpus: list[Document], encoded: list[str]) -> None:
    rows = parted._store.rows("id = 'd4'", ["part", "searched", "tokens", "text", "passage"]).to_pylist()
    rows.sort(key=lambda row: row["part"])
    assert [row["searched"] for row in rows] == [False, True, True]
    assert [row["text"] is None for row in rows] == [False, True, True]
    assert " ".join(row["passage"] for row in rows[1:]) == corpus[4].text
    assert all(row["tokens"] <= 62 for row in rows[1:])
    assert all(row["passage"].endswith(".") for row in rows[1:])
    longer = corpus[4].text + " Bis bun."
    report = parted.add([replace(corpus[4], text=longer)])
    assert encoded == [longer, longer.removeprefix(rows[1]["passage"]).strip()]  # the first passage is as it was
    assert report.truncation.cut_texts == 0
    shorter = parted.add([replace(corpus[4], text="Bis bun.")])
    assert shorter.vectors == 19  # no passage of the longer text is left
    assert [row["part"] for row in parted._store.rows("id = 'd4'", ["part"]).to_pylist()] == [0]


def test_truncation_is_told_with_its_remedy(model: SentenceTransformer, tmp_path: Path) -> None:
    texts = [Document("short", "ba bun bis"), Document("long", "Ba. " * 50)]
    told = Index.create(tmp_path / "whole", model).add(texts).summary()
    assert re.search(r"1 of 2 texts.* 36\.9% .*parts=True", told)
    parted = Index.create(tmp_path / "parts", model, parts=True).add(texts)
    assert "cut" not in parted.summary()


def test_a_table_without_ids_never_replaces_another_ones_rows(model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model)
    index.add([{"text": "ba bun"}, {"text": "bis ba"}, {"text": "ba bun"}])
    report = index.add([{"text": "bun bun"}, {"text": "bis ba"}])
    assert (report.added, report.unchanged, report.documents) == (1, 1, 3)


def test_copies_without_ids_that_have_other_columns_are_all_kept(model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model)
    rows = [{"text": "Ba bun bis.", "customer": name} for name in ("Alfa", "Beta", "Alfa")]
    rows.append({"text": "Bo.", "customer": "C"})
    report = index.add(rows)
    assert (report.added, report.unchanged, len(index)) == (3, 1, 3)
    for customer in ("Alfa", "Beta"):
        first = index.search("bun", where=f"customer = '{customer}'")[0]
        assert index.documents([first.id])[0].text == "Ba bun bis."
    assert index.add(rows).unchanged == 4
    report = index.add([{"text": "Bo.", "customer": "D"}])
    assert (report.replaced, len(index)) == (1, 3), "one text with other columns is that document, changed"


def test_values_keep_the_type_of_their_source(model: SentenceTransformer, tmp_path: Path) -> None:
    versions = ["1.1", "1.10", "1.2"]
    lines = [json.dumps({"id": each, "text": "ba", "v": each}) for each in versions]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.csv").write_text("id,text,w,n\n" + "".join(f"b{each},bo,{each},3\n" for each in versions))
    index = Index.create(tmp_path / "index", model)
    index.add([str(tmp_path / "a.jsonl"), str(tmp_path / "b.csv")])
    for where, found in (("v = '1.10'", ["1.10"]), ("w = '1.10'", ["b1.10"]), ("n > 2 AND w = '1.2'", ["b1.2"])):
        assert [hit.id for hit in index.search("ba bo", where=where)] == found


def test_headers_of_mails_and_front_matter_are_columns(model: SentenceTransformer, tmp_path: Path) -> None:
    """Also where the first mail lacks what others have."""
    mail = "From: {}@b.c\nSubject: bun\nDate: Thu, {} Aug 2002 23:30:00 -0200\n\nBa bo."
    for name, day in (("a", 99), ("b", 21), ("c", 22)):
        (tmp_path / f"{name}.eml").write_text(mail.format(name, day))
    (tmp_path / "d.md").write_text("---\ndate: 2002-08-24\nstars: 4\n---\nBa bis.")
    index = Index.create(tmp_path / "made.index", model)
    index.add([tmp_path / f"{name}.eml" for name in "abc"])
    for where, found in (
        ("date >= '2002-08-23'", ["c.eml"]),
        ("sender = 'b@b.c'", ["b.eml"]),
        ("date IS NULL", ["a.eml"]),
    ):
        assert [hit.id for hit in index.search("ba bo", where=where)] == found
    other = Index.create(tmp_path / "other.index", model)
    other.add(str(tmp_path / "d.md"))
    assert [hit.id for hit in other.search("ba", where="date = '2002-08-24' AND stars > 3")] == ["d.md"]


@pytest.mark.parametrize("name", ["it's", 'a\\b/"c"', "../über/文.txt", "'; DROP TABLE documents; --", "%_", "a\nb"])
def test_odd_ids(index: Index, name: str, documents: list[str]) -> None:
    index.add([Document(name, documents[20])])
    index.add([Document(name, documents[21])])
    assert index.documents([name])[0].text == documents[21]
    assert index.search(documents[21], top_k=1)[0].id == name
    assert name not in {hit.id for hit in index.link(name, top_k=11)}
    assert index.delete([name]) == 1
    assert len(index) == 10


def test_ids_that_only_look_alike_stay(model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "x", model)
    index.add([{"id": "10.0", "text": "ba bun"}])
    assert index.add([{"id": "10", "text": "ba bei"}]).documents == 2


def test_unusable_documents_are_left_to_the_reader(index: Index) -> None:
    reader = read_documents([{"id": "a", "text": " "}, {"id": "b", "text": "ba bun"}, {"id": "b", "text": "bis"}])
    report = index.add(reader)
    assert (report.added, reader.report.skipped) == (2, {"empty": 1})
    assert "'b' became 'b#2'" in reader.report.summary()


def test_sync_keeps_what_could_not_be_read(model: SentenceTransformer, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name in ("a.txt", "b.txt", "c.txt", "gone.txt"):
        (files / name).write_text(f"Ba bun {name}. Bis.")
    index = Index.create(tmp_path / "index", model)
    index.add(files)
    (files / "gone.txt").unlink()
    (files / "b.txt").write_bytes(b"Ba \0\0\0 bun" * 50)  # binary
    (files / "c.txt").write_text(" ")
    report = index.add(files, sync=True)
    assert (report.kept, report.removed) == (["b.txt", "c.txt"], 1)
    assert re.search(r"kept 2 documents .*\('b\.txt', 'c\.txt'\)", report.summary())
    assert {document.id for document in index.documents(["a.txt", "b.txt", "c.txt"])} == {"a.txt", "b.txt", "c.txt"}
    with pytest.raises(DataError, match=r"gone\.txt"):
        index.documents(["gone.txt"])


def test_sync_keeps_a_folder_that_cannot_be_listed(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "sub/d.txt", "subject.txt"):
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_text(f"Ba bun {name}.")
    index = Index.create(tmp_path / "index", model)
    index.add(tmp_path / "files")
    (tmp_path / "files" / "subject.txt").unlink()
    listed = os.scandir

    def refused(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    report = index.add(tmp_path / "files", sync=True)
    assert (report.kept, report.removed) == (["sub/d.txt"], 1)


def test_sync_keeps_rows_whose_ids_are_known(model: SentenceTransformer, tmp_path: Path) -> None:
    def write(*rows: Any) -> Path:
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        return path

    index = Index.create(tmp_path / "index", model)
    index.add(write(*({"id": name, "text": f"Ba bun {name}."} for name in "abcde")))
    first = {"id": "a", "text": "Ba bun a."}
    report = index.add(write(first, {"id": "b", "text": None}, {"id": "c"}, {"id": "d", "text": " "}), sync=True)
    assert (report.kept, report.removed) == (["b", "c", "d"], 1)
    several = index.add([write(first, {"id": "b", "text": None}), str(tmp_path / "rows.jsonl")], sync=True)
    assert "b" in several.kept
    report = index.add(write(first, '{"id": "b", "text": "Ba b'), sync=True)
    assert report.removed == 0, "which document the broken line was is not known"
    assert "1 rows that could not" in report.summary()
    report = index.add(write(first), sync=True)
    assert (report.kept, len(index)) == ([], 1)


def test_several_devices_encode_first_and_one_process_writes(
    parted: Index,
    model: SentenceTransformer,
    corpus: list[Document],
    encoded: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contents: Callable[[Index], list[Any]],
) -> None:
    pools: list[list[str]] = []
    monkeypatch.setattr(encode, "device_pool", lambda model, devices: pools.append(devices) or nullcontext())
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
    with pytest.raises(DataError, match="only once"):
        made.add((one for one in corpus), device=["cpu", "cpu"])


def test_what_was_encoded_first_outlives_an_interruption(
    model: SentenceTransformer, corpus: list[Document], encoded: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(add, "BATCH", 3)
    monkeypatch.setattr(encode, "device_pool", lambda model, devices: nullcontext())  # quicker, and all the same here
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
