from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from toy_sets_support import write_toy_sets

import benchmarks.citation
from benchmarks.citation import LEXICAL, main, read_papers
from benchmarks.papers.citation_links import citation_link_probe
from benchmarks.papers.citation_retrieval import citation_retrieval
from simlte_st.evaluation import CosineScores
from simlte_st.files import read_json


def test_run_is_resumed(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By default a head is trained for 2,000 steps, here four times; other tests cover its quality.
    monkeypatch.setattr(benchmarks.citation, "citation_link_probe", partial(citation_link_probe, fit=None))
    shared = tmp_path / "shared"
    write_toy_sets(shared, sentences=2)
    files = shared / "aan_papers.parquet", shared / "aan_citations.parquet"
    options = ["--papers", str(files[0]), "--citations", str(files[1]), "--base", str(encoder_path), "--seeds", "0"]
    options += ["--max-seq-length", "200", "--work", str(tmp_path / "work"), "--results", str(tmp_path)]
    main(options)
    record = read_json(tmp_path / "citation.json")
    truncated, chunked = "tiny-encoder, truncated", "tiny-encoder, chunk-mean"
    assert list(record["readers"]) == [*LEXICAL, truncated, chunked]
    assert record["readers"][truncated]["tokens"] == 64
    assert record["readers"][chunked]["tokens"] == 200
    texts, links = read_papers(*files)
    assert texts == pq.read_table(files[0]).column("text").to_pylist()
    embeddings = SentenceTransformer(str(encoder_path), device="cpu").encode(texts, batch_size=16)
    retrieval = record["readers"][truncated]["retrieval"]
    assert retrieval == pytest.approx(citation_retrieval(CosineScores(embeddings), links).metrics(), abs=1e-3)
    assert {len(values) for values in record["readers"][chunked]["head"].values()} == {1}
    page = (tmp_path / "citation.md").read_text(encoding="utf-8")
    assert f"{100 * retrieval['recall@10']:.1f} [" in page
    assert str(tmp_path) not in page + (tmp_path / "citation.json").read_text(encoding="utf-8")
    monkeypatch.setattr(benchmarks.citation, "measure_scores", lambda *arguments: pytest.fail("nothing is left to do"))
    main(options)
    assert read_json(tmp_path / "citation.json") == record
    with pytest.raises(SystemExit, match="different settings"):
        main([*options, "--seeds", "0", "1"])
