"""The tables of document embeddings on toy data: models, static models, other languages."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support import make_document
from toy_sets_support import write_toy_sets

from benchmarks import languages, models, static
from benchmarks.bank import outcomes as bank_outcomes
from benchmarks.bank.outcomes import FEW, FULL, outcomes
from benchmarks.bank.sets import load_set
from benchmarks.embeddings import LSA, TFIDF
from benchmarks.models import AT_256, CHUNKED, WITH_LSA, WORDS
from benchmarks.papers.citation_retrieval import citation_retrieval
from simlte_st.data import Document
from simlte_st.evaluation import CosineScores
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.files import read_json
from simlte_st.models.loading import load_model


def by_row(results: list[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    """The results of a set by row, one for each seed."""
    rows = [result for result in results if result["set"] == name]
    return {row["row"]: [result for result in rows if result["row"] == row["row"]] for row in rows}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Two genres with documents longer than the tiny encoder's limit; papers; scored sentence pairs."""
    folder = tmp_path / "shared"
    write_toy_sets(folder, sentences=1)
    return folder


@pytest.fixture
def places(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options of a run."""
    monkeypatch.setattr(bank_outcomes, "DRAWS", 1)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    (tmp_path / "out").mkdir()
    return ["--work", str(tmp_path / "work"), "--output", str(tmp_path / "out")]


def test_models_on_every_kind_of_set(
    places: list[str], shared: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(models, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(models, "TOKENS", 128)
    rows = [AT_256, CHUNKED]
    command = ["--shared", str(shared), "--limit", "40", *places, "--timing", "--models", *WORDS, *rows, "--sets"]
    models.main([*command, "sotu", "brown", "aan", "stsb"])
    out = capsys.readouterr().out
    assert "Skipped sotu: there is no" in out
    record = read_json(tmp_path / "out" / "models.json")
    sets = {name: by_row(record["results"], name) for name in ("brown", "aan", "stsb")}
    results = {name: {row: one for row, [one] in by_seed.items()} for name, by_seed in sets.items()}
    fitted = {*rows, *(f"{row}{WITH_LSA}" for row in rows)}
    assert set(results["brown"]) == {TFIDF, LSA, *fitted}, "BM25 has no vectors"
    assert set(results["aan"]) == {*WORDS, *fitted}
    assert set(results["stsb"]) == {*WORDS, *rows}, "there is nothing to fit on"
    assert [results["brown"][row]["reads"] for row in rows] == [64, 128]
    assert record["timing"]["documents"] == 4

    model = SentenceTransformer(str(encoder_path), device="cpu")
    brown = load_set("brown", shared / "brown_genres.parquet", 40, 40)
    texts = [document.text for document in brown.held]
    for outcome, values in outcomes(brown, model.encode(texts).astype(np.float16), inverse_l2=None).items():
        assert results["brown"][AT_256][outcome] == pytest.approx(values, abs=0.05)
    expected = outcomes(brown, fit_tfidf(texts).transform(texts).toarray(), inverse_l2=None)[FULL]
    assert results["brown"][TFIDF][FULL] == pytest.approx(expected, abs=1e-5), "a rotation changes no probe"
    papers = pq.read_table(shared / "aan_papers.parquet")["text"].to_pylist()
    links = [(row, (row + step) % 24) for row in range(24) for step in (8, 11)]
    wanted = citation_retrieval(CosineScores(model.encode(papers)), links).metrics()
    assert results["aan"][AT_256]["mrr"] == pytest.approx(wanted["mrr"], abs=0.02)

    page = (tmp_path / "out" / "models.md").read_text(encoding="utf-8")
    assert f"{100 * results['aan'][AT_256]['recall@10']:.1f}" in page
    assert f"against {CHUNKED}" in page
    (tmp_path / "work" / "cells" / "brown" / CHUNKED / "0.json").unlink()
    models.main([*command, "brown"])
    again = capsys.readouterr().out
    assert f"cells/brown/{CHUNKED}/0\n" in again
    assert f"cells/brown/{AT_256}/0\n" not in again, "what is finished is not made again"


def test_static_models_and_an_encoder(
    places: list[str], shared: Path, encoder_path: Path, static_path: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    trained: list[dict[str, Any]] = []
    train_for_real: Callable[..., Any] = static.train

    def train(documents: Any, output: str, **settings: Any) -> Any:
        trained.append(settings)
        return train_for_real(documents, output, max_steps=2, batch_size=16, **settings | {"base": static_path})

    def load_untrained(row: str, previous: str) -> Any:
        return load_model(encoder_path if row == static.AT_256 else static_path).model

    monkeypatch.setattr(static, "train", train)
    monkeypatch.setattr(static, "load_untrained", load_untrained)
    monkeypatch.setattr(static, "PACKAGED_BASE", str(encoder_path))
    sizes = ["--documents", "40", "--held-out", "40", "--seeds", "2", "--sets", "brown"]
    static.main(["--shared", str(shared), "--previous", str(static_path), *places, *sizes])
    found = read_json(tmp_path / "out" / "static.json")
    brown = by_row(found["results"], "brown")
    assert set(brown) == {*static.ROWS}
    measured = {row: len(each) for row, each in brown.items() if not any("kept" in one for one in each)}
    twice = (static.TRAINED, static.TRAINED_LSA, static.PREVIOUS_LSA)
    assert measured == {row: 1 + (row in twice) for row in brown if row not in (static.ADAPTED_256, static.WHOLE)}
    assert [(each["seed"], each["held_out"], each["keep"]) for each in trained] == [
        (0, 0, "trained"), (1, 0, "trained"), (0, 0, "trained"), (1, 0, "trained"),
    ]  # fmt: skip
    assert len({brown[row][0][FEW] for row in twice}) == 2
    assert found["sets"]["brown"]["documents"] == 80
    page = (tmp_path / "out" / "static.md").read_text(encoding="utf-8")
    assert all(f"| {row} " in page for row in brown)
    assert f"{100 * np.mean([each[FEW] for each in brown[static.TRAINED]]):.1f} ±" in page


def test_documents_in_another_language(
    places: list[str], model: SentenceTransformer, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("skeletoken", reason="needs the extra static")
    model.prompts = {"document": "ba bun: "}
    model.save_pretrained(str(tmp_path / "base"))

    def documents(name: str, clones: Path) -> list[Document]:
        return [Document(f"{name} {number}", make_document(number), label=str(number % 2)) for number in range(120)]

    monkeypatch.setattr(languages, "train", partial(languages.train, batch_size=16))
    monkeypatch.setattr(languages, "load_language", documents)
    monkeypatch.setattr(languages, "PACKAGED_BASE", str(encoder_path))
    sizes = ["--documents", "50", "--held-out", "50", "--steps", "2", "--sets", "German", "--clones", str(tmp_path)]
    languages.main(["--base", str(tmp_path / "base"), *places, *sizes])
    german = by_row(read_json(tmp_path / "out" / "languages.json")["results"], "German")
    twice = (languages.ADAPTED, languages.TRAINED, languages.TAUGHT_TRAINED)
    assert {row: len(each) for row, each in german.items()} == {row: 1 + (row in twice) for row in languages.ROWS}
    assert german[languages.MINILM][0][FEW] != german[languages.BASE][0][FEW], "the prompt is read"
    page = re.sub(" +", " ", (tmp_path / "out" / "languages.md").read_text(encoding="utf-8"))
    assert all(f"| {row} |" in page for row in languages.ROWS)
