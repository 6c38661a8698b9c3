from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.errors import DataError
from simlte_st.evaluation import ClassificationProbeEvaluator, draw_shots, few_shot_probe, fit_probe

Build = Callable[..., SentenceTransformer]
Texts = tuple[list[str], list[str]]


def test_few_shot_evaluator(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer],
    labelled_texts: tuple[list[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    evaluator = ClassificationProbeEvaluator(
        texts[:40], labels[:40], texts[40:], labels[40:], name="toy", shots=2, draws=3, seed=5
    )
    encoded: list[str] = []
    encode = model.encode

    def counting(inputs: list[str], **kwargs: object) -> np.ndarray:
        encoded.extend(inputs)
        return encode(inputs, **kwargs)

    monkeypatch.setattr(model, "encode", counting)
    metrics = evaluator(model, output_path=str(tmp_path), epoch=0, steps=1)
    drawn = sorted({index for draw in range(3) for index in draw_shots(labels[:40], 2, draw, 5)})
    assert encoded == [texts[index] for index in drawn] + texts[40:]
    assert model.max_seq_length == 16

    model.max_seq_length = 64
    every = encode(texts)
    expected = few_shot_probe(every[:40], labels[:40], every[40:], labels[40:], shots=2, draws=3, seed=5)
    assert metrics == pytest.approx({f"toy_{key}": value for key, value in expected.metrics().items()}, abs=0.04)
    assert evaluator.primary_metric == "toy_accuracy_mean"
    assert len(evaluator.last_draws) == 3
    assert metrics["toy_accuracy_mean"] == pytest.approx(np.mean([r.accuracy for r in evaluator.last_draws]))
    with open(tmp_path / "few_shot_probe_toy_results.csv", newline="", encoding="utf-8") as file:
        header, row = csv.reader(file)
    assert header[2:] == ["accuracy_mean", "accuracy_deviation", "macro_f1_mean", "macro_f1_deviation"]
    assert [float(value) for value in row[2:]] == list(metrics.values())
    assert evaluator.get_config_dict()["shots"] == 2


def test_evaluator_equals_the_probe_on_its_embeddings(
    tiny_model_for_evaluation: Build, labelled_texts: Texts, tmp_path: Path
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    evaluator = ClassificationProbeEvaluator(texts[:40], labels[:40], texts[40:], labels[40:], name="toy")
    state = torch.random.get_rng_state()
    metrics = evaluator(model, output_path=str(tmp_path / "new"), epoch=1, steps=5)
    assert torch.equal(state, torch.random.get_rng_state())
    assert model.max_seq_length == 16
    model.max_seq_length = 64
    embeddings = model.encode(texts)
    expected = fit_probe(embeddings[:40], labels[:40], embeddings[40:], labels[40:])
    assert metrics == pytest.approx({"toy_accuracy": expected.accuracy, "toy_macro_f1": expected.macro_f1}, abs=0.051)
    assert metrics["toy_accuracy"] > 0.6  # random weights still tell words apart
    assert evaluator.primary_metric == "toy_accuracy"
    assert evaluator.greater_is_better
    with open(tmp_path / "new" / "classification_probe_toy_results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["epoch", "steps", "accuracy", "macro_f1"]
    assert len(rows) == 2
    assert rows[1] == ["1", "5", str(metrics["toy_accuracy"]), str(metrics["toy_macro_f1"])]
    assert model.model_card_data.eval_results_dict[evaluator].keys() == metrics.keys()
    assert evaluator.description == "Classification Probe"


def test_evaluator_refuses_at_once() -> None:
    with pytest.raises(DataError, match="3 texts but 2 labels"):
        ClassificationProbeEvaluator(["a", "b", "c"], [0, 1], ["a"], [0])
    with pytest.raises(DataError, match="test part"):
        ClassificationProbeEvaluator(["a", "b"], [0, 1], ["a"], [0, 1])
    with pytest.raises(DataError, match="two classes"):
        ClassificationProbeEvaluator(["a", "b"], [0, 0], ["a"], [0])
