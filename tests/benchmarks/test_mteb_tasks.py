from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("mteb")
from support import make_document

from benchmarks import mteb_tasks, records
from simlte_st.files import read_json


@pytest.fixture
def arguments(tmp_path: Path, encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    table = tmp_path / "news.jsonl"
    rows = [{"text": make_document(number % 3 + 9), "label": "abc"[number % 3]} for number in range(30)]
    rows = [{**row, "text": f"{row['text']} {make_document(100 + number)}"} for number, row in enumerate(rows)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [
        *("--tasks", "bbc", "nyt", "--path", f"bbc={table}", "--base", str(encoder_path)),
        *("--work", str(tmp_path / "work"), "--max-seq-length", "128"),
    ]


def test_results_and_going_on(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mteb_tasks.main(arguments)
    assert "Skipped NYTSectionClassification" in capsys.readouterr().out
    record = read_json(tmp_path / "results" / "mteb_tasks.json")
    assert set(record["tasks"]) == {"BBCNewsClassification", "BBCNewsClustering"}
    by_model = record["tasks"]["BBCNewsClustering"]
    assert set(by_model) == {"tiny-encoder, truncated", "tiny-encoder, chunk-mean"}
    first = by_model["tiny-encoder, truncated"]
    assert first["main"] == first["scores"]["test"]["v_measure"]
    assert first["texts"] == {"texts": 30, "words_median": 192}
    table = (tmp_path / "results" / "mteb_tasks.md").read_text()
    assert "| BBCNewsClassification | " in table.replace("  ", " ")
    monkeypatch.setattr(mteb_tasks, "measure", lambda *_: pytest.fail("measured again"))
    mteb_tasks.main(arguments)
    assert read_json(tmp_path / "results" / "mteb_tasks.json") == record


def test_names(capsys: pytest.CaptureFixture[str]) -> None:
    mteb_tasks.main(["--list"])
    listed = capsys.readouterr().out.split()
    assert {"BBCNewsClassification", "LongEmbed", "LEMBQMSumRetrieval"} <= set(listed)
    with pytest.raises(SystemExit, match="no English task 'bcc'"):
        mteb_tasks.main(["--tasks", "bcc"])
    with pytest.raises(SystemExit, match="write DATA=PATH"):
        mteb_tasks.main(["--tasks", "bbc", "--path", "bbc"])
