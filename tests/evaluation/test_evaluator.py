from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from training_support import stock_trainer

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import (
    ClassificationProbeEvaluator,
    EmbeddingEvaluator,
    StructureEvaluator,
    compare_halves,
    fit_probe,
)
from simlte_st.evaluation.evaluator import encode_texts, reading_at_most

Build = Callable[..., SentenceTransformer]
Texts = tuple[list[str], list[str]]


def test_length_is_set_and_restored(tiny_model_for_evaluation: Build) -> None:
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


class Length(EmbeddingEvaluator):
    """The least that an evaluator of one's own has to be."""

    def __init__(self, texts: list[str], **settings: object) -> None:
        super().__init__(csv_prefix="length", primary_metric="length", **settings)  # type: ignore[arg-type]
        self.texts = texts

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Return the mean length of the embeddings."""
        return {"length": float(np.linalg.norm(self.embed_inputs(model, self.texts), axis=1).mean())}


def test_an_evaluator_of_ones_own_measures_and_the_base_does_the_rest(
    tiny_model_for_evaluation: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model_for_evaluation()
    evaluator = Length(["w1 w2", "w3"], name="own", truncate_dim=4, seed=3)
    with caplog.at_level(logging.INFO, logger="simlte_st"):
        metrics = evaluator(model, str(tmp_path / "new"), epoch=0.5, steps=7)
    expected = np.linalg.norm(model.encode(["w1 w2", "w3"])[:, :4], axis=1).mean()
    assert metrics == {"own_length": pytest.approx(float(expected))}
    assert evaluator.primary_metric == "own_length"
    assert re.search(r"own dataset .* 0\.5 .* 7 steps", caplog.text)
    lines = (tmp_path / "new" / "length_own_results.csv").read_text().splitlines()
    assert lines == ["epoch,steps,length", f"0.5,7,{metrics['own_length']}"]
    assert model.model_card_data.eval_results_dict[evaluator] == metrics
    assert evaluator.get_config_dict() == {"truncate_dim": 4, "seed": 3}


def test_prompts_are_put_before_the_texts(tiny_model_for_evaluation: Build) -> None:
    model = tiny_model_for_evaluation()
    model.prompts = {"query": "w7 "}
    texts = ["w1 w2", "w3"]
    plain = encode_texts(model, texts)
    asked = model.encode(["w7 w1 w2", "w7 w3"])
    for settings in ({"prompt_name": "query"}, {"prompt": "w7 "}):
        evaluator = Length(texts, **settings)
        assert evaluator.embed_inputs(model, texts) == pytest.approx(asked, abs=1e-6)
        assert evaluator.get_config_dict() == {**settings, "seed": 0}
    queries = Length(texts, batch_size=1).embed_inputs(model, texts, prompt_name="query")
    assert queries == pytest.approx(asked, abs=1e-6)
    assert plain != pytest.approx(asked, abs=1e-3)


def test_evaluators_in_a_real_trainer(
    tiny_model_for_evaluation: Build, labelled_texts: Texts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    probe = ClassificationProbeEvaluator(
        texts[:40], labels[:40], texts[40:], labels[40:], name="toy", max_seq_length=32
    )
    split = StructureEvaluator([Document(str(row), text) for row, text in enumerate(texts)], name="held_out")
    dataset = Dataset.from_dict({"anchor": texts, "positive": texts[3:] + texts[:3]})
    settings = {"max_steps": 4, "per_device_train_batch_size": 4, "eval_strategy": "steps", "eval_steps": 2}
    settings |= {"save_steps": 2, "load_best_model_at_end": True, "metric_for_best_model": "eval_held_out_agreement"}
    loss = MultipleNegativesRankingLoss(model)
    trainer = stock_trainer(model, loss, dataset, tmp_path, evaluator=[probe, split], **settings)
    with caplog.at_level(logging.INFO, logger="simlte_st"):
        trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_toy_accuracy" in entry]
    assert [entry["step"] for entry in logged] == [2, 4]
    assert all(0.0 <= entry["eval_held_out_agreement"] <= 1.0 for entry in logged)
    assert trainer.state.best_metric == max(entry["eval_held_out_agreement"] for entry in logged)
    assert model.max_seq_length == 16
    for file in ("classification_probe_toy_results.csv", "structure_held_out_results.csv"):
        assert len((tmp_path / "eval" / file).read_text().splitlines()) == 3
    assert "toy dataset" in caplog.text
    model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "held_out" in card
    assert "macro_f1" in card


def test_evaluator_refuses_at_once() -> None:
    with pytest.raises(DataError, match="3 texts but 2 labels"):
        ClassificationProbeEvaluator(["a", "b", "c"], [0, 1], ["a"], [0])
    with pytest.raises(DataError, match="test part"):
        ClassificationProbeEvaluator(["a", "b"], [0, 1], ["a"], [0, 1])
    with pytest.raises(DataError, match="two classes"):
        ClassificationProbeEvaluator(["a", "b"], [0, 0], ["a"], [0])


def test_the_evaluator_measures_what_a_comparison_does(
    model: SentenceTransformer, documents: list[str], tmp_path: Path
) -> None:
    held_out = [Document(str(row), text) for row, text in enumerate(documents)]
    evaluator = StructureEvaluator(held_out, name="held", seed=4)
    metrics = evaluator(model, str(tmp_path))
    compared = compare_halves({"m": model}, held_out, seed=4)
    assert metrics["held_agreement"] == compared["m"].structure.agreement
    assert evaluator.primary_metric == "held_agreement"
    assert evaluator.last_result is not None
    assert evaluator.last_result.documents == len(documents)
    assert (tmp_path / "structure_held_results.csv").exists()
    assert evaluator.get_config_dict()["neighbours"] == 10


def test_halves_fit_what_the_model_reads(tiny_model_for_evaluation: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model_for_evaluation()  # set to 16 tokens, 2 of them special, and able to read 64
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
    for name, settings in {
        "own": {},
        "less": {"max_seq_length": 12},
        "more": {"max_seq_length": 512},
        "prompted": {"prompt_name": "long"},
        "prompted too": {"prompt": "w1 w2 w3 w4 "},
    }.items():
        StructureEvaluator(documents, **settings)(model)  # type: ignore[arg-type]
        assert len(encoded) == 8
        lengths[name] = max(len(text.split()) for text in encoded)
    assert lengths["less"] < lengths["own"] < lengths["more"] < 64
    assert lengths["prompted"] == lengths["prompted too"] < lengths["own"]
    model.default_prompt_name = "long"
    StructureEvaluator(documents)(model)
    assert max(len(text.split()) for text in encoded) == lengths["prompted"]
    assert model.max_seq_length == 16


def test_the_probe_is_that_of_the_embeddings(tiny_model_for_evaluation: Build, labelled_texts: Texts) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    evaluator = ClassificationProbeEvaluator(texts[:40], labels[:40], texts[40:], labels[40:], name="toy", seed=5)
    state = torch.random.get_rng_state()
    metrics = evaluator(model)
    assert torch.equal(state, torch.random.get_rng_state())
    assert model.max_seq_length == 16
    every = encode_texts(model, texts)
    expected = fit_probe(every[:40], labels[:40], every[40:], labels[40:], seed=5)
    assert metrics == {"toy_accuracy": expected.accuracy, "toy_macro_f1": expected.macro_f1}
    assert metrics[evaluator.primary_metric] > 0.6, "random weights still tell words apart"
