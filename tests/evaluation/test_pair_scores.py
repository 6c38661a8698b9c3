from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from support import make_document

from simlte_st.errors import DataError, MissingExtraError
from simlte_st.evaluation import Bm25Scores, CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.lexical import Bm25Index

TEXTS = [make_document(number) for number in range(9)] + ["?"]


def all_kinds() -> list[PairScores]:
    vectors = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    return [CosineScores(vectors), TfidfScores(TEXTS), Bm25Scores(TEXTS)]


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
    cosine, tfidf, bm25 = all_kinds()
    everything = np.arange(10)
    assert np.diag(cosine.rows(everything, everything)) == pytest.approx(1.0)
    vectors = TfidfVectorizer(sublinear_tf=True).fit_transform(TEXTS).toarray()
    assert tfidf.rows(everything, everything) == pytest.approx(vectors @ vectors.T)
    assert bm25.rows(everything, everything)[9].tolist() == [0.0] * 10  # a query without words
    whole = bm25.rows(everything[:9], everything[:9])
    assert whole.argmax(axis=1).tolist() == list(range(9))
    assert whole != pytest.approx(whole.T)  # which text is the query matters


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="not finite"):
        CosineScores([[1.0, np.nan]])
    with pytest.raises(DataError, match="cannot be fitted"):
        TfidfScores(["?", "!"])
    with pytest.raises(DataError, match="None of the 2 texts"):
        Bm25Index(["?", "!"])
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtraError, match=r"simlte-st\[bm25\]"):
        Bm25Scores(TEXTS)
