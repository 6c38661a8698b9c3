from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exploration_support import HOSTILE
from sentence_transformers import SentenceTransformer
from support import make_document

from simlte_st import train
from simlte_st.data import Document
from simlte_st.training import TrainingResult
from simlte_st.training.report import largest_changes, neighbours_section

OPTIONS: dict[str, Any] = {
    "batch_size": 8, "max_steps": 4, "learning_rate": 1e-9, "held_out": 0.3, "max_length": "base", "mlm_weight": 0.1,
    "probe": "folder", "report": True, "progress": False, "device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """Documents that begin with markup, in two folders, one named like markup."""
    folders = ["<i>a</i>", "b"]
    texts = [f"{HOSTILE} {make_document(number)}" for number in range(120)]
    return [{"id": str(number), "text": text, "folder": folders[number % 2]} for number, text in enumerate(texts)]


@pytest.fixture(scope="module")
def result(encoder_path: Path, rows: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    """A run that changed nothing, so that the base was kept."""
    return train(rows, tmp_path_factory.mktemp("run") / "my-model", base=encoder_path, **OPTIONS)


@pytest.fixture(scope="module")
def page(result: TrainingResult) -> str:
    """The report without its scripts."""
    assert result.report is not None
    return re.sub(r"<script.*?</script>", "", result.report.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_report_shows_the_run(result: TrainingResult, page: str) -> None:
    assert result.gain is not None
    assert result.kept == "base"
    assert "my-model is the untrained base" in page
    assert "in my-model.trained." in page
    assert result.gain["summary"].split(".")[0] in page
    for name in ("structure", "words", "split_half", "probe"):
        before, after = (f'<td class="right">{100 * result.gain[name][side]:.1f}</td>' for side in ("base", "model"))
        assert before + after in page, name
    assert page.count('<div class="changed">') == 10
    assert page.count('<ol class="before"><li>') == page.count('<ol class="after"><li>') == 10
    assert page.count('class="curve"') == 1
    assert "MultipleNegativesRankingMLMLoss with scale=2 and mlm_weight=0.1." in page
    assert str(result.report) in result.summary()


def test_published_files_hold_no_documents(result: TrainingResult) -> None:
    assert result.report == result.output.parent / "my-model.report.html"
    for path in result.output.rglob("*"):
        assert path.suffix != ".html"
        assert path.suffix not in (".md", ".json") or HOSTILE[:9] not in path.read_text(encoding="utf-8")
    assert "report" not in json.loads((result.output / "simlte.json").read_text())


def test_documents_are_escaped(page: str) -> None:
    assert "<img" not in page
    assert "<i>" not in page
    assert "&lt;/script&gt;&lt;img src=x" in page
    assert "&lt;i&gt;a&lt;/i&gt;" in page


def test_documents_that_changed_most_come_first(model: SentenceTransformer, encoder_path: Path) -> None:
    import torch

    documents = [Document(str(number), make_document(number), "ab"[number % 2]) for number in range(20)]
    other = SentenceTransformer(str(encoder_path), device="cpu")
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for weights in other.parameters():
            weights += 0.2 * torch.randn(weights.shape, generator=generator)
    changes = largest_changes((model, other), documents)
    assert len(changes) == 10
    shared = [len({*change.before} & {*change.after}) for change in changes]
    assert shared == sorted(shared)
    assert shared[0] < 5
    for side, encoder in (("before", model), ("after", other)):
        vectors = encoder.encode([document.text for document in documents], normalize_embeddings=True)
        cosines = vectors @ vectors[changes[0].row]
        cosines[changes[0].row] = -1
        assert getattr(changes[0], side) == np.argsort(-cosines)[:5].tolist()
    written = neighbours_section(changes[:1], documents)
    assert written.count("<details>") == 11
    assert largest_changes((model, other), documents[:2]) == []
    assert "Too few documents" in neighbours_section([], documents[:2])


def test_report_compares_base_with_trained_model(
    encoder_path: Path, rows: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[list[np.ndarray]] = []

    def note(models: Any, documents: Any, **options: Any) -> list[Any]:
        compared.append([model.encode(["Ba bun."]) for model in models])
        return []

    monkeypatch.setattr("simlte_st.training.report.largest_changes", note)
    options = {**OPTIONS, "bf16": False, "learning_rate": 1e-2, "probe": None, "keep": "trained", "pooling": "keep"}
    result = train(rows, tmp_path / "m", base=encoder_path, **options)
    [[before, after]] = compared
    base = SentenceTransformer(str(encoder_path), device="cpu").encode(["Ba bun."])
    np.testing.assert_allclose(before, base, atol=1e-6)
    np.testing.assert_allclose(after, result.load(device="cpu").encode(["Ba bun."]), atol=1e-6)
    assert not np.allclose(before, after, atol=1e-3)
