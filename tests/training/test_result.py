from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from simlte_st.data.corpus import CorpusReport, Coverage, count_longer
from simlte_st.models.encode import EncodingReport
from simlte_st.models.names import LONGER_HINT
from simlte_st.training.presets import Preset
from simlte_st.training.result import TrainingResult, reading_summary


def made(**options: Any) -> TrainingResult:
    return TrainingResult(
        output=Path("model"), steps=5, seconds=20.0, documents_per_second=8.0, preset=Preset(), dtype="float32",
        read={"skipped": {"empty": 3}}, corpus=CorpusReport(documents=52), coverage=Coverage(52, 40, 1000, 220, 52),
        **options,
    )  # fmt: skip


def test_a_result_is_printed_in_five_lines() -> None:
    result = made(kept="base", gain={"summary": "No difference."}, reads=256, longer=47, advice=LONGER_HINT)
    lines = str(result).splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("Left out: 3 empty.")
    reads = f"The model reads the first 256 tokens of a text: 47 of the 52 documents are longer. {LONGER_HINT}"
    assert lines[2:4] == reads.splitlines()
    assert lines[4].startswith("No difference. So model holds the base as it was")
    assert {"reads": 256, "longer": 47, "advice": LONGER_HINT}.items() <= result.to_dict().items()


def test_a_report_of_encoding_is_printed_in_a_line() -> None:
    report = EncodingReport(documents=2, tokens=10, dimension=4)
    assert str(report) == "Encoded 2 documents into vectors of 4 dimensions; none was longer than the model reads."


@pytest.mark.parametrize(
    ("reads", "longer", "told"),
    [
        (None, 0, "however long"),
        (4096, 0, "4,096 tokens of a text: none of the 9 documents is longer."),
        (64, 2, "2 of"),
    ],
)
def test_what_a_model_reads_is_told(reads: int | None, longer: int, told: str) -> None:
    text = reading_summary(reads, longer, 9, LONGER_HINT)
    assert told in text
    assert (LONGER_HINT in text) == (longer > 0)


def test_longer_documents_are_counted() -> None:
    corpus = Dataset.from_dict({"id": list("abc"), "tokens": [[3, 4], [8], [2, 2, 5]]})
    assert [count_longer(corpus, budget) for budget in (None, 6, 7, 8, 9)] == [0, 3, 2, 1, 0]
    assert count_longer(corpus.select([2, 0]), 7) == 1, "also of rows that are chosen"
