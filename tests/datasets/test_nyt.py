from __future__ import annotations

import json
from pathlib import Path

import pytest

from simlte_st.datasets import load_benchmark
from simlte_st.errors import DataError


@pytest.mark.parametrize("column", ["sentence", "text", "body"])
def test_lines(tmp_path: Path, column: str) -> None:
    path = tmp_path / "nyt.jsonl"
    rows = [{column: f"Article {n}.", "label": "arts" if n % 2 else "sports"} for n in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    benchmark = load_benchmark("nyt", path, **({"text_column": "body"} if column == "body" else {}))
    assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [
        (str(n), row[column], row["label"]) for n, row in enumerate(rows)
    ]


def test_it_cannot_be_fetched() -> None:
    with pytest.raises(DataError, match=r"LDC2008T19 \(licence: LDC User Agreement.*sentence and label"):
        load_benchmark("nyt")
