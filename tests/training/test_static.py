"""Trainings of static models: a base that is one, and one that is distilled first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support import make_document
from training_support import assert_same_bytes, broken_off, weights

from simlte_st import train
from simlte_st.errors import ConfigurationError
from simlte_st.models.base import load_model
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.training import Preset, TrainConfig, get_preset, static
from simlte_st.training.load_model import preset_for

OPTIONS: dict[str, Any] = {"max_steps": 8, "batch_size": 16, "keep": "trained", "progress": False, "device": "cpu"}


def vectors(folder: Path) -> np.ndarray:
    """Return the table of a static model."""
    tensors = weights(folder)
    return tensors["embeddings" if "embeddings" in tensors else "embedding.weight"]


def test_a_static_base_is_trained_by_its_preset_and_reads_whole_documents(
    static_path: Path, documents: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert preset_for(load_model(static_path)) == get_preset("docsplit-static")
    with caplog.at_level("INFO", "simlte_st"):
        result = train(documents, tmp_path / "m", base=static_path, lsa=0, **OPTIONS)
    assert result.static
    assert result.preset == get_preset("docsplit-static").changed(batch_size=16)
    assert result.coverage.share == 1.0
    assert not result.truncation.cut_texts
    assert result.dtype == "float32"
    before, after = vectors(static_path), vectors(tmp_path / "m")
    assert before.shape == after.shape
    assert np.abs(before - after).max() > 1e-2
    stock = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert isinstance(stock[0], StaticEmbedding)
    long = " ".join(documents)
    np.testing.assert_allclose(stock.encode([long]), result.load(device="cpu").encode([long]), atol=1e-6)
    assert "static" in result.summary()
    assert json.loads((tmp_path / "m" / "simlte.json").read_text())["static"] is True
    assert "a static model" in (tmp_path / "m" / "README.md").read_text()


def test_training_draws_the_halves_of_a_document_together(
    static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    found = []
    for steps in (1, 40):
        result = train(
            documents,
            tmp_path / f"{steps}",
            base=static_path,
            lsa=0,
            **{**OPTIONS, "max_steps": steps, "held_out": 0.0},
        )
        model = result.load(device="cpu")
        halves = [[" ".join(text.split(". ")[part::2]) for text in documents] for part in (0, 1)]
        first, second = (model.encode(half, normalize_embeddings=True) for half in halves)
        scores = first @ second.T
        found.append(float((np.diag(scores) - scores.mean(axis=1)).mean()))
    assert found[1] > found[0] + 0.02


def test_both_directions_are_trained(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    tables = []
    for symmetric in (True, False):
        preset = Preset(**{**vars(get_preset("docsplit-static")), "symmetric": symmetric})
        train(documents, tmp_path / f"{symmetric}", base=static_path, preset=preset, lsa=0, **OPTIONS)
        tables.append(vectors(tmp_path / f"{symmetric}"))
    assert np.abs(tables[0] - tables[1]).max() > 1e-4


def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(
    static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    options = {**OPTIONS, "save_steps": 2, "base": static_path}
    train(documents, tmp_path / "whole", **options)
    with broken_off(5):
        train(documents, tmp_path / "m", **options)
    train(documents, tmp_path / "m", resume=True, workers=1, **options)
    assert_same_bytes(tmp_path / "whole", tmp_path / "m")
    train(documents, tmp_path / "again", **options)
    assert_same_bytes(tmp_path / "whole", tmp_path / "again")
    train(documents, tmp_path / "other", **{**options, "seed": 1})
    assert np.abs(vectors(tmp_path / "whole") - vectors(tmp_path / "other")).max() > 1e-4


def test_a_static_model_ends_with_an_analysis_unless_it_shall_not(
    static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    result = train(documents, tmp_path / "m", base=static_path, **OPTIONS)
    model = result.load(device="cpu")
    assert isinstance(model[-1], LatentSemanticAnalysis)
    assert result.lsa == model[-1].dimension
    without = train(documents, tmp_path / "without", base=tmp_path / "m", lsa=0, **OPTIONS)
    assert without.lsa is None
    assert without.load(device="cpu").get_embedding_dimension() == 32
    again = train(documents, tmp_path / "again", base=tmp_path / "m", **OPTIONS).load(device="cpu")
    assert [type(module).__name__ for module in again] == ["StaticEmbedding", "Normalize", "LatentSemanticAnalysis"]


def test_an_encoder_is_distilled_first_once(
    encoder_path: Path, static_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def distilled(base: Any, config: Any) -> SentenceTransformer:
        calls.append(base.name)
        return load_model(static_path).model

    monkeypatch.setattr(static, "distilled", distilled)
    options = {**OPTIONS, "base": encoder_path, "static": True, "save_steps": 2}
    train(documents, tmp_path / "whole", **options)
    assert calls == [str(encoder_path)]
    with broken_off(5):
        train(documents, tmp_path / "m", **options)
    result = train(documents, tmp_path / "m", resume=True, **options)
    assert len(calls) == 2, "what was distilled is in the folder of the run"
    assert_same_bytes(tmp_path / "whole", tmp_path / "m")
    assert result.static
    saved = json.loads((tmp_path / "m" / "simlte.json").read_text())
    assert (saved["base"], saved["distilled"]) == (str(encoder_path), True)


def test_the_verdict_compares_whole_halves_with_the_static_base(static_path: Path, tmp_path: Path) -> None:
    documents = [make_document(number, sentences=24) for number in range(120)]
    result = train(documents, tmp_path / "m", base=static_path, held_out=0.3, **{**OPTIONS, "keep": "verdict"})
    assert result.gain is not None
    assert result.gain["documents"] >= 30
    gains = result.gain["halves"]
    assert set(gains) >= {"base", "trained"}
    # Halves of 62 tokens, on which encoders are compared, would be found much less often.
    assert gains["base"]["split_half_mrr"] > 0.9
    refused = train(
        documents, tmp_path / "same", base=static_path, held_out=0.3, lsa=0,
        **{**OPTIONS, "keep": "verdict", "learning_rate": 1e-9},
    )  # fmt: skip
    assert refused.kept == "base"
    np.testing.assert_array_equal(vectors(tmp_path / "same"), vectors(static_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dropout", 0.1), ("attention_dropout", 0.1), ("pooling", "cls"), ("max_view_length", 64),
        ("max_length", 4096), ("mlm_weight", 0.1), ("mini_batch_num_tokens", 512), ("batch_tokens", 512),
    ],
)  # fmt: skip
def test_what_does_not_apply_is_refused_with_the_reason(
    name: str, value: Any, static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}=.*static model, which"):
        train(documents, tmp_path / "m", base=static_path, **{**OPTIONS, name: value})
    assert not (tmp_path / "m.run").exists()


def test_a_preset_or_a_wish_that_contradicts_the_base_is_refused(
    static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="docsplit-static"):
        train(documents, tmp_path / "m", base=static_path, preset="docsplit-tuned", **OPTIONS)
    with pytest.raises(ConfigurationError, match="static=False"):
        train(documents, tmp_path / "m", base=static_path, static=False, **OPTIONS)
    with pytest.raises(ConfigurationError, match="static=False"):
        TrainConfig(static=False, preset="docsplit-static")


def test_a_stream_is_trained_on(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    from datasets import Dataset

    stream = Dataset.from_dict({"text": documents}).to_iterable_dataset(num_shards=4)
    result = train(stream, tmp_path / "m", base=static_path, stream=True, **OPTIONS)
    assert result.static
    assert result.lsa is None
    assert np.abs(vectors(static_path) - vectors(tmp_path / "m")).max() > 1e-2


def test_a_static_model_computes_in_float32_whatever_was_asked_for(
    static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    result = train(documents, tmp_path / "m", base=static_path, lsa=0, bf16=True, **OPTIONS)
    assert result.dtype == "float32"
    assert load_model(tmp_path / "m").model[0].embedding.weight.dtype is torch.float32  # type: ignore[union-attr]
