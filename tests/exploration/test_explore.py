from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support import make_document

import simlte_st
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError, MissingExtraError
from simlte_st.exploration import ExploreReport, analysis, explore
from simlte_st.exploration.corpus import encode_halves, open_corpus
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder


def data_of(page: Path) -> dict[str, Any]:
    """Read the data of the page's script."""
    match = re.search(r'<script id="data"[^>]*>([^<]*)</script>', page.read_text(encoding="utf-8"))
    assert match is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(match[1])))
    return data


def test_table_has_every_document_and_column(explored: ExploreReport, corpus: list[Document]) -> None:
    table = pq.read_table(explored.table)
    names = ["id", "x", "y", "topic", "topic_name", "copy_group", "text", "kind", "year", "day", "note", "title"]
    assert table.column_names == names
    assert table["id"].to_pylist() == [document.id for document in corpus]
    assert table["text"].to_pylist() == [document.text for document in corpus]
    rows = {row["id"]: row for row in table.to_pylist()}
    assert rows["d4"]["year"] == 2001
    assert rows["copy"]["copy_group"] == rows["d1"]["copy_group"] == "d1"
    assert rows["d5"]["copy_group"] is None
    assert np.isfinite(table["x"].to_numpy()).all()
    assert len({(row["topic"], row["topic_name"]) for row in rows.values() if row["topic"] >= 0}) == 3
    assert explored.documents == len(corpus)
    assert sum(size for _, size in explored.topics) + explored.none == len(corpus)
    assert 0.5 < explored.trustworthiness <= 1
    assert f"{len(corpus)} documents in 3 topics" in explored.summary()
    json.dumps(explored.to_dict())


