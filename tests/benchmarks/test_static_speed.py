from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from support import make_document

from benchmarks import static_speed
from simlte_st.files import read_json


def test_ways_are_timed_in_turns_and_documents_indexed(
    static_path: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("model2vec", reason="needs the extra static")
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)

    def own_process(command: list[str]) -> Any:
        values = dict(zip(command[1::2], command[2::2], strict=True))
        return static_speed.whole_way(values["--whole"], values["--model"], Path(values["--folder"]))

    monkeypatch.setattr(static_speed, "own_process", own_process)
    articles = ["\n\n".join([make_document(number), make_document(number + 50), "Too short."]) for number in range(20)]
    pq.write_table(pa.table({"text": articles}), tmp_path / "enwiki2014.parquet")
    command = ["--shared", str(tmp_path), "--model", str(static_path), "--encoder", str(encoder_path)]
    numbers = ["--documents", "6", "--encoded", "2", "--repeats", "1", "--scales", "5", "9"]
    static_speed.main([*command, *numbers, "--output", str(tmp_path / "results")])
    record = read_json(tmp_path / "results" / "static_speed.json")
    assert [each["documents"] for each in record["scales"]] == [5, 9]
    assert len(record["rates"]) == 5
    assert all(each["documents_per_second"] > 0 for each in record["rates"].values())
    assert record["rates"]["model.encode"]["model.encode_ratio"] == [1, 1, 1]
    page = (tmp_path / "results" / "static_speed.md").read_text(encoding="utf-8")
    assert json.dumps(str(tmp_path)) not in page
    assert "| 9 " in page.replace(",", "")


def test_documents_differ_and_have_the_wanted_length(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [make_document(number) for number in range(40)]}), tmp_path / "enwiki2014.parquet")
    texts = static_speed.make_texts(tmp_path)
    drawn = [next(texts) for _ in range(10)]
    assert len(set(drawn)) == 10
    assert all(500 <= len(text.split()) < 600 for text in drawn)


def test_a_million_costs_what_the_last_documents_did() -> None:
    scales = [{"documents": count, "index": {"seconds": float(seconds)}} for count, seconds in ((100, 1), (200, 3))]
    assert static_speed.of_a_million(scales, "index", "seconds") == pytest.approx(3 + 0.02 * 999_800)
    assert static_speed.of_a_million(scales[:1], "index", "seconds") == pytest.approx(10_000)
