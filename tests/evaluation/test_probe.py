from __future__ import annotations

import csv
import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.neural_network import MLPClassifier

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import ClassificationProbeEvaluator, SplitHalfEvaluator, fit_probe
from simlte_st.evaluation.encoding import encode_texts, readable_tokens, reading_at_most
from simlte_st.evaluation.probe import default_epochs

Build = Callable[..., SentenceTransformer]
Texts = tuple[list[str], list[str]]


def clouds(n: int, noise: float, seed: int = 0, classes: int = 3, dim: int = 16) -> tuple[np.ndarray, np.ndarray]:
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, n)
    return (centres[y] + noise * generator.normal(size=(n, dim))).astype(np.float32), y


def test_logistic_is_scikit_learns_own() -> None:
    (x, y), (tx, ty) = clouds(120, 1.5), clouds(200, 1.5, seed=1)
    predicted = LogisticRegression(max_iter=2000).fit(x, y).predict(tx)
    result = fit_probe(x, y.tolist(), tx, ty.tolist(), head="logistic")
    assert result.accuracy == accuracy_score(ty, predicted)
    assert result.macro_f1 == f1_score(ty, predicted, average="macro")
    assert 0.5 < result.accuracy < 1.0


def test_mlp_agrees_with_scikit_learns() -> None:
    (x, y), (tx, ty) = clouds(200, 1.5), clouds(600, 1.5, seed=1)
    result = fit_probe(x, y.tolist(), tx, ty.tolist())
    other = MLPClassifier((16,), batch_size=8, learning_rate_init=3e-4, max_iter=80, random_state=0, tol=0.0)
    with pytest.warns(Warning, match="Maximum iterations"):
        predicted = other.fit(x, y).predict(tx)
    assert default_epochs(200, 8) == 80
    assert result.accuracy == pytest.approx(accuracy_score(ty, predicted), abs=0.03)
    assert result.macro_f1 == pytest.approx(f1_score(ty, predicted, average="macro"), abs=0.03)
    assert 0.6 < result.accuracy < 0.99


def test_mlp_learns_what_no_linear_head_can() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, size=(400, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int).tolist()
    mlp = fit_probe(x[:300], y[:300], x[300:], y[300:], hidden=32, learning_rate=3e-3)
    linear = fit_probe(x[:300], y[:300], x[300:], y[300:], head="logistic")
    assert mlp.accuracy > 0.9 > 0.7 > linear.accuracy


def test_several_hidden_layers_agree_with_scikit_learns() -> None:
    (x, y), (tx, ty) = clouds(200, 1.5), clouds(600, 1.5, seed=1)
    other = MLPClassifier((32, 16), batch_size=8, learning_rate_init=3e-4, max_iter=80, random_state=0, tol=0.0)
    with pytest.warns(Warning, match="Maximum iterations"):
        predicted = other.fit(x, y).predict(tx)
    result = fit_probe(x, y.tolist(), tx, ty.tolist(), hidden=(32, 16))
    assert result.accuracy == pytest.approx(accuracy_score(ty, predicted), abs=0.03)
    arguments = (x, y.tolist(), tx, ty.tolist())
    assert fit_probe(*arguments, hidden=[16], epochs=5) == fit_probe(*arguments, hidden=16, epochs=5)