def test_long_texts_make_room_for_vectors(
    source: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simlte_st.exploration.page._FEWER_CHARACTERS", (8, 1))
    for room, shortened in ((None, False), (0, True)):
        if room is not None:
            monkeypatch.setattr("simlte_st.exploration.page.MAX_BYTES", room)
        report = explore(static_path, source, output=tmp_path / f"{room}.html", topics=3, device="cpu", progress=False)
        data = data_of(Path(report.page))
        sizes = [len(text) for text in data["texts"]]
        assert (sizes != data["lengths"]) == shortened
        assert sum(sizes) <= 1_000 or not shortened


def test_page_size_is_linear_in_the_documents(explored: ExploreReport) -> None:
    """Listing the group of each of 100,000 e-mails from one template would give a page of gigabytes."""
    data, table = data_of(Path(explored.page)), pq.read_table(explored.table)
    ids = table["id"].to_pylist()
    named = [ids[group] if data["groups"].count(group) > 1 else None for group in data["groups"]]
    assert named == table["copy_group"].to_pylist()
    assert {len(rows) for rows in data.values() if isinstance(rows, list) and len(rows) > 10} == {len(ids)}


def test_corpus_without_topics(encoder_path: Path, tmp_path: Path) -> None:
    rows = [{"text": make_document(number), "x": number, "x_": -number} for number in range(60)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "_min_margin", lambda *_: np.inf)
        report = explore(encoder_path, rows, output=tmp_path / "corpus.html", device="cpu")
    assert (report.topics, report.none) == ([], 60)
    assert "in 0 topics, 60 in none" in report.summary()
    table = pq.read_table(report.table)
    assert set(table["topic"].to_pylist()) == {-1}
    assert table["x__"].to_pylist() == [*range(60)], "x is the place on the map, and x_ another column"
    assert table["x_"].to_pylist() == [-number for number in range(60)]
    assert data_of(Path(report.page))["topic_names"] == []


def test_index_with_other_documents_is_refused(encoder_path: Path, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "my.index", encoder_path)
    index.add([make_document(number) for number in range(3)])
    for given in (index, index.folder, str(index.folder)):
        with pytest.raises(ConfigurationError, match="is an index"):
            explore(given, ["ba bun."], output=tmp_path / "corpus.html")  # type: ignore[arg-type]


def test_page_describes_the_corpus(explored: ExploreReport, corpus: list[Document]) -> None:
    data = data_of(Path(explored.page))
    assert data["ids"] == [document.id for document in corpus]
    assert data["texts"] == [document.text for document in corpus]
    assert all(row not in near and len(near) == 10 for row, near in enumerate(data["near"]))
    kinds = [(column["name"], column["kind"]) for column in data["columns"] if column["kind"] != "text"]
    assert kinds == [("kind", "category"), ("year", "number"), ("day", "date")]
    assert "2 near" in data["duplicates"]["summary"]
    assert [len(pairs) for pairs in data["duplicates"]["groups"]] == [1, 1]
    assert "64 tokens of a text" in data["truncation"][0]
    assert "empty (1)" in data["reading"]


def test_same_seed_gives_same_bytes(explored: ExploreReport, source: Path, encoder_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus.html"
    explore(encoder_path, source, output=output, topics=3, seed=1, device="cpu")
    assert pq.read_table(explored.table).equals(pq.read_table(tmp_path / "corpus.parquet"))
    first, second = data_of(output), data_of(Path(explored.page))
    for data in (first, second):
        del data["figure"]  # Bokeh counts its objects
    assert first == second


def test_explore_an_index(
    corpus: list[Document], encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "<i>my.index"
    index = Index.create(folder, encoder_path, parts=True, device="cpu")
    index.add(corpus)
    encoded = list[str]()
    monkeypatch.setattr(Encoder, "documents", lambda self, texts, batch_size: encoded.extend(texts))
    report = simlte_st.explore(folder, output=tmp_path / "corpus.html", device="cpu", title="kind")
    assert report.documents == len(corpus)
    assert encoded == [], "the halves are of passages"
    page = (tmp_path / "corpus.html").read_text(encoding="utf-8")
    assert "<title>&lt;i&gt;my.index</title>" in page
    assert page.count("default-src 'none'") == 1
    data = data_of(tmp_path / "corpus.html")
    assert data["ids"] == sorted(document.id for document in corpus)
    assert data["titles"][data["ids"].index("d1")] == "b"
    table = pq.read_table(tmp_path / "corpus.parquet")
    assert dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))["d7"] == corpus[7].text


def test_halves_are_means_of_passages(corpus: list[Document], encoder_path: Path, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "my.index", encoder_path, parts=True, device="cpu")
    index.add([*corpus, Document("brief", "Ba bun.")])
    found, encoder = open_corpus(index, None)
    halves = encode_halves(found, encoder, 1_000, seed=3)
    passages = index.passages([one.id for one in found.documents])
    names = [found.documents[row].id for row in halves.rows]
    assert names == [one.id for one in found.documents if len(passages.get(one.id, ())) > 1]
    assert 40 < len(names) < len(found.documents)
    for name, first, second in zip(names, halves.first, halves.second, strict=True):
        parts = passages[name]
        sums = {tuple(parts[list(chosen)].mean(axis=0).round(4)) for size in range(1, len(parts))
                for chosen in itertools.combinations(range(len(parts)), size)}  # fmt: skip
        assert any(np.allclose(first, np.array(each) / np.linalg.norm(each), atol=1e-3) for each in sums)
        assert np.allclose(np.linalg.norm([first, second], axis=1), 1, atol=1e-5)


def test_errors_are_raised_before_encoding(
    source: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(kind: type[Exception], words: str, **options: Any) -> None:
        with pytest.raises(kind, match=words):
            explore("no such model", options.pop("source", source), **{"output": tmp_path / "p.html", **options})

    (tmp_path / "p.parquet").write_text("mine")
    problem(ConfigurationError, r"p\.parquet already exists")
    (tmp_path / "p.parquet").unlink()
    beside = tmp_path.parent / "p.parquet"
    beside.write_text("documents")
    problem(ConfigurationError, r"p\.parquet", source=beside, output=beside.with_suffix(".html"))
    beside.unlink()
    monkeypatch.setitem(__import__("sys").modules, "bokeh", None)
    problem(MissingExtraError, r"\[explore\]")
    monkeypatch.undo()
    with pytest.raises(DataError, match="3 documents"):
        explore(encoder_path, ["a b", "c d", "e f"], output=tmp_path / "p.html", device="cpu")
    assert list(tmp_path.iterdir()) == []
