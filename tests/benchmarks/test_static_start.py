from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from shipped_support import ship_static, table
from support import make_document

from benchmarks import static_start
from benchmarks.bank.sets import BankSet
from benchmarks.static_start import DISTILLED, OWN_STATIC, TRAINED, judge, page, similarity, static_models
from simlte_st.data.document import Document
from simlte_st.models import shipped


def test_the_rows_and_their_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.setattr(static_start, "HALVES", 2)
    start = ship_static(seed=1).rename(tmp_path / "start")
    ship_static(seed=2)
    models = static_models(start)
    one, all_of_it, half = (models[name][0].embedding.weight for name in (DISTILLED, TRAINED, OWN_STATIC))
    torch.testing.assert_close((one + all_of_it) / 2, half)
    np.testing.assert_allclose(table(start), one.detach())
    documents = [
        Document(str(number), f"{('Ba ba. ', 'Sor sor. ')[number % 2] * 9} {make_document(number)}")
        for number in range(24)
    ]
    data = BankSet("toy", [], documents, ["a", "b"] * 12)
    rows = {}
    for name, model in models.items():
        scores = judge(data, model)
        assert 0 < scores[0] <= 1
        assert similarity(["ba bun"] * 2 + ["sor"], ["ba bun", "sor", "ba"], [5, 1, 0], model) > 0.4
        rows[name] = {"scores": {"toy": scores, "TREC": [0.0, 0.0]}, "similarity": {"STSb": 0.5, "STS12": 0.7}}
    text = page({"rows": rows, "documents": 24, "environment": {}})
    few = f"{100 * rows[OWN_STATIC]['scores']['toy'][0]:.1f}"
    [line] = [line for line in text.splitlines() if line.startswith(f"| {OWN_STATIC}") and few in line][:1]
    assert [cell.strip() for cell in line.strip("|").split("|")] == [OWN_STATIC, few, "0.0", few]
    assert "60.0" in text
