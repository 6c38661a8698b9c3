from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from training_support import assert_same_bytes, weights

from simlte_st import train
from simlte_st.data import DocSplitTransform
from simlte_st.errors import ConfigurationError
from simlte_st.models.base import load_model
from simlte_st.training import Preset
from simlte_st.training.teacher import add_targets, nearest, smoothed

TEACHER = {"base": None, "batch_size": 8, "progress": False, "keep": "trained", "learning_rate": 3e-3, "interpolate": 1}
WORDS = ["ba bun cis", "dor ek fa", "gim hal ix"]


def unit(rows: list[list[float]]) -> np.ndarray:
    found = np.asarray(rows, dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_neighbours_are_near_by_embedding_and_by_words() -> None:
    vectors = unit([[1, 0], [1, 0.1], [0, 1], [0.1, 1]])
    texts = ["red green", "blue white", "red green", "blue white"]
    assert nearest(vectors, texts, count=1, lexical=0.0).ravel().tolist() == [1, 0, 3, 2]
    assert nearest(vectors, texts, count=1, lexical=1.0).ravel().tolist() == [2, 3, 0, 1]
    assert nearest(vectors, texts, count=9).shape == (4, 3), "never the document itself"
    assert nearest(vectors, ["one", "two", "three", "four"], count=1).ravel().tolist() == [1, 0, 3, 2], (
        "no shared words"
    )


def test_neighbours_come_from_a_pool_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    vectors = unit(generator.normal(size=(60, 8)).tolist())
    texts = [" ".join(generator.choice(WORDS, 3)) for _ in range(60)]
    whole = nearest(vectors, texts)
    monkeypatch.setattr("simlte_st.evaluation.statistics._SCRATCH_VALUES", 3000)
    assert np.mean(nearest(vectors, texts) == whole) > 0.9, "only the scale is estimated on other pairs"
    pooled = nearest(vectors, texts, pool=20, seed=1)
    assert len(np.unique(pooled)) <= 20
    assert (pooled != np.arange(60)[:, None]).all()


def test_smoothing_goes_towards_the_mean_of_the_neighbours() -> None:
    vectors = unit([[1, 0], [0, 1], [0, -1]])
    near = np.array([[1], [0], [0]])
    assert smoothed(vectors, near, 0.5)[0] == pytest.approx([np.sqrt(0.5), np.sqrt(0.5)], abs=1e-6)
    assert smoothed(vectors, near, 0.0) == pytest.approx(vectors)
    assert smoothed(vectors, near, 1.0)[1] == pytest.approx([1, 0])


@pytest.fixture
def dataset(documents: list[str]) -> Dataset:
    return DocSplitTransform().attach(documents).with_format(None)


def test_targets_are_what_the_base_makes_of_whole_documents(
    dataset: Dataset, encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    base = load_model(encoder_path).model
    base.max_seq_length = 16
    before = {name: value.clone() for name, value in base.state_dict().items()}
    found = add_targets(dataset, base, tmp_path / "alone.arrow", smooth=0.0)
    assert base.max_seq_length == 16
    assert all(torch.equal(value, before[name]) for name, value in base.state_dict().items())
    targets = np.asarray(found["label"], dtype=np.float32)
    assert np.linalg.norm(targets, axis=1) == pytest.approx(np.ones(len(documents)), abs=1e-5)
    # More than the base reads at once: the mean over chunks, which the first chunk alone is not.
    first = base.encode(documents, normalize_embeddings=True)
    assert np.abs(targets - first).max() > 0.01
    drawn = add_targets(dataset, base, tmp_path / "drawn.arrow", smooth=0.5)
    assert np.abs(np.asarray(drawn["label"]) - targets).max() > 0.01
    again = add_targets(dataset, None, tmp_path / "drawn.arrow", smooth=0.5)  # type: ignore[arg-type]  # not needed
    assert (np.asarray(again["label"]) == np.asarray(drawn["label"])).all()


def test_views_come_closer_to_what_the_teacher_shows(
    encoder_path: Path, dataset: Dataset, documents: list[str], tmp_path: Path
) -> None:
    options = {**TEACHER, "base": encoder_path, "epochs": 6, "held_out": 0.0}
    result = train(documents, tmp_path / "m", **options)  # type: ignore[arg-type]
    assert result.preset.objective == "teacher"
    for term in ("distance", "relation"):
        values = [line[term] for line in result.log if term in line]
        assert np.mean(values[-3:]) < np.mean(values[:3])
    model = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert model[1].pooling_mode == "mean", "the base's"
    base = load_model(encoder_path).model
    targets = np.asarray(add_targets(dataset, base, tmp_path / "t.arrow", smooth=0.5)["label"])
    cosines = [
        np.einsum("nd,nd->n", targets, np.asarray(each.encode(documents, normalize_embeddings=True))).mean()
        for each in (base, model)
    ]
    assert cosines[1] > cosines[0]


def test_the_same_seed_gives_the_same_bytes(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = {**TEACHER, "base": encoder_path, "held_out": 0.0, "seed": seed}
        train(documents, tmp_path / name, **options)  # type: ignore[arg-type]
    assert_same_bytes(tmp_path / "a", tmp_path / "b")
    assert any((value != weights(tmp_path / "c")[name]).any() for name, value in weights(tmp_path / "a").items())


@pytest.mark.parametrize("setting", [{"mlm_weight": 0.1}, {"mini_batch_size": 4}, {"mini_batch_num_tokens": 64}])
def test_what_only_the_contrastive_objective_has_is_refused(setting: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=r"for objective='contrastive'"):
        Preset(**{"objective": "teacher", "mlm_weight": 0.0, **setting})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"smooth=1\.5"):
        Preset(smooth=1.5)
