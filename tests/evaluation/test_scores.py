from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import bootstrap
from sklearn.feature_extraction.text import TfidfVectorizer
from support import make_document

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.scores import RESAMPLES, bootstrap_interval

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


def test_tfidf_finds_words_in_every_script() -> None:
    texts = ["天气很好", "今天天气", "ข่าวด่วน", "ข่าวใหม่", "क्रिकेट में", "क्रिकेट और", "C++", "C#", "— ?"]
    rows = TfidfScores(texts).rows(np.arange(9), np.arange(9))
    assert min(rows[0, 1], rows[2, 3], rows[4, 5]) > 0
    assert rows[6, 7] == rows[0, 2] == 0
    german = TfidfScores(["die Regierung", "die Mannschaft", "die Regierung und"], stop_words=["de"])
    assert german.rows(np.array([0]), np.arange(3))[0].tolist() == pytest.approx([1, 0, 1])
    with pytest.raises(ConfigurationError, match="Did you mean 'en'"):
        TfidfScores(texts, stop_words=["english"])
    with pytest.raises(DataError, match="cannot be fitted"):
        TfidfScores(["?", "!"])


@pytest.mark.parametrize("seed", [0, 5])
def test_bootstrap_interval_matches_scipy(seed: int) -> None:
    values = np.random.default_rng(2).random(200)
    options = {"n_resamples": RESAMPLES, "method": "percentile", "random_state": np.random.default_rng(seed)}
    reference = bootstrap((values,), np.mean, **options)
    assert bootstrap_interval(values, seed) == pytest.approx(tuple(reference.confidence_interval), rel=1e-12)


def test_bootstrap_interval_is_seeded_for_any_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(4).random(100)
    before = torch.random.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()
    first = bootstrap_interval(values, seed=5)
    assert first == bootstrap_interval(values, seed=5) != bootstrap_interval(values, seed=6)
    monkeypatch.setattr("simlte_st.models.vectors._SCRATCH_VALUES", 700)
    assert first == bootstrap_interval(values, seed=5)
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])
