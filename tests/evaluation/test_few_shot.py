from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import FewShotProbeEvaluator, draw_shots, few_shot_probe, fit_probe

LABELS = ["a"] * 20 + ["b"] * 8 + ["c"] * 2


def test_shots_are_drawn_per_class_without_replacement() -> None:
    drawn = draw_shots(LABELS, 5, 0, 0)
    assert drawn == sorted(set(drawn))
    assert Counter(LABELS[index] for index in drawn) == {"a": 5, "b": 5, "c": 2}


def test_draws_are_determined_and_differ() -> None:
    assert draw_shots(LABELS, 5, 3, 7) == draw_shots(LABELS, 5, 3, 7)
    draws = {tuple(draw_shots(LABELS, 5, draw, seed)) for draw in range(10) for seed in range(3)}
    assert len(draws) == 30
    numbers = [ord(label) for label in LABELS]
    assert draw_shots(numbers, 5, 3, 7) == draw_shots(np.array(LABELS), 5, 3, 7) == draw_shots(LABELS, 5, 3, 7)


def test_every_example_is_as_likely() -> None:
    count = Counter(index for draw in range(2000) for index in draw_shots(LABELS, 5, draw, 0))
    assert all(count[i] / 2000 == pytest.approx(0.25, abs=0.05) for i in range(20))
    assert all(count[i] / 2000 == pytest.approx(0.625, abs=0.05) for i in range(20, 28))
    assert count[28] == count[29] == 2000


@pytest.mark.parametrize("settings", [{"shots": 0}, {"draw": -1}, {"seed": -1}])
def test_draw_refuses(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        draw_shots(LABELS, **({"shots": 5, "draw": 0, "seed": 0} | settings))
    with pytest.raises(DataError):
        draw_shots([], 5, 0, 0)


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


def test_evaluator(
    tiny_model_for_evaluation: Callable[..., SentenceTransformer],
    labelled_texts: tuple[list[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    evaluator = FewShotProbeEvaluator(
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


def test_short_classes_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    texts = [f"text {i}" for i in range(len(LABELS))]
    FewShotProbeEvaluator(texts, LABELS, texts, LABELS, shots=5, draws=4)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["1 classes have fewer than 5 examples and give all they have at every draw: {'c': 2}"]
