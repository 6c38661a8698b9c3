from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import ClassificationProbeEvaluator, draw_shots, few_shot_probe, fit_probe

Build = Callable[..., SentenceTransformer]
Texts = tuple[list[str], list[str]]


def _data() -> tuple[np.ndarray, list[str], np.ndarray, list[str]]:
    generator = np.random.default_rng(0)
    y, ty = generator.integers(0, 3, 90), generator.integers(0, 3, 120)
    centres = generator.normal(size=(3, 8))
    x = centres[y] + generator.normal(size=(90, 8))
    return x, ["abc"[i] for i in y], centres[ty] + generator.normal(size=(120, 8)), ["abc"[i] for i in ty]


def test_few_shot_probe_is_the_probe_on_each_draw() -> None:
    x, y, tx, ty = _data()
    result = few_shot_probe(x, y, tx, ty, shots=4, draws=3, head="logistic", seed=11)
    expected = []
    for draw in range(3):
        rows = draw_shots(y, 4, draw, 11)
        expected.append(fit_probe(x[rows], [y[i] for i in rows], tx, ty, head="logistic"))
    assert list(result.draws) == expected
    metrics = result.metrics()
    scores = [r.accuracy for r in expected]
    assert metrics["accuracy_mean"] == pytest.approx(np.mean(scores))
    assert metrics["accuracy_deviation"] == pytest.approx(np.std(scores, ddof=1))
    assert metrics["macro_f1_mean"] == pytest.approx(np.mean([r.macro_f1 for r in expected]))
    assert 0.34 < metrics["accuracy_mean"] < 1.0


def test_mlp_few_shot_is_determined() -> None:
    x, y, tx, ty = _data()
    state = torch.random.get_rng_state()
    first = few_shot_probe(x, y, tx, ty, shots=4, draws=2, epochs=50)
    assert first == few_shot_probe(x, y, tx, ty, shots=4, draws=2, epochs=50)
    assert torch.equal(state, torch.random.get_rng_state())
    rows = draw_shots(y, 4, 1, 0)
    assert first.draws[1] == fit_probe(x[rows], [y[i] for i in rows], tx, ty, epochs=50, seed=1)


def test_more_shots_help() -> None:
    x, y, tx, ty = _data()
    few, many = (few_shot_probe(x, y, tx, ty, shots=shots, head="logistic").metrics() for shots in (1, 20))
    assert many["accuracy_mean"] > few["accuracy_mean"]
    assert many["accuracy_deviation"] < few["accuracy_deviation"]


def test_few_shot_probe_refuses() -> None:
    x, y, tx, ty = _data()
    with pytest.raises(ConfigurationError, match="draws"):
        few_shot_probe(x, y, tx, ty, draws=0)
    with pytest.raises(DataError, match="90 texts but 89 labels"):
        few_shot_probe(x, y[:-1], tx, ty)


def test_few_shot_evaluator(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer],
    labelled_texts: tuple[list[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    evaluator = ClassificationProbeEvaluator(
        texts[:40], labels[:40], texts[40:], labels[40:], head="logistic", name="toy", shots=2, draws=3, seed=5
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
    expected = few_shot_probe(
        every[:40], labels[:40], every[40:], labels[40:], head="logistic", shots=2, draws=3, seed=5
    )
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
    assert evaluator.get_config_dict()["head"] == "mlp"
    assert evaluator.description == "Classification Probe"


def test_batch_size_is_that_of_encoding_and_the_heads_has_its_own_name(
    tiny_model_for_evaluation: Build, labelled_texts: Texts
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    seen: list[int] = []
    model[0].register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0]["attention_mask"])))
    parts = (texts[:40], labels[:40], texts[40:], labels[40:])
    metrics = ClassificationProbeEvaluator(*parts, batch_size=5)(model)
    assert max(seen) == 5
    evaluator = ClassificationProbeEvaluator(*parts, probe_batch_size=40, learning_rate=1e-6)
    assert evaluator(model)["accuracy"] < metrics["accuracy"]
    assert 5 < max(seen) <= 32
    settings = {"seed": 0, "probe_batch_size": 40, "learning_rate": 1e-6}
    assert evaluator.get_config_dict() == {"head": "mlp", **settings}


def test_evaluator_repeats_itself_and_writes_nothing_unasked(
    tiny_model_for_evaluation: Build, labelled_texts: Texts, tmp_path: Path
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    evaluator = ClassificationProbeEvaluator(
        texts[:40], labels[:40], texts[40:], labels[40:], head="logistic", write_csv=False
    )
    assert evaluator(model, output_path=str(tmp_path)) == evaluator(model)
    assert not list(tmp_path.iterdir())


def test_evaluator_restores_the_length_when_encoding_fails(
    tiny_model_for_evaluation: Build, labelled_texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    parts = (texts[:40], labels[:40], texts[40:], labels[40:])
    evaluator = ClassificationProbeEvaluator(*parts, max_seq_length=512, truncate_dim=8)

    def fail(*args: object, **kwargs: object) -> None:
        assert model.max_seq_length == 64
        assert kwargs["truncate_dim"] == 8
        raise MemoryError

    monkeypatch.setattr(model, "encode", fail)
    with pytest.raises(MemoryError):
        evaluator(model)
    assert model.max_seq_length == 16


def test_evaluator_refuses_at_once() -> None:
    with pytest.raises(DataError, match="3 texts but 2 labels"):
        ClassificationProbeEvaluator(["a", "b", "c"], [0, 1], ["a"], [0])
    with pytest.raises(DataError, match="test part"):
        ClassificationProbeEvaluator(["a", "b"], [0, 1], ["a"], [0, 1])
    with pytest.raises(DataError, match="two classes"):
        ClassificationProbeEvaluator(["a", "b"], [0, 0], ["a"], [0])
    with pytest.raises(ConfigurationError):
        ClassificationProbeEvaluator(["a", "b"], [0, 1], ["a"], [0], head="svm")  # type: ignore[arg-type]


def test_a_column_of_a_data_frame_goes_by_position() -> None:
    texts = pandas.Series(["a1", "b1", "a2", "b2"], index=[3, 2, 1, 0])
    evaluator = ClassificationProbeEvaluator(texts, ["a", "b", "a", "b"], ["a"], ["a"])
    assert list(zip(evaluator.train_texts, evaluator.train_labels, strict=True)) == [
        ("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b")
    ]  # fmt: skip


def test_the_evaluator_passes_the_heads_settings_on(model: SentenceTransformer) -> None:
    x, y, tx, ty = _data()
    texts = [[" ".join(f"w{int(value * 4)}" for value in row) for row in part] for part in (x, tx)]
    settings = {"learning_rate": 1e-3, "probe_batch_size": 4, "draws": 2, "shots": 3, "seed": 3}
    rows = [np.asarray(model.encode(part), dtype=np.float32) for part in texts]
    found = []
    for changed in ({}, {"learning_rate": 1e-5}, {"probe_batch_size": 64}):
        each = settings | changed
        evaluator = ClassificationProbeEvaluator(texts[0], y, texts[1], ty, **each)  # type: ignore[arg-type]
        expected = few_shot_probe(rows[0], y, rows[1], ty, **each)  # type: ignore[arg-type]
        values = evaluator(model)
        assert [value for name, value in values.items() if name.endswith("macro_f1_mean")] == pytest.approx(
            [expected.metrics()["macro_f1_mean"]], abs=0.02
        )
        found.append(values)
    assert found[1] != found[0] != found[2]
