from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import make_document

from benchmarks import objectives
from benchmarks.objectives import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objectives")


@pytest.fixture(scope="module")
def command(bert_path: Path, folder: Path) -> Callable[..., list[str]]:
    """Two trainings a seed on 24 documents, and a labelled set whose classes are kinds of words."""
    documents = [make_document(number, sentences=6) for number in range(24)]
    pq.write_table(pa.table({"text": documents}), folder / "corpus.parquet")
    rows = [
        {"text": make_document(number % 3, sentences=2 + number // 3 % 4), "label": number % 3} for number in range(36)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "whole.parquet")
    split = [{**row, "split": "train" if number < 18 else "test"} for number, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(split), folder / "divided.parquet")

    def make(*more: object) -> list[str]:
        options = {
            "base": bert_path, "corpus": folder / "corpus.parquet", "steps": 2, "batch-size": 8, "tokens": 32,
            "draws": 3, "head": "logistic", "work": folder / "work", "results": folder / "results",
        }  # fmt: skip
        found = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        found += ["--data", f"{folder / 'whole.parquet'}:2", str(folder / "divided.parquet")]
        return [*found, "--only", "base, mean", "SimCSE", "DocSplit", "--seeds", "0", "1", *map(str, more)]

    return make


@pytest.fixture(scope="module")
def finished(command: Callable[..., list[str]], folder: Path) -> Path:
    main(command())
    return folder / "work"


def test_every_run_is_probed_on_every_set(finished: Path) -> None:
    found = sorted(str(path.relative_to(finished / "probes")) for path in finished.glob("probes/*/*.json"))
    runs = ["DocSplit-0", "DocSplit-1", "SimCSE-0", "SimCSE-1", "TF-IDF-0", "base, mean-0"]
    assert found == [f"{data}/{run}.json" for data in ("divided-5", "whole-2") for run in runs]
    record = json.loads((finished / "probes" / "whole-2" / "DocSplit-1.json").read_text())
    assert len(record["few-shot"]) == 3
    assert len(record["full"]) == 1
    assert record["documents"] == {"train": 18, "test": 18}


def test_objectives_differ_in_what_they_shall(finished: Path) -> None:
    presets = {
        name: json.loads((finished / "models" / f"{name}-0" / "simlte.json").read_text())["preset"]
        for name in ("SimCSE", "DocSplit")
    }
    different = {name for name in presets["SimCSE"] if presets["SimCSE"][name] != presets["DocSplit"][name]}
    assert different == {"view", "mlm_weight", "dropout"}
    assert presets["DocSplit"]["mlm_weight"] == 0.1
    assert presets["SimCSE"]["batch_size"] == 8


def test_what_is_finished_is_not_done_again(
    finished: Path, command: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(objectives, "train", never)
    monkeypatch.setattr(objectives, "load_base", never)
    main(command())
    (finished / "probes" / "whole-2" / "SimCSE-0.json").unlink()
    monkeypatch.undo()
    monkeypatch.setattr(objectives, "train", never)  # the model is there
    main(command())
    assert (finished / "probes" / "whole-2" / "SimCSE-0.json").exists()


def test_other_settings_need_another_work_folder(finished: Path, command: Callable[..., list[str]]) -> None:
    with pytest.raises(SystemExit, match="other steps: choose another"):
        main(command("--steps", 3))


def test_the_report_compares_by_seed_and_draw(
    finished: Path, command: Callable[..., list[str]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(command("--report"))
    text = (folder / "results" / "objectives.md").read_text()
    assert text.strip() in capsys.readouterr().out
    assert "| DocSplit, as the papers print it |" in text
    assert "+12.0%" in text
    assert "+3.9%" in text
    assert str(folder) not in text
    results = json.loads((folder / "results" / "objectives.json").read_text())
    assert str(folder) not in (folder / "results" / "objectives.json").read_text()
    gain = results["gains"]["DocSplit"]["few-shot"]
    by_hand = []
    for data in ("divided-5", "whole-2"):
        means = []
        for name in ("DocSplit", "SimCSE"):
            paths = [finished / "probes" / data / f"{name}-{seed}.json" for seed in (0, 1)]
            draws = [score for path in paths for score in json.loads(path.read_text())["few-shot"]]
            means.append(sum(draws) / len(draws))
        by_hand.append(means[0] / means[1] - 1)
    assert gain["gain"] == pytest.approx(sum(by_hand) / 2)
    assert gain["seeds"] == [0, 1]
    assert gain["interval"][0] <= gain["gain"] <= gain["interval"][1]
    assert results["gains"]["Crop (Contriever)"]["full"] is None


def test_missing_data_is_said(command: Callable[..., list[str]], folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"Skipped: .*nowhere is not there"):
        main(command("--corpus", folder / "nowhere"))
    with pytest.raises(SystemExit, match="no labelled documents"):
        main([*command(), "--data", str(folder / "nowhere.parquet")])
