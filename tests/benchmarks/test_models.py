from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer
from toy_sets_support import PAPERS, write_set, write_toy_sets

from benchmarks import models, models_cards, models_page
from benchmarks.bank import outcomes as bank_outcomes
from benchmarks.bank.outcomes import FEW, FULL, HALVES, INVERSE_L2, outcomes, shares_right
from benchmarks.bank.sets import BankSet, load_set
from benchmarks.builder.account import LIMITS_TITLE, RESULTS_TITLE
from benchmarks.models_page import (
    ALL_SETS,
    AT_256,
    CHUNKED,
    LONG_SETS,
    LONGFORMER,
    LSA,
    ROWS,
    TFIDF,
    WITH_LSA,
    WORDS,
    by_length,
    paired_tables,
    with_averages,
)
from benchmarks.nli.tasks import load_pairs, similarity
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.records import RESULTS
from simlte_st.data.document import Document
from simlte_st.evaluation import CosineScores, fit_probe
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.evaluation.splits import TEST, stratified_split
from simlte_st.files import read_json
from simlte_st.models import shipped
from simlte_st.models.names import OWN_ENCODERS
from simlte_st.models.vectors import unit_rows


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Two genres, of which documents are longer than the tiny encoder reads; papers; judged texts and sentences."""
    folder = tmp_path / "shared"
    write_toy_sets(folder, sentences=1)
    write_set(folder, "lee_documents", text=PAPERS[:12])
    people = np.triu(np.random.default_rng(0).random((12, 12)))
    (folder / "lee_similarities_50x50.json").write_text(json.dumps(people.tolist()), encoding="utf-8")
    return folder


@pytest.fixture
def command(shared: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A run with the tiny encoder in place of the packaged one, and without what the package ships."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "nothing")
    monkeypatch.setattr(models, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(models, "TOKENS", 128)
    monkeypatch.setattr(bank_outcomes, "DRAWS", 1)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    (tmp_path / "out").mkdir()
    return [
        "--shared", str(shared), "--work", str(tmp_path / "work"), "--output", str(tmp_path / "out"), "--limit", "40",
    ]  # fmt: skip


def test_every_kind_of_set_and_row(
    command: list[str], shared: Path, encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models.main([*command, "--sets", *(name for name in models_page.SETS if name != "bbc")])  # which a package has
    out = capsys.readouterr().out
    for name in ("20news", "arxiv", "sotu", "fakenews"):
        assert f"Skipped {name}: there is no" in out
    assert out.count("Skipped simlte-bert: ") == 1
    assert "Install simlte-st" in out
    found = read_json(tmp_path / "out" / "models.json")
    results = found["results"]
    rows = [AT_256, CHUNKED, LONGFORMER]
    fitted = [f"{row}{suffix}" for row in rows for suffix in ("", WITH_LSA)]
    assert list(results["brown"]) == [TFIDF, LSA, *fitted], "BM25 has no vectors"
    assert list(results["aan"]) == [*WORDS, *fitted]
    assert list(results["lee"]) == list(results["stsb"]) == [*WORDS, *rows], "there is nothing to fit on"
    assert {row: part["encoding"]["reads"] for row, part in results["brown"].items() if row in rows} == {
        AT_256: 64, CHUNKED: 128, LONGFORMER: 128
    }  # fmt: skip

    model = SentenceTransformer(str(encoder_path), device="cpu")
    brown = load_set("brown", shared / "brown_genres.parquet", 40, 40)
    vectors = model.encode([document.text for document in brown.held]).astype(np.float16)
    for outcome, values in outcomes(brown, vectors, inverse_l2=None).items():
        assert results["brown"][AT_256][outcome] == pytest.approx(values, abs=0.05)
    words = fit_tfidf([document.text for document in brown.held]).transform([document.text for document in brown.held])
    expected = outcomes(brown, words.toarray(), inverse_l2=None)[FULL]
    assert results["brown"][TFIDF][FULL] == pytest.approx(expected, abs=1e-5), "a rotation changes no probe"
    lengthened = results["brown"][f"{CHUNKED}{WITH_LSA}"]["encoding"]
    assert lengthened["fitting_seconds"] > 0
    assert lengthened["stsb"]["spearman"] == pytest.approx(results["stsb"][CHUNKED]["spearman"], abs=0.1)
    texts = pq.read_table(shared / "aan_papers.parquet")["text"].to_pylist()
    links = [(row, (row + step) % 24) for row in range(24) for step in (8, 11)]
    expected = citation_retrieval(CosineScores(model.encode(texts)), links).metrics()
    assert results["aan"][AT_256]["mrr"] == pytest.approx(expected["mrr"], abs=0.02)
    for key, value in similarity(model, load_pairs(shared, "STSb", None)).items():
        assert results["stsb"][AT_256][key] == pytest.approx(value, abs=0.01)

    singly = {
        (each["set"], each["row"], each["outcome"]): each["values"]
        for each in pq.read_table(tmp_path / "out" / "models.parquet").to_pylist()
    }
    assert np.mean(singly["aan", AT_256, "recall@10"]) == pytest.approx(results["aan"][AT_256]["recall@10"], abs=1e-5)
    assert len(singly["brown", TFIDF, "right"]) == len(brown.held)
    assert {name for name, _, _ in singly} == {"brown", "aan"}

    page = (tmp_path / "out" / "models.md").read_text(encoding="utf-8")
    assert f"{100 * results['aan'][AT_256]['recall@10']:.1f}" in page
    assert f"against {CHUNKED}" in page
    assert "dtype float32" in page
    assert str(tmp_path) not in page + (tmp_path / "out" / "models.json").read_text(encoding="utf-8")
    assert page in out, "it is printed once, at the end"
    assert out.count("# Document embeddings") == 1

    (tmp_path / "work" / "outcomes" / "brown" / f"{CHUNKED}.json").unlink()
    models.main([*command, "--sets", "brown"])
    again = capsys.readouterr().out
    assert f"outcomes/brown/{CHUNKED}\n" in again
    assert f"outcomes/brown/{AT_256}\n" not in again, "what is finished is not made again"
    assert read_json(tmp_path / "out" / "models.json")["results"] == results, "its vectors neither, nor their seconds"
    with pytest.raises(SystemExit, match="limit 40, now 30"):
        models.main([*command, "--sets", "brown", "--limit", "30"])


def test_a_page_is_there_after_each_cell(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("stop")

    monkeypatch.setattr(models, "convert_base", stop)
    with pytest.raises(RuntimeError, match="stop"):
        models.main([*command, "--sets", "stsb"])
    assert list(read_json(tmp_path / "out" / "models.json")["results"]["stsb"]) == [*WORDS, AT_256]
    assert "# Document embeddings" not in capsys.readouterr().out


def test_nothing_is_there(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    models.main([*command, "--sets", "sotu"])
    assert "Nothing is finished" in capsys.readouterr().out


def test_shares_right_are_the_accuracy_of_the_probe() -> None:
    generator = np.random.default_rng(0)
    classes = np.arange(40) % 4
    vectors = np.eye(4, 8)[classes] + generator.normal(scale=0.6, size=(40, 8))
    data = BankSet("made", [], [Document(str(row), "text") for row in range(40)], [str(row) for row in classes])
    rows, right, tested = unit_rows(vectors), 0.0, np.zeros(40)
    for half in range(HALVES):
        test = stratified_split(classes.astype(np.int32), np.arange(40), 0.5, seed=half) == TEST
        probe = fit_probe(
            rows[~test], classes[~test].tolist(), rows[test], classes[test].tolist(),
            inverse_l2=INVERSE_L2,
        )  # fmt: skip
        right += probe.accuracy * test.sum()
        tested += test
    assert np.nansum(np.array(shares_right(data, vectors)) * tested) == pytest.approx(right)
    assert 0.3 * tested.sum() < right < tested.sum()


def test_averages_pools_and_differences() -> None:
    lengths = {"bbc": np.array([100, 300, 600]), "brown": np.array([2000, 513, 9000])}
    columns = {
        "bbc": {AT_256: np.array([0.2, 0.4]), CHUNKED: np.array([0.4, 0.6])},
        "brown": {AT_256: np.array([0.4, 0.6]), CHUNKED: np.array([0.6, 0.8]), LONGFORMER: np.array([0.1, 0.2])},
    }
    found = with_averages(columns, lengths)
    assert found[ALL_SETS][AT_256] == pytest.approx([0.3, 0.5])
    assert list(found[ALL_SETS]) == [AT_256, CHUNKED], "the Longformer lacks a set"
    assert found[LONG_SETS] == {row: pytest.approx([values.mean()]) for row, values in columns["brown"].items()}
    text = "\n".join(paired_tables(found))
    [row] = [line for line in text.split(f"against {AT_256}")[1].splitlines() if CHUNKED in line and "+" in line]
    assert row.count("+20.0 [+20.0, +20.0]") == 3, "of one long set there is no interval"
    results = {
        "bbc": {CHUNKED: {"right": [1.0, None, 0.5]}},
        "brown": {CHUNKED: {"right": [0.0, 1.0, 0.5]}, AT_256: {"right": [1.0, 1.0, 1.0]}},
    }
    pooled = {
        name: {row: values.tolist() for row, values in rows.items()}
        for name, rows in by_length(results, lengths).items()
    }
    assert pooled == {
        "at most 256 (1)": {CHUNKED: [1.0]},
        "513 to 1,024 (2)": {CHUNKED: [0.5, 1.0]},
        "longer (2)": {CHUNKED: [0.0, 0.5]},
    }


def test_models_are_timed_side_by_side(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [*command, "--models", TFIDF, AT_256, CHUNKED]
    models.main([*chosen, "--sets", "stsb"])
    page = (tmp_path / "out" / "models.md").read_text(encoding="utf-8")
    assert "## Speed" not in page
    assert "| time |" not in page, "a column of nothing is left out"
    models.main([*chosen, "--timing"])
    assert "Skipped sotu: " in capsys.readouterr().out
    timing = read_json(tmp_path / "out" / "models.json")["timing"]
    assert timing["documents"] == 2 * models.TIMED, "of Brown, and of BBC, which a package has"
    assert {row: len(turns) for row, turns in timing["seconds"].items()} == {AT_256: 3, CHUNKED: 3}
    page = (tmp_path / "out" / "models.md").read_text(encoding="utf-8")
    [row] = [line for line in page.split("## Speed")[1].splitlines() if line.startswith(f"| {CHUNKED}")]
    assert "1.00 | 1.00 to 1.00 |" in row
    assert "time |" in page.split("## ")[0]


@pytest.mark.parametrize("name", OWN_ENCODERS)
def test_the_cards_have_the_results_of_the_page(name: str) -> None:
    page = (RESULTS / "models.md").read_text(encoding="utf-8").splitlines()
    path = shipped.FOLDER / name / shipped.CARD_FILE
    text = path.read_text(encoding="utf-8")
    before, title, results = text.partition(f"{RESULTS_TITLE}\n\n")
    results = results.partition(f"\n{LIMITS_TITLE}")[0]
    assert title
    tables = [line for line in results.splitlines() if line.startswith("|")]
    assert [line for line in tables if line not in page] == []
    [others] = {row for row in OWN_ENCODERS if row != name}
    rows = [line.split("|")[1].strip() for line in tables]
    assert not [row for row in rows if row.startswith(others)], "a card is of one model"
    assert {AT_256, CHUNKED, TFIDF, *(f"{name}{suffix}" for suffix in ("", WITH_LSA))} <= set(rows)
    assert text == models_cards.card(name, results.splitlines())
    summary = " ".join(before.split())
    assert summary.index("Better than its base?") < summary.index("**Base model:**") < summary.index("## Usage")
    for reference in (AT_256, CHUNKED):  # the verdict has the differences of the tables
        table = tables[[row.startswith(f"against {reference}") for row in rows].index(True) :]
        row = next(line.split("|") for line in table if line.split("|")[1].strip() == name)
        assert f"{row[-3].strip()} " in summary


def test_rows_and_sets() -> None:
    assert len(set(ROWS)) == len(ROWS) == 15
    assert set(models_page.CLASSED) | {models_page.AAN} == set(models.FILES)
    assert FEW in outcomes(BankSet("x", [], [], list("ab" * 8)), np.random.default_rng(0).normal(size=(16, 4)))
