from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document

import benchmarks.citation
import benchmarks.pages
from benchmarks.citation import LEXICAL, main, result, retrieval_table
from benchmarks.papers.citation_links import citation_link_probe
from benchmarks.papers.citation_retrieval import citation_retrieval
from simlte_st.evaluation import CosineScores
from simlte_st.files import read_json


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """40 papers; each cites, three times, papers that share their topic's words."""
    texts = [make_document(number % 10, sentences=4) + " " + make_document(number, sentences=6) for number in range(40)]
    pq.write_table(pa.table({"id": [f"P{i}" for i in range(40)], "text": texts}), tmp_path / "papers.parquet")
    links = [(i, (i + step) % 40) for i in range(40) for step in (10, 13, 17)]
    pq.write_table(
        pa.table({"citing": [f"P{a}" for a, _ in links], "cited": [f"P{b}" for _, b in links]}),
        tmp_path / "citations.parquet",
    )
    return ["--papers", str(tmp_path / "papers.parquet"), "--citations", str(tmp_path / "citations.parquet")]


def test_it_goes_on_where_it_stopped(
    data: list[str], encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(benchmarks.pages, "RESULTS", tmp_path / "results")
    # By itself a head is trained for 2,000 steps, four times here; how good it is has its own tests.
    monkeypatch.setattr(benchmarks.citation, "citation_link_probe", partial(citation_link_probe, fit=None))
    work = tmp_path / "work"
    options = [*data, "--base", str(encoder_path), "--seeds", "0", "--max-seq-length", "200", "--work", str(work)]
    main([*options, "--only", *LEXICAL])
    first = read_json(tmp_path / "results" / "citation.json")
    assert list(first["readers"]) == list(LEXICAL)
    capsys.readouterr()
    main(options)
    printed = capsys.readouterr().out.splitlines()
    assert not set(LEXICAL) & set(printed)  # finished already
    second = read_json(tmp_path / "results" / "citation.json")
    truncated, chunked = "tiny-encoder, truncated", "tiny-encoder, chunk-mean"
    assert list(second["readers"]) == [*LEXICAL, truncated, chunked]
    for name in LEXICAL:
        gain = second["readers"][name].pop("against_base")
        assert gain.endswith("]"), "against the base, which the first run did not have"
        assert second["readers"][name] == first["readers"][name]
    assert second["settings"]["links"] == 120
    assert second["readers"][truncated]["tokens"] == 64
    assert second["readers"][chunked]["tokens"] == 200
    retrieval = second["readers"][truncated]["retrieval"]
    texts = pq.read_table(tmp_path / "papers.parquet").column("text").to_pylist()
    embeddings = SentenceTransformer(str(encoder_path), device="cpu").encode(texts, batch_size=16)
    links = [(i, (i + step) % 40) for i in range(40) for step in (10, 13, 17)]
    assert retrieval == pytest.approx(citation_retrieval(CosineScores(embeddings), links).metrics(), abs=1e-3)
    for split in ("links", "papers"):
        assert 0.0 <= second["readers"][chunked]["head"][split][0] <= 1.0
    page = (tmp_path / "results" / "citation.md").read_text(encoding="utf-8")
    assert f"{100 * retrieval['recall@10']:.1f} [" in page
    assert str(tmp_path) not in page
    assert str(tmp_path) not in (tmp_path / "results" / "citation.json").read_text(encoding="utf-8")

    with pytest.raises(SystemExit, match="other settings"):
        main([*options, "--seeds", "0", "1"])
    with pytest.raises(SystemExit, match="'BM26'"):
        main([*options, "--only", "BM26"])
    with pytest.raises(SystemExit, match=r"Two .*'tiny-encoder'"):
        main([*options, "--model", str(encoder_path), str(encoder_path)])


def test_what_finds_more_than_the_base_has_a_gain_above_zero() -> None:
    def record(found: list[float]) -> dict[str, Any]:
        names = ("recall@10", "recall@100", "mrr", "ndcg@10")
        retrieval = {f"{name}{end}": 0.5 for name in names for end in ("", "_low", "_high")}
        return {"retrieval": retrieval, "per_query": {"recall@10": found}}

    found = {"base, truncated": record([0.1, 0.2, 0.3]), "better": record([0.5, 0.6, 0.8])}
    options = argparse.Namespace(base="some/base", model=[], papers=Path("p"), citations=Path("c"))
    table = retrieval_table(result({}, options, found)["readers"])
    [row] = [line for line in table.splitlines() if "better" in line]
    assert "+43.3 [+40.0, +50.0]" in row
