from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import BrowserPage, chromium
from exploration_support import HOSTILE
from sentence_transformers import SentenceTransformer
from support import make_document

from simlte_st import train
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, MissingExtraError
from simlte_st.training import TrainingResult
from simlte_st.training.report import average_overlap, changed_most, loss_section, neighbours_section, verdict_section

OPTIONS: dict[str, Any] = {
    "batch_size": 8, "max_steps": 4, "learning_rate": 1e-9, "held_out": 0.3, "max_length": "base", "mlm_weight": 0.1,
    "probe": "folder", "report": True, "progress": False, "device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """Documents that begin with what would be markup, in two folders, one of which has such a name."""
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


def test_the_report_shows_the_run(result: TrainingResult, page: str) -> None:
    assert result.gain is not None
    assert result.kept == "base"
    assert "my-model is the untrained base" in page
    assert "in my-model.trained." in page
    assert result.gain["summary"].split(".")[0] in page
    for name in ("structure", "words", "split_half", "probe"):
        before, after = (f'<td class="right">{100 * result.gain[name][side]:.1f}</td>' for side in ("base", "model"))
        assert before + after in page, name
    assert f"scored on {result.gain['probe']['documents']} documents" in page
    assert page.count('<div class="changed">') == 10
    assert page.count('<ol class="before"><li>') == page.count('<ol class="after"><li>') == 10
    assert "<h3>contrastive term</h3>" in page
    assert "<h3>MLM term</h3>" in page
    assert "<h3>loss</h3>" not in page
    assert "MultipleNegativesRankingMLMLoss with scale=2 and mlm_weight=0.1." in page
    assert str(result.report) in result.summary()


@pytest.mark.parametrize(
    ("terms", "headings"),
    [
        ({}, ["loss"]),
        ({"mean_cosine": 0.1}, ["loss"]),
        ({"relation": 0.2}, ["loss"]),
        ({"contrastive": 0.1, "mlm": 2.0}, ["contrastive term", "MLM term"]),
    ],
)
def test_a_loss_has_a_curve_for_each_term(terms: dict[str, float], headings: list[str]) -> None:
    log = [{"step": step, "loss": value, **terms} for step, value in ((1, 0.75), (2, 0.5))]
    written = loss_section([*log, {"step": 2, "train_loss": 0.6}], "MultiSimilarityTripletLoss")
    assert written.count('class="curve"') == len(headings)
    assert re.findall("<h3>(.*?)</h3>", written) == headings
    assert "is MultiSimilarityTripletLoss." in written
    for values in [[0.75, 0.5]] if headings == ["loss"] else [[value] * 2 for value in terms.values()]:
        assert str(values) in written


def test_what_is_published_holds_no_document(result: TrainingResult) -> None:
    assert result.report == result.output.parent / "my-model.report.html"
    for path in result.output.rglob("*"):
        assert path.suffix != ".html"
        assert path.suffix not in (".md", ".json") or HOSTILE[:9] not in path.read_text(encoding="utf-8")
    assert "report" not in json.loads((result.output / "simlte.json").read_text())


def test_documents_are_text(page: str) -> None:
    assert "<img" not in page
    assert "<i>" not in page
    assert "&lt;/script&gt;&lt;img src=x" in page
    assert "&lt;i&gt;a&lt;/i&gt;" in page


def test_it_says_which_model_it_is(result: TrainingResult) -> None:
    asked = verdict_section(replace(result, kept="trained"))
    assert "the trained model, because keep=&#x27;trained&#x27;" in asked
    assert result.gain is not None
    helped = verdict_section(replace(result, kept="trained", gain={**result.gain, "verdict": "helped"}))
    assert "is the trained model.<" in helped
    assert "Too few documents" in verdict_section(replace(result, gain=None))


def test_documents_that_changed_most_come_first(model: SentenceTransformer, encoder_path: Path) -> None:
    import torch

    documents = [Document(str(number), make_document(number), "ab"[number % 2]) for number in range(20)]
    other = SentenceTransformer(str(encoder_path), device="cpu")
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for weights in other.parameters():
            weights += 0.2 * torch.randn(weights.shape, generator=generator)
    changes = changed_most((model, other), documents)
    overlaps = [change.overlap for change in changes]
    assert len(changes) == 10
    assert overlaps == sorted(overlaps)
    assert overlaps[0] < 1
    for side, encoder in (("before", model), ("after", other)):
        vectors = encoder.encode([document.text for document in documents], normalize_embeddings=True)
        cosines = vectors @ vectors[changes[0].row]
        cosines[changes[0].row] = -1
        shown = getattr(changes[0], side)
        assert [row for row, _ in shown] == np.argsort(-cosines)[:5].tolist()
        np.testing.assert_allclose([cosine for _, cosine in shown], np.sort(cosines)[::-1][:5], atol=1e-5)
    written = neighbours_section(changes[:1], documents)
    gone = {row for row, _ in changes[0].before} - {row for row, _ in changes[0].after}
    assert written.count('"only-before"') == written.count('"only-after"') == len(gone)
    assert changed_most((model, other), documents[:2]) == []
    assert "Too few documents" in neighbours_section([], documents[:2])


def test_before_is_the_base_and_after_what_was_trained(
    encoder_path: Path, rows: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[list[np.ndarray]] = []

    def note(models: Any, documents: Any, **options: Any) -> list[Any]:
        compared.append([model.encode(["Ba bun."]) for model in models])
        return []

    monkeypatch.setattr("simlte_st.training.report.changed_most", note)
    options = {**OPTIONS, "bf16": False, "learning_rate": 1e-2, "probe": None, "keep": "trained", "pooling": "keep"}
    result = train(rows, tmp_path / "m", base=encoder_path, **options)
    [[before, after]] = compared
    base = SentenceTransformer(str(encoder_path), device="cpu").encode(["Ba bun."])
    np.testing.assert_allclose(before, base, atol=1e-6)
    np.testing.assert_allclose(after, result.load(device="cpu").encode(["Ba bun."]), atol=1e-6)
    assert not np.allclose(before, after, atol=1e-3)


def test_lists_are_compared_at_every_depth() -> None:
    first = np.array([[1, 2, 3], [1, 2, 3], [1, 2, 3]])
    second = np.array([[1, 2, 3], [4, 5, 6], [2, 1, 4]])
    np.testing.assert_allclose(average_overlap(first, second), [1, 0, (0 + 1 + 2 / 3) / 3])


def test_what_is_missing_is_said_before_training(
    rows: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problem(kind: type[Exception], words: str, **options: Any) -> None:
        with pytest.raises(kind, match=words):
            train(rows, tmp_path / "m", base="no such model", **{**OPTIONS, **options})

    problem(ConfigurationError, "held_out=", held_out=0.0, probe=None)
    (tmp_path / "m.report.html").write_text("mine")
    problem(ConfigurationError, r"m\.report\.html exists already")
    monkeypatch.setitem(sys.modules, "bokeh", None)
    problem(MissingExtraError, r"\[explore\]")
    assert [path.name for path in tmp_path.iterdir()] == ["m.report.html"]


FIGURES = "Object.values(Bokeh.index).filter(view => view.model?.renderers)"


class Report(BrowserPage):
    """The report in a browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path / "chromium") as driver:
        yield driver


def test_in_a_browser(browser: Any, result: TrainingResult) -> None:
    assert result.report is not None
    page = Report(browser)
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.look(width, 900, scheme)
        browser.get("about:blank")
        browser.get(result.report.as_uri())
        page.wait("document.documentElement.dataset.ready === 'true'")
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("document.querySelectorAll('#verdict td').length") == 20
        assert page.run("document.querySelector('#verdict table').getBoundingClientRect().right") <= width
        assert page.run("document.querySelectorAll('.curve').length") == 2
        shown = page.run(f"{FIGURES}.map(view => view.model.renderers[0].data_source.data.y.length)")
        assert shown == [4, 4]
        colour = page.run(f"{FIGURES}[0].model.below[0].major_label_text_color")
        assert colour == ("#1d2430" if scheme == "light" else "#e4e7ec")
    page.run("document.querySelector('.changed summary').click()")
    assert HOSTILE in page.run("document.querySelector('.changed .text').innerText")
    assert page.run("document.querySelectorAll('img, .changed b, .changed i').length") == 0
    assert browser.title == "my-model"
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert page.run("performance.getEntriesByType('resource').length") == 0
