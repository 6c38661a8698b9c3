from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.errors import DataError
from simlte_st.evaluation import StructureEvaluator, structure_agreement
from simlte_st.evaluation.comparison import compare_halves
from simlte_st.evaluation.halves import (
    agreement_of_scores,
    neighbours_by_words,
    similarity_agreement,
    words_agreement,
)
from simlte_st.evaluation.scores import TfidfScores


def halves(noise: float, size: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Documents of 20 topics; each half is its topic's place and noise of its own."""
    generator = np.random.default_rng(seed)
    topics = generator.normal(size=(20, 32))[np.arange(size) % 20] + 0.3 * generator.normal(size=(size, 32))
    first, second = (topics + noise * generator.normal(size=(size, 32)) for _ in range(2))
    return first, second


def test_what_both_halves_agree_on_is_counted() -> None:
    first, _ = halves(0.0)
    assert structure_agreement(first, 3 * first).agreement == 1.0
    chance = structure_agreement(first, np.random.default_rng(2).normal(size=first.shape)).agreement
    assert chance == pytest.approx(10 / 199, abs=0.02)


def test_by_hand() -> None:
    # Nearest on the other side by angle: 1, 0, 3, 2 for the first halves; 1, 0, 1, 2 for the second ones.
    angles = ([0, 10, 90, 95], [1, 11, 50, 93])
    sides = [np.stack([np.cos(np.radians(side)), np.sin(np.radians(side))], axis=1) for side in angles]
    result = structure_agreement(*sides)
    assert result.scores.tolist() == [1, 1, 0, 1], "of three others, the nearest is compared"
    assert (result.agreement, result.documents) == (0.75, 4)


def test_what_cannot_be_compared_is_refused() -> None:
    first, second = halves(0.5, size=6)
    with pytest.raises(DataError, match=r"\(6, 32\) and \(5, 32\)"):
        structure_agreement(first, second[:5])
    with pytest.raises(DataError, match="from 3 documents on"):
        structure_agreement(first[:2], second[:2])
    with pytest.raises(DataError, match="not finite"):
        structure_agreement(first, np.full_like(second, np.nan))


def test_the_evaluator_measures_what_a_comparison_does(
    model: SentenceTransformer, documents: list[str], tmp_path: Path
) -> None:
    evaluator = StructureEvaluator(documents, name="held", seed=4)
    metrics = evaluator(model, str(tmp_path))
    compared = compare_halves({"m": model}, documents, seed=4)
    assert metrics["held_agreement"] == compared["m"].structure.agreement
    assert evaluator.primary_metric == "held_agreement"
    assert evaluator.last_result is not None
    assert evaluator.last_result.documents == len(documents)
    assert (tmp_path / "structure_held_results.csv").exists()
    assert evaluator.get_config_dict()["neighbours"] == 10


def test_texts_without_a_common_word_are_no_neighbours() -> None:
    nothing = ["?", "!", "...", "-", ";", "a b"] * 2
    assert agreement_of_scores(TfidfScores(["alpha", *nothing[1:], "alpha", *nothing[1:]])).agreement == 0.0
    near, _ = neighbours_by_words(["one two", "two one", *"?!;:."], ["one two", "two one", *"?!;:."])
    assert near[0].tolist() == [1, -1]
    assert (near[2:] == -1).all()


def topical(noise: float) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
    """Halves of 60 documents of six topics; vectors tell the topic, more or less clearly, and words always."""
    generator = np.random.default_rng(0)
    topics = np.arange(60) % 6
    places = np.random.default_rng(1).normal(size=(6, 16))[topics]
    sides = [places + noise * generator.normal(size=places.shape) for _ in range(2)]
    words = [[" ".join(f"w{topic}x{generator.integers(8)}" for _ in range(9)) for topic in topics] for _ in range(2)]
    return sides[0], sides[1], words[0], words[1]


def test_neighbours_share_words_where_both_tell_topics() -> None:
    scores = []
    for noise in (0.1, 1.0, 10.0):
        first, second, *texts = topical(noise)
        near = neighbours_by_words(texts[0], texts[1])
        assert [side.shape for side in near] == [(60, 10)] * 2
        assert all(row not in side[row] for side in near for row in range(60)), "no document is its own neighbour"
        result = words_agreement(first, second, near)
        assert (result.documents, len(result.scores)) == (60, 60)
        scores.append(result.agreement)
    clear, blurred, chance = scores
    assert clear > blurred > chance
    assert clear > 0.8
    assert chance == pytest.approx(10 / 59, abs=0.05)


def test_words_agreement_by_hand() -> None:
    """Half one has its nearest in half one; that is compared with the nearest of half two by words."""
    first = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    words = np.array([[1], [0], [3], [0]]), np.array([[1], [2], [3], [2]])
    assert words_agreement(first, first, words).scores.tolist() == [1.0, 0.5, 1.0, 0.5]


def test_similarities_agree_where_groups_stay_together_whatever_all_have_in_common() -> None:
    generator = np.random.default_rng(0)
    groups = np.eye(4)[np.arange(40) % 4]
    first, second = (
        np.hstack([groups + 0.15 * generator.normal(size=groups.shape), np.full((40, 1), 5.0)]) for _ in "ab"
    )
    noise = np.hstack([generator.normal(size=(40, 4)), np.full((40, 1), 5.0)])
    found, chance = similarity_agreement(first, second), similarity_agreement(first, noise)
    assert found.agreement > 0.6 > 0.2 > abs(chance.agreement)
    assert found.scores.shape == (40,)
    by_hand = [
        (rows - rows.mean(0)) / np.linalg.norm(rows - rows.mean(0), axis=1, keepdims=True) for rows in (first, second)
    ]
    pair = [np.delete((rows @ rows.T)[7], 7) for rows in by_hand]
    assert found.scores[7] == pytest.approx(np.corrcoef(*pair)[0, 1])
    with pytest.raises(DataError):
        similarity_agreement(first[:2], second[:2])
