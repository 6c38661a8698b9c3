from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document

from benchmarks import lsa
from benchmarks.bank.sets import BankSet
from simlte_st.data import Document
from simlte_st.modules import latent_semantic_analysis


def test_a_set_is_judged_and_the_page_has_intervals_over_sets(
    model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsa, "HALVES", 2)
    documents = [
        Document(str(number), f"{('Ba ba. ', 'Sor sor. ')[number % 2] * 6} {make_document(number)}")
        for number in range(48)
    ]
    data = BankSet("toy", documents[:24], documents[24:], ["a", "b"] * 12)
    found = lsa.judge(data, model)
    assert (found["documents"], found["fitted"]) == (24, 24)
    assert len(found["scores"]) == 1 + 2 * len(lsa.FITTED)
    shrunk, before = (found["scores"][f"LSA by itself, of the same{end}"] for end in (" documents", ", unshrunk"))
    assert shrunk[0] > 0.9
    assert shrunk[0] > before[0], "single documents drown the classes out"
    assert latent_semantic_analysis.scaling(np.ones(3), 9)[0] == 0, "what is patched is put back"
    other = {**found, "scores": {name: [0.5, 0.5] for name in found["scores"]}}
    text = lsa.page(
        {"sets": {"toy": found, "other": other}, "settings": {"documents": 24, "tokens": 64}, "dtype": "float32"}
    )
    few = 100 * (shrunk[0] - found["scores"][lsa.ENCODER][0])
    low, high = sorted((0.0, few))
    assert f"| LSA by itself, of the same documents | {few / 2:+.1f} [{low:+.1f}, {high:+.1f}]" in " ".join(
        text.split()
    )
    assert "toy (24)" in text
