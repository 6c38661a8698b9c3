"""The result of a run in words."""

from __future__ import annotations

from pathlib import Path

from simlte_st.models.limits import Truncation
from simlte_st.training import Preset, TrainingResult
from simlte_st.views.corpus import CorpusReport


def test_result_is_printed_as_lines_and_a_table() -> None:
    truncation = Truncation(256, texts=52, tokens=1000, cut_texts=47, cut_tokens=200, model="some/where")
    gain = {"summary": "No difference.", "table": "| a | b |\n|---|--:|"}
    result = TrainingResult(
        Path("model"), steps=5, seconds=20.0, preset=Preset(), dtype="float32", read={"skipped": {"empty": 3}},
        corpus=CorpusReport(documents=52), truncation=truncation, kept="base", gain=gain,
    )  # fmt: skip
    lines = str(result).splitlines()
    assert lines[3:] == ["", *gain["table"].splitlines()]
    assert lines[0].endswith(f"Left out: empty (3). {truncation.summary()} {truncation.advice}")
    assert lines[1] == "No difference."
    assert "holds the untrained base" in lines[2]
    assert result.to_dict()["truncation"]["model"] == "model", "its name, and not where it lies"
