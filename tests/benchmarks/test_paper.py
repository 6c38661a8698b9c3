from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from paper_support import TINY, write_papers_sets

from benchmarks import own_documents, paper
from benchmarks.grid import models
from benchmarks.grid.systems import SCALES
from simlte_st.files import read_json

ONLY = ["base-cls", "tfidf", "bm25", "simcse", "docsplit", "docsplit-no-mlm", "contrastive-tension"]
ONLY += ["ablation-unit-word", "ablation-epochs-fresh", "ablation-epochs-frozen"]
Main = Callable[..., Path]


@pytest.fixture(scope="module")
def run(bert_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Main]:
    """Run the experiments on toy sets once, before the first test; return the folder."""
    folder = tmp_path_factory.mktemp("paper")
    write_papers_sets(folder / "shared")

    def main(*more: str, only: list[str] = ONLY) -> Path:
        command = ["--scale", "cpu", "--shared", str(folder / "shared"), "--base", str(bert_path)]
        command += ["--work", str(folder / "work"), "--results", str(folder / "results"), "--only", *only]
        paper.main([*command, *more])
        return folder

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCALES, "cpu", TINY)
        main()
        yield main


def cells(folder: Path) -> dict[str, dict[str, object]]:
    found = sorted((folder / "work" / "results").rglob("*.json"))
    return {str(path.relative_to(folder / "work" / "results")): read_json(path) for path in found}


def test_run_covers_systems_sets_and_experiments(run: Main) -> None:
    folder = run()
    record = read_json(folder / "results" / "paper.json")
    found = record["results"]
    for data in ("20news", "bbc"):
        for name in ("base-cls", "tfidf", "simcse-0", "docsplit-0", "contrastive-tension-0"):
            assert len(found[f"few-shot/{data}-5/{name}"]["macro_f1"]) == 2
            assert len(found[f"classification/{data}/{name}"]["accuracy"]) == 1
    assert "few-shot/20news-5/ablation-unit-word-0" in found
    assert "few-shot/bbc-5/ablation-unit-word-0" not in found
    assert set(found["citations/aan/docsplit-0"]["head"]) == {"links", "papers"}
    assert "citations/aan/tfidf-250" in found
    trained = {path.stem: read_json(path)["result"] for path in (folder / "work" / "models").glob("*.json")}
    assert trained["ablation-epochs-fresh-0"]["documents"] == 4
    assert trained["contrastive-tension-0"]["batch_size"] == 8
    page = (folder / "results" / "paper.md").read_text()
    wanted = ["Gain over SimCSE", "All documents", "A few documents per class", "Citations"]
    if importlib.util.find_spec("spacy"):
        wanted += ["Redundancy", "Attention from [CLS] on bbc"]
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == [*wanted, "Ablations"]
    for text in ("| DocSplit, as printed in the papers |", "+12.0%", "+3.9%", "| epochs: 4 of a quarter, frozen"):
        assert text in page
    assert str(folder) not in page + (folder / "results" / "paper.json").read_text()


def test_stop_keeps_its_results(run: Main, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(models, "train_rival", never)
        patch.setattr(models.Models, "encoder", never)
        folder = run()
        before = cells(folder)
        cell = folder / "work" / "results" / "classification" / "bbc" / "docsplit-0.json"
        embedded = folder / "work" / "embeddings" / "bbc" / "docsplit-0.json"
        for path in (cell, embedded, embedded.with_suffix("") / "000000000.npy"):
            path.unlink()
        with pytest.raises(SystemExit, match="0"):
            run()
        assert not cell.exists()
        assert "Stopped with 1 of " in capsys.readouterr().out
    run()
    after = cells(folder)
    name = "classification/bbc/docsplit-0.json"
    assert set(after) == set(before)
    assert after[name]["result"] == before[name]["result"]


def test_own_documents_share_one_page(run: Main, bert_path: Path, tmp_path: Path) -> None:
    command = ["--shared", str(run() / "shared"), "--base", str(bert_path), "--work", str(tmp_path / "work")]
    command += ["--data", "20news", "bbc", "--seeds", "0", "--steps", "1", "--results", str(tmp_path)]
    own_documents.main(command)
    record = read_json(tmp_path / "own_documents.json")
    gain = record["gains"]["docsplit-no-mlm over simcse"]["few-shot"]
    assert sorted(gain["of_each"]) == ["20news", "bbc"]
    assert gain["gain"] == pytest.approx(sum(each["gain"] for each in gain["of_each"].values()) / 2)
    assert {name.split("/")[1] for name in record["results"]} == {"20news", "20news-5", "bbc", "bbc-5"}
    settings = [read_json(tmp_path / "work" / name / "grid.json")["settings"] for name in ("20news", "bbc")]
    assert [of["corpus"]["name"] for of in settings] == ["20newsgroups.parquet", "bbc.parquet"], "each set's own"
    assert "| DocSplit, without MLM over SimCSE " in (tmp_path / "own_documents.md").read_text()
