from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from support import make_document

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import (
    CosineScores,
    PairScores,
    SplitHalfResult,
    TfidfScores,
)
from simlte_st.evaluation.halves import ranks_of_halves, result_from_ranks

TEXTS = [make_document(number) for number in range(9)] + ["?"]


def all_kinds() -> list[PairScores]:
    vectors = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    return [CosineScores(vectors), TfidfScores(TEXTS)]


@pytest.mark.parametrize("scores", all_kinds(), ids=lambda scores: type(scores).__name__)
def test_rows_and_pairs_agree(scores: PairScores) -> None:
    everything = np.arange(10)
    whole = scores.rows(everything, everything)
    assert scores.size == 10
    assert whole.shape == (10, 10)
    assert np.isfinite(whole).all()
    pairs = np.array([(3, 1), (1, 3), (9, 0), (3, 8), (2, 2)])
    assert scores.pairs(pairs) == pytest.approx(whole[pairs[:, 0], pairs[:, 1]], abs=1e-6)
    some = scores.rows(np.array([4, 2]), np.array([7, 0, 2]))
    assert some == pytest.approx(whole[[4, 2]][:, [7, 0, 2]], abs=1e-6)


def test_cosine_and_tfidf_are_cosines() -> None:
    cosine, tfidf = all_kinds()
    everything = np.arange(10)
    assert np.diag(cosine.rows(everything, everything)) == pytest.approx(1.0)
    vectors = TfidfVectorizer(sublinear_tf=True).fit_transform(TEXTS).toarray()
    assert tfidf.rows(everything, everything) == pytest.approx(vectors @ vectors.T)


def test_refusals() -> None:
    with pytest.raises(DataError, match="not finite"):
        CosineScores([[1.0, np.nan]])
    with pytest.raises(DataError, match="cannot be fitted"):
        TfidfScores(["?", "!"])


def test_every_script_has_words(caplog: pytest.LogCaptureFixture) -> None:
    texts = ["天气很好", "今天天气", "ข่าวด่วน", "ข่าวใหม่", "क्रिकेट में", "क्रिकेट और", "C++", "C#", "— ?"]
    rows = TfidfScores(texts).rows(np.arange(9), np.arange(9))
    assert min(rows[0, 1], rows[2, 3], rows[4, 5]) > 0
    assert rows[6, 7] == rows[0, 2] == 0
    assert "1 of 9 texts have no word" in caplog.text
    german = TfidfScores(["die Regierung", "die Mannschaft", "die Regierung und"], stop_words=["de"])
    assert german.rows(np.array([0]), np.arange(3))[0].tolist() == pytest.approx([1, 0, 1])
    with pytest.raises(ConfigurationError, match="Did you mean 'en'"):
        TfidfScores(texts, stop_words=["english"])


WORDS = [f"word{i}" for i in range(80)]


def pairs(n: int, own: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Two views of each document, with ``own`` words in common beside common noise."""
    generator = np.random.default_rng(seed)
    anchors, positives = [], []
    for _ in range(n):
        topic = generator.choice(WORDS, own, replace=False).tolist()
        anchors.append(" ".join(topic + generator.choice(WORDS, 6).tolist()))
        positives.append(" ".join(topic + generator.choice(WORDS, 6).tolist()))
    return anchors, positives


def of_words(anchors: list[str], positives: list[str]) -> SplitHalfResult:
    return result_from_ranks(ranks_of_halves(TfidfScores([*anchors, *positives])))


def test_split_half_of_tfidf_finds_shared_words_and_loses_ties() -> None:
    assert of_words(*pairs(30, 12)).top1 > 0.9
    texts = ["alpha beta", "alpha beta", "gamma delta", "delta gamma epsilon"]
    assert of_words(texts, texts).ranks.tolist()[:2] == [2, 2]
    assert of_words(["same words"] * 5, ["same words"] * 5).mrr == pytest.approx(0.2)
    # A document without words is like every other one to it.
    ranks = of_words(["?", "alpha beta", "gamma"], ["alpha", "beta alpha", "gamma"]).ranks
    assert ranks.tolist() == [3, 1, 1]
    with pytest.raises(DataError, match="at least 2"):
        of_words(["alpha beta"], ["beta alpha"])