@pytest.mark.parametrize(("rows", "batch", "epochs"), [(10, 8, 1000), (100, 8, 154), (1600, 8, 10), (9999, 8, 10)])
def test_epoch_rule(rows: int, batch: int, epochs: int) -> None:
    assert default_epochs(rows, batch) == epochs
    assert epochs >= 10
    assert epochs * -(-rows // batch) >= 2000


def test_mlp_is_determined_by_its_seed_and_leaves_the_global_state_alone() -> None:
    (x, y), (tx, ty) = clouds(40, 3.0), clouds(300, 3.0, seed=1)
    arguments = (x, y.tolist(), tx, ty.tolist())
    torch.manual_seed(1)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    numpy_state = np.random.get_state()[1].copy()
    first = fit_probe(*arguments, epochs=20)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    assert np.array_equal(numpy_state, np.random.get_state()[1])
    torch.manual_seed(2)
    assert dataclasses.astuple(first) == dataclasses.astuple(fit_probe(*arguments, epochs=20))
    assert len({fit_probe(*arguments, epochs=20, seed=seed).macro_f1 for seed in range(5)}) > 1


def test_mlp_works_without_gradients_around_it() -> None:
    (x, y), (tx, ty) = clouds(40, 1.0), clouds(40, 1.0, seed=1)
    arguments = (x, y.tolist(), tx, ty.tolist())
    outside = fit_probe(*arguments, epochs=20)
    with torch.no_grad():
        assert fit_probe(*arguments, epochs=20) == outside
    with torch.inference_mode():
        assert fit_probe(*arguments, epochs=20) == outside


@pytest.mark.parametrize("head", ["mlp", "logistic"])
def test_class_only_in_the_test_part_counts_as_missed(head: str, caplog: pytest.LogCaptureFixture) -> None:
    x = np.array([[5.0, 0.0], [0.0, 5.0]] * 10, dtype=np.float32)
    y = ["a", "c"] * 10
    tx = np.array([[5.0, 0.0], [0.0, 5.0], [5.0, 0.0], [0.0, 5.0]], dtype=np.float32)
    ty = ["a", "c", "b", "b"]
    result = fit_probe(x, y, tx, ty, head=head)  # type: ignore[arg-type]
    assert "no training example" in caplog.text
    assert "'b'" in caplog.text
    assert result.accuracy == 0.5
    assert result.macro_f1 == pytest.approx(f1_score(ty, ["a", "c", "a", "c"], average="macro", zero_division=0))


def test_strings_and_integers_score_alike() -> None:
    (x, y), (tx, ty) = clouds(60, 1.5), clouds(60, 1.5, seed=1)
    names = np.array(["red", "green", "blue"])
    by_number = fit_probe(x, y.tolist(), tx, ty.tolist(), head="logistic")
    assert fit_probe(x, y, tx, ty, head="logistic") == by_number
    assert fit_probe(x, names[y], tx, names[ty], head="logistic").accuracy == by_number.accuracy


X = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("x", "y", "tx", "ty"),
    [
        (X, [0, 1, 0], X, [0, 1, 0, 1]),
        (X, [0, 1, 0, 1], X, [0, 1]),
        (X, [1, 1, 1, 1], X, [1, 1, 1, 1]),
        (X, [0, 1, 0, 1], X[:, :3], [0, 1, 0, 1]),
        (X, [0, 1, 0, 1], X, ["0", "1", "0", "1"]),
        (X, [0, "1", 0, "1"], X, [0, 1, 0, 1]),
        (X, [0, None, 0, 1], X, [0, 1, 0, 1]),
        (X * np.nan, [0, 1, 0, 1], X, [0, 1, 0, 1]),
        (X[0], [0, 1, 0, 1], X, [0, 1, 0, 1]),
        (X, [0, 1, 0, 1], X[:0], []),
    ],
)
@pytest.mark.parametrize("head", ["mlp", "logistic"])
def test_unusable_data_is_refused(head: str, x: np.ndarray, y: list, tx: np.ndarray, ty: list) -> None:
    with pytest.raises(DataError):
        fit_probe(x, y, tx, ty, head=head)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"head": "svm"},
        {"batch_size": 0},
        {"epochs": 0},
        {"hidden": 0},
        {"hidden": (8, 0)},
        {"hidden": ()},
        {"learning_rate": 0.0},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict) -> None:
    with pytest.raises(ConfigurationError):
        fit_probe(X, [0, 1, 0, 1], X, [0, 1, 0, 1], **settings)


def test_readable_tokens(tiny_model_for_evaluation: Build) -> None:
    assert readable_tokens(tiny_model_for_evaluation("bert", positions=64)) == 64
    assert readable_tokens(tiny_model_for_evaluation("t5")) is None
    roberta = tiny_model_for_evaluation("roberta", positions=66)
    assert readable_tokens(roberta) == 64
    text = " ".join(["w1"] * 500)
    with reading_at_most(roberta, 512):
        assert roberta.max_seq_length == 64
        assert roberta.encode([text]).shape == (1, 32)  # reads the longest text it can, without running off its table
    roberta.max_seq_length = 65
    with pytest.raises((IndexError, RuntimeError)):
        roberta.encode([text])  # and not one token more


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
    settings = {"batch_size": 2, "show_progress_bar": False, "truncate_dim": None}
    near = encode_texts(model, [long, short], max_seq_length=None, **settings)  # type: ignore[arg-type]
    far = encode_texts(model, [long, short], max_seq_length=32, **settings)  # type: ignore[arg-type]
    assert np.allclose(near[0], near[1], atol=1e-6)
    assert not np.allclose(far[0], far[1], atol=1e-4)


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
    evaluator = ClassificationProbeEvaluator(texts[:40], labels[:40], texts[40:], labels[40:], truncate_dim=8)

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


def test_evaluators_in_a_real_trainer(
    tiny_model_for_evaluation: Build, labelled_texts: Texts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model_for_evaluation()
    texts, labels = labelled_texts
    probe = ClassificationProbeEvaluator(
        texts[:40], labels[:40], texts[40:], labels[40:], head="logistic", name="toy", max_seq_length=32
    )
    split = SplitHalfEvaluator([t[:18] for t in texts], [t[18:] for t in texts], name="held_out")
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path),
            max_steps=4,
            per_device_train_batch_size=4,
            eval_strategy="steps",
            eval_steps=2,
            save_strategy="steps",
            save_steps=2,
            load_best_model_at_end=True,
            metric_for_best_model="eval_held_out_mrr",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"anchor": texts, "positive": texts[3:] + texts[:3]}),
        loss=MultipleNegativesRankingLoss(model),
        evaluator=[probe, split],
    )
    with caplog.at_level(logging.INFO, logger="simlte_st"):
        trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_toy_accuracy" in entry]
    assert [entry["step"] for entry in logged] == [2, 4]
    assert all(0.0 <= entry["eval_held_out_mrr"] <= 1.0 for entry in logged)
    assert trainer.state.best_metric == max(entry["eval_held_out_mrr"] for entry in logged)
    assert model.max_seq_length == 16
    for file in ("classification_probe_toy_results.csv", "split_half_held_out_results.csv"):
        assert len((tmp_path / "eval" / file).read_text().splitlines()) == 3
    assert "on the toy dataset in epoch" in caplog.text
    model.save_pretrained(str(tmp_path / "saved"))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "held_out" in card
    assert "macro_f1" in card
