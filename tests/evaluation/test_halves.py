from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.evaluation import bootstrap_interval, halves, split_half_retrieval, split_half_views, structure_agreement
from simlte_st.evaluation.halves import similarity_agreement
from simlte_st.evaluation.scores import TfidfScores


def test_split_half_retrieval_by_hand() -> None:
    # Angles in degrees. Query 0 finds its other half; query 1 is nearer to B 2 than to B 1; query 2 ranks its own half
    # third.
    angles_a, angles_b = np.deg2rad([0.0, 40.0, 10.0]), np.deg2rad([1.0, 90.0, 55.0])
    a = np.stack([np.cos(angles_a), np.sin(angles_a)], axis=1) * [[1.0], [5.0], [0.1]]  # vector lengths must not matter
    b = np.stack([np.cos(angles_b), np.sin(angles_b)], axis=1)
    result = split_half_retrieval(a, b)
    assert result.ranks.tolist() == [1, 3, 2]
    assert result.top1 == pytest.approx(1 / 3)
    assert result.mrr == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert result.documents == 3
    assert (result.mrr_low, result.mrr_high) == bootstrap_interval([1, 1 / 3, 1 / 2])
    assert (result.top1_low, result.top1_high) == bootstrap_interval([1, 0, 0])


def test_ranks_match_a_double_loop_for_any_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    a = generator.normal(size=(37, 6)).astype(np.float32)
    b = a + generator.normal(size=(37, 6)).astype(np.float32)
    cosine = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    ranks = [1 + sum(cosine[i][j] >= cosine[i][i] for j in range(37) if j != i) for i in range(37)]
    for rows in (1, 10, 37):
        monkeypatch.setattr("simlte_st.models.vectors._SCRATCH_VALUES", 37 * rows)
        assert split_half_retrieval(a, b).ranks.tolist() == ranks
    assert 1 / 37 < split_half_retrieval(a, b).top1 < 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [3, 384, 767])
def test_collapsed_model_scores_at_most_chance(dtype: type, dim: int) -> None:
    point = np.random.default_rng(2).normal(size=dim).astype(dtype)
    result = split_half_retrieval(np.tile(point, (203, 1)), np.tile(point, (203, 1)))
    assert result.top1 == 0.0
    assert result.mrr == pytest.approx(1 / 203)


def test_documents_that_cannot_be_split_are_skipped(corpus: list[Document], caplog: pytest.LogCaptureFixture) -> None:
    anchors, _ = split_half_views([*corpus, Document("one", "word")])
    assert len(anchors) == len(corpus)
    assert "1 of 49 documents" in caplog.text
    with pytest.raises(DataError, match="got 1"):
        split_half_views([corpus[0], Document("one", "word")])


@pytest.mark.parametrize("measure", [split_half_retrieval, structure_agreement, similarity_agreement])
def test_invalid_halves_are_refused(measure: Callable[..., object]) -> None:
    rows = np.eye(6)
    with pytest.raises(DataError, match=r"\(6, 6\) and \(5, 6\)"):
        measure(rows, rows[:5])
    with pytest.raises(DataError, match="at least 2 documents"):
        measure(rows[:1], rows[:1])
    with pytest.raises(DataError, match="NaN or inf"):  # NaN compares false with everything, which would rank first
        measure(rows * np.nan, rows)


def of_words(anchors: list[str], positives: list[str]) -> halves.SplitHalfResult:
    return halves.result_from_ranks(halves.ranks_of_halves(TfidfScores([*anchors, *positives])))


def test_tfidf_ties_count_as_losses() -> None:
    texts = ["alpha beta", "alpha beta", "gamma delta", "delta gamma epsilon"]
    assert of_words(texts, texts).ranks.tolist()[:2] == [2, 2]
    assert of_words(["same words"] * 5, ["same words"] * 5).mrr == pytest.approx(0.2)
    # A document without words is equally similar to all others.
    ranks = of_words(["?", "alpha beta", "gamma"], ["alpha", "beta alpha", "gamma"]).ranks
    assert ranks.tolist() == [3, 1, 1]
    with pytest.raises(DataError, match="at least 2"):
        of_words(["alpha beta"], ["beta alpha"])


def test_structure_agreement_by_hand() -> None:
    # Nearest on the other side by angle: 1, 0, 3, 2 for the first halves; 1, 0, 1, 2 for the second ones.
    angles = ([0, 10, 90, 95], [1, 11, 50, 93])
    sides = [np.stack([np.cos(np.radians(side)), np.sin(np.radians(side))], axis=1) for side in angles]
    result = structure_agreement(*sides)
    assert result.scores.tolist() == [1, 1, 0, 1], "of three others, the nearest is compared"
    assert (result.agreement, result.documents) == (0.75, 4)


def test_texts_without_common_words_are_not_neighbours() -> None:
    nothing = ["?", "!", "...", "-", ";", "a b"] * 2
    assert halves.agreement_of_scores(TfidfScores(["alpha", *nothing[1:], "alpha", *nothing[1:]])).agreement == 0.0
    near, _ = halves.neighbours_by_words(["one two", "two one", *"?!;:."], ["one two", "two one", *"?!;:."])
    assert near[0].tolist() == [1, -1]
    assert (near[2:] == -1).all()


def test_words_agreement_by_hand() -> None:
    """The nearest halves of the same side, compared with those of the other side by words."""
    first = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    words = np.array([[1], [0], [3], [0]]), np.array([[1], [2], [3], [2]])
    assert halves.words_agreement(first, first, words).scores.tolist() == [1.0, 0.5, 1.0, 0.5]


def test_similarity_agreement_ignores_a_common_direction() -> None:
    generator = np.random.default_rng(0)
    groups = np.eye(4)[np.arange(40) % 4]
    common = np.full((40, 1), 5.0)
    first, second = (np.hstack([groups + 0.15 * generator.normal(size=groups.shape), common]) for _ in "ab")
    noise = np.hstack([generator.normal(size=(40, 4)), common])
    found, chance = similarity_agreement(first, second), similarity_agreement(first, noise)
    assert found.agreement > 0.6 > 0.2 > abs(chance.agreement)
    assert found.scores.shape == (40,)
    centred = [rows - rows.mean(0) for rows in (first, second)]
    by_hand = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in centred]
    pair = [np.delete((rows @ rows.T)[7], 7) for rows in by_hand]
    assert found.scores[7] == pytest.approx(np.corrcoef(*pair)[0, 1])
    with pytest.raises(DataError, match="at least 3 documents"):
        similarity_agreement(first[:2], second[:2])
