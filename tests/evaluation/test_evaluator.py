from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from training_support import stock_trainer

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation import StructureEvaluator, compare_halves
from simlte_st.evaluation.evaluator import encode_texts, reading_at_most

Build = Callable[..., SentenceTransformer]
Texts = tuple[list[str], list[str]]


def test_reading_at_most_restores_the_length(tiny_model_for_evaluation: Build) -> None:
    model = tiny_model_for_evaluation("bert", positions=64, max_length=16)
    for asked, seen in ((32, 32), (512, 64), (8, 8), (None, 16)):
        with reading_at_most(model, asked):
            assert model.max_seq_length == seen
        assert model.max_seq_length == 16
    with pytest.raises(RuntimeError, match="inside"), reading_at_most(model, 32):
        raise RuntimeError("inside")
    assert model.max_seq_length == 16
    with pytest.raises(ConfigurationError), reading_at_most(model, 0):
        pass
    long, short = "w1 " * 20 + "w2", "w1 " * 20 + "w3"
    near = encode_texts(model, [long, short], batch_size=2)
    far = encode_texts(model, [long, short], max_seq_length=32, batch_size=2)
    assert np.allclose(near[0], near[1], atol=1e-6)
    assert not np.allclose(far[0], far[1], atol=1e-4)


def test_evaluator_in_the_trainer(
    tiny_model_for_evaluation: Build, labelled_texts: Texts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model_for_evaluation()
    texts, _ = labelled_texts
    split = StructureEvaluator(texts, name="held_out")
    dataset = Dataset.from_dict({"anchor": texts, "positive": texts[3:] + texts[:3]})
    settings = {"max_steps": 4, "per_device_train_batch_size": 4, "eval_strategy": "steps", "eval_steps": 2}
    settings |= {"save_steps": 2, "load_best_model_at_end": True, "metric_for_best_model": "eval_held_out_agreement"}
    loss = MultipleNegativesRankingLoss(model)
    trainer = stock_trainer(model, loss, dataset, tmp_path, evaluator=split, **settings)
    with caplog.at_level(logging.INFO, logger="simlte_st"):
        trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_held_out_agreement" in entry]
    assert [entry["step"] for entry in logged] == [2, 4]
    assert all(0.0 <= entry["eval_held_out_agreement"] <= 1.0 for entry in logged)
    assert trainer.state.best_metric == max(entry["eval_held_out_agreement"] for entry in logged)
    assert model.max_seq_length == 16
    lines = (tmp_path / "eval" / "structure_held_out_results.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["steps", "2", "4"]
    assert "agreement on held_out" in caplog.text
    model.save_pretrained(str(tmp_path / "saved"))
    assert "held_out" in (tmp_path / "saved" / "README.md").read_text()


def test_evaluator_matches_compare_halves(model: SentenceTransformer, documents: list[str], tmp_path: Path) -> None:
    evaluator = StructureEvaluator(documents, name="held", seed=4)
    metrics = evaluator(model, str(tmp_path))
    compared = compare_halves({"m": model}, documents, seed=4)
    assert metrics["held_agreement"] == compared["m"].structure.agreement
    assert evaluator.primary_metric == "held_agreement"
    assert evaluator.last_result is not None
    assert evaluator.last_result.documents == len(documents)
    assert (tmp_path / "structure_held_results.csv").exists()
    assert evaluator.get_config_dict()["neighbours"] == 10


def test_halves_fit_the_model_length(tiny_model_for_evaluation: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model_for_evaluation()  # set to 16 tokens, 2 of them special; it could read 64
    model.prompts = {"long": "w1 w2 w3 w4 "}
    texts = ["\n\n".join(f"w{(number * 7 + word) % 60} w2" for word in range(100)) for number in range(4)]
    documents = [Document(str(row), text) for row, text in enumerate(texts)]
    encoded: list[str] = []
    encode = model.encode

    def counting(inputs: list[str], **options: object) -> np.ndarray:
        encoded[:] = inputs
        return encode(inputs, **options)

    monkeypatch.setattr(model, "encode", counting)
    lengths = {}
    for name, settings in {"own": {}, "less": {"max_seq_length": 12}, "more": {"max_seq_length": 512}}.items():
        StructureEvaluator(documents, **settings)(model)  # type: ignore[arg-type]
        assert len(encoded) == 8
        lengths[name] = max(len(text.split()) for text in encoded)
    assert lengths["less"] < lengths["own"] < lengths["more"] < 64
    model.default_prompt_name = "long"
    StructureEvaluator(documents)(model)
    assert max(len(text.split()) for text in encoded) < lengths["own"], "the prompt takes its part"
    assert model.max_seq_length == 16
