from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from simlte_st.errors import DataError
from simlte_st.evaluation import (
    SplitHalfResult,
    TfidfScores,
    draw_shots,
    fit_probe,
    split_half_retrieval,
    tfidf_few_shot,
    tfidf_probe,
)
from simlte_st.evaluation.lexical import Bm25Index
from simlte_st.evaluation.split_half import split_half_of_scores

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


def labelled(n: int, seed: int) -> tuple[list[str], list[str]]:
    generator = np.random.default_rng(seed)
    labels = [("x", "y", "z")[i % 3] for i in range(n)]
    weights = {label: np.roll(np.r_[np.full(20, 2.0), np.full(60, 1.0)], 25 * i) for i, label in enumerate("xyz")}
    texts = [" ".join(generator.choice(WORDS, 25, p=weights[y] / weights[y].sum())) for y in labels]
    return texts, labels


def of_words(anchors: list[str], positives: list[str]) -> SplitHalfResult:
    return split_half_of_scores(TfidfScores([*anchors, *positives]))


def test_split_half_of_tfidf_is_cosine_of_scikit_learns_vectors() -> None:
    anchors, positives = pairs(40, 3)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(anchors + positives)
    dense = split_half_retrieval(vectorizer.transform(anchors).toarray(), vectorizer.transform(positives).toarray())
    sparse = of_words(anchors, positives)
    assert sparse.ranks.tolist() == dense.ranks.tolist()
    assert (sparse.top1, sparse.mrr, sparse.mrr_low) == (dense.top1, dense.mrr, dense.mrr_low)
    assert sparse.alignment is None
    assert sparse.uniformity is None
    assert set(sparse.metrics()) == {"top1", "top1_low", "top1_high", "mrr", "mrr_low", "mrr_high", "documents"}
    assert 1 / 40 < sparse.top1 < 1.0


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


def test_bm25_against_the_formula() -> None:
    anchors, positives = pairs(25, 3, seed=4)
    queries, corpus = [t.split() for t in anchors], [t.split() for t in positives]
    length = np.mean([len(words) for words in corpus])

    def score(query: list[str], document: list[str]) -> float:
        total = 0.0
        for word in query:
            df = sum(word in other for other in corpus)
            tf = document.count(word)
            if tf:  # Lucene's variant, the default of bm25s: k1 = 1.5, b = 0.75
                idf = np.log(1 + (len(corpus) - df + 0.5) / (df + 0.5))
                total += idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(document) / length))
        return total

    scores = [[score(query, document) for document in corpus] for query in queries]
    assert Bm25Index(positives).scores(anchors) == pytest.approx(np.array(scores), rel=1e-5)


def test_bm25_scores_equal_texts_equally_and_knows_nothing_without_words() -> None:
    index = Bm25Index(["alpha beta", "gamma delta", "alpha beta"])
    found, nothing = index.scores(["beta alpha", "?"])
    assert found[0] == found[2] > found[1] == 0.0
    assert nothing.tolist() == [0.0, 0.0, 0.0]


def test_tfidf_probe_is_scikit_learns_pipeline() -> None:
    (texts, labels), (test_texts, test_labels) = labelled(60, 0), labelled(60, 1)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts)
    model = LogisticRegression(C=100, max_iter=2000).fit(vectorizer.transform(texts), labels)
    predicted = model.predict(vectorizer.transform(test_texts))
    result = tfidf_probe(texts, labels, test_texts, test_labels, inverse_l2=100.0)
    assert result.accuracy == accuracy_score(test_labels, predicted)
    assert result.macro_f1 == f1_score(test_labels, predicted, average="macro")
    assert 0.4 < result.accuracy < 1.0


def test_tfidf_learns_rare_classes_too() -> None:
    generator = np.random.default_rng(0)

    def drawn(counts: dict[str, int]) -> tuple[list[str], list[str]]:
        labels = [label for label, count in counts.items() for _ in range(count)]
        return [" ".join([label, *generator.choice(WORDS, 30)]) for label in labels], labels

    parts = (*drawn({"often": 200, "seldom": 8, "rare": 8}), *drawn({"often": 20, "seldom": 20, "rare": 20}))
    # Each class has a word of its own. A baseline that answers with the frequent class flatters what it stands beside.
    assert tfidf_probe(*parts, inverse_l2=1.0).macro_f1 < 0.2
    assert tfidf_probe(*parts).macro_f1 > 0.5


def test_tfidf_few_shot_uses_the_same_draws() -> None:
    (texts, labels), (test_texts, test_labels) = labelled(60, 0), labelled(60, 1)
    result = tfidf_few_shot(texts, labels, test_texts, test_labels, shots=4, draws=3, seed=2)
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(texts)
    x, tx = vectorizer.transform(texts).toarray(), vectorizer.transform(test_texts).toarray()
    for draw in range(3):
        rows = draw_shots(labels, 4, draw, 2)
        expected = fit_probe(x[rows], [labels[i] for i in rows], tx, test_labels, head="logistic", seed=2 + draw)
        assert result.draws[draw].accuracy == pytest.approx(expected.accuracy, abs=0.02)


def test_tfidf_refusals() -> None:
    with pytest.raises(DataError, match="cannot be fitted"):
        tfidf_probe(["?", "!"], [0, 1], ["word"], [0])
    with pytest.raises(DataError, match="test part"):
        tfidf_probe(["one", "two"], [0, 1], ["word"], [0, 1])
    with pytest.raises(DataError, match="training part"):
        tfidf_few_shot(["one", "two"], [0], ["word"], [0])
