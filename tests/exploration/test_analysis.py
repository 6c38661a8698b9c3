from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from simlte_st.errors import DataError
from simlte_st.exploration import analysis
from simlte_st.exploration.analysis import NEAREST, NONE, WORDS, find_topics, lay_out, nearest_documents, topic_terms
from simlte_st.exploration.corpus import HalfVectors


def blobs(groups: int, size: int, spread: float, seed: int = 0) -> NDArray[np.float32]:
    draw = np.random.default_rng(seed)
    vectors = np.repeat(np.eye(16)[:groups], size, axis=0) + spread * draw.normal(size=(groups * size, 16))
    return unit(vectors)


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make_halves(vectors: NDArray[np.float32], spread: float) -> HalfVectors:
    draw = np.random.default_rng(1)
    first, second = (unit(vectors + spread * draw.normal(size=vectors.shape)) for _ in range(2))
    return HalfVectors(np.arange(len(vectors)), first, second)


def test_number_of_topics_maximises_agreement_of_halves() -> None:
    for groups in (3, 6):
        vectors = blobs(groups, 60, 0.05)
        topics = find_topics(vectors, make_halves(vectors, 0.05))
        assert len(topics.centres) == groups
        assert topics.stability.agreement == 1.0
        truth = np.repeat(np.arange(groups), 60)
        assert len(set(zip(truth.tolist(), topics.by_document.tolist(), strict=True))) == groups
        assert topics.sizes.tolist() == [60] * groups
        assert topics.by_document.tolist() == find_topics(vectors, make_halves(vectors, 0.05)).by_document.tolist()
        np.testing.assert_allclose(np.linalg.norm(topics.centres, axis=1), 1, rtol=1e-5)


def test_documents_between_topics_get_none() -> None:
    clear, draw = blobs(4, 60, 0.02), np.random.default_rng(2)
    between = unit(np.tile(np.eye(16)[:4].sum(axis=0), (20, 1)) + 0.02 * draw.normal(size=(20, 16)))
    vectors = np.concatenate([clear, between])
    topics = find_topics(vectors, make_halves(vectors, 0.2), 4)
    assert (topics.by_document[:240] != NONE).all()
    assert (topics.by_document[240:] == NONE).mean() > 0.4
    assert topics.sizes.sum() == (topics.by_document != NONE).sum()


def test_number_of_topics_can_be_set() -> None:
    vectors = blobs(3, 30, 0.05)
    halves = make_halves(vectors, 0.05)
    topics = find_topics(vectors, halves, 5)
    assert len(topics.centres) == 5
    assert topics.stability.number == 5
    few = HalfVectors(np.arange(3), halves.first[:3], halves.second[:3])
    with pytest.raises(DataError, match="Only 3 documents"):
        find_topics(vectors, few)


@pytest.mark.filterwarnings("error")
def test_near_identical_documents_share_a_topic() -> None:
    draw = np.random.default_rng(3)
    two = unit(blobs(2, 20, 0.0) + 1e-7 * draw.normal(size=(40, 16)))  # like rounding differences between batches
    topics = find_topics(two, HalfVectors(np.arange(40), two, two))
    assert topics.sizes.tolist() == [20, 20]
    assert (topics.by_document != NONE).all()
    with pytest.raises(DataError, match="the same vector"):
        find_topics(two[:20], HalfVectors(np.arange(20), two[:20], two[:20]))


def test_names_distinguish_topics() -> None:
    texts = [f"Said rates rise stock market {word}" for word in "abc" for _ in range(4)]
    texts += [f"Said goal scored home team {word} goal goal" for word in "abc" for _ in range(4)]
    names = topic_terms(texts, np.repeat([0, 1], 12), 2)
    assert all(len(name) <= WORDS for name in names)
    assert "said" not in " ".join(names[0] + names[1])
    assert {word for term in names[0] for word in term.split()} <= {"rates", "rise", "stock", "market"}
    words = [word for term in names[1] for word in term.split()]
    assert len(words) == len(set(words)), "a word of a pair is not named again"
    texts = [f"A christian among christians, {word}" for word in "abc"] + ["Window of windows on programs"] * 3
    names = topic_terms(texts, np.repeat([0, 1], 3), 2)
    assert sum("christian" in term for term in names[0]) == 1, "nor in another form"


def test_scripts_without_spaces_and_texts_without_words() -> None:
    texts = ["天气 很好 今天天气", "天气 不好 天气预报", "股票 市场 上涨", "股票 市场 下跌"]
    names = topic_terms(texts, np.array([0, 0, 1, 1]), 2)
    assert any("天气" in term for term in names[0])
    assert any("股" in term for term in names[1])
    kana = ["ログを見る", "ログを書く", "ファイル", "ファイル名"]
    assert min(len(term) for name in topic_terms(kana, np.array([0, 0, 1, 1]), 2) for term in name if term < "一") > 1
    assert topic_terms(["1 2", "3 4"], np.array([0, 1]), 2) == [[], []]
    assert topic_terms(["red apples", "blue boats", "green trees"], np.array([0, 1, -1]), 2)[0] == ["red apples"]


def test_names_contain_only_words() -> None:
    said = ["She didn't wait", "They couldn’t sing", "We'll sing", "They’ve gone, she'd wait", "I don't; you're"]
    address = "see https://www.example.org/index.html, www.gnu.org/gpl or mail me@mail.example.com"
    address += " [me](./me.html)\n.. canonical-me:: :ref:`wait`"
    texts = [f"From: Ann\nTopic: Packages\n  of hers\n\n{text}, l'économie {address}" for text in said * 2]
    texts += ["Rates _rise_ 1.5bn and 100m in the 2000s' market's middle天"] * 9
    names = topic_terms(texts, np.repeat([0, 1], [10, 9]), 2)
    words = {word for term in names[0] for word in term.split()}
    assert words <= {"wait", "sing", "gone", "économie", "mail", "économie see", "see"}
    assert "économie" in words
    assert {word for term in names[1] for word in term.split()} == {"rates", "rise", "market", "middle", "天"}


GERMAN = ["Das ist die Regierung, und sie hat das Parlament {}", "Der Minister und die Regierung sind im Parlament {}"]
SPORT = ["Das ist der Trainer, und er hat die Mannschaft {}", "Die Mannschaft und der Trainer sind auf dem Platz {}"]
HINDI = ["क्रिकेट टीम ने मैच में बल्लेबाज {} को देखा", "टीम का बल्लेबाज और क्रिकेट मैच {}"]
FARMS = ["किसान ने खेत में फसल और ट्रैक्टर {} को देखा", "फसल और किसान का ट्रैक्टर खेत में {}"]
ARABIC = ["ذَهَبَ الفَرِيقُ إلى المَلْعَبِ في {}", "الفَرِيقُ في المَلْعَبِ من {}"]
BANKS = ["البَنْكُ في المَدِينَةِ من {}", "هذا البَنْكُ إلى المَدِينَةِ على {}"]


@pytest.mark.parametrize(
    ("one", "other", "language", "names"),
    [
        (GERMAN, SPORT, "de", {"regierung", "parlament", "minister", "trainer", "mannschaft", "platz"}),
        (HINDI, FARMS, "hi", {"क्रिकेट", "टीम", "मैच", "बल्लेबाज", "किसान", "खेत", "फसल", "ट्रैक्टर"}),
        (ARABIC, BANKS, "ar", {"الفريق", "الملعب", "البنك", "المدينة", "ذهب"}),
    ],
)
def test_names_are_whole_content_words(one: list[str], other: list[str], language: str, names: set[str]) -> None:
    texts = [text.format(number) for pair in (one, other) for number in range(6) for text in pair]
    for named in (None, language):
        found = topic_terms(texts, np.repeat([0, 1], 12), 2, named)
        assert all(found)
        assert {word for name in found for term in name for word in term.split()} <= names


def vectors(count: int) -> NDArray[np.float32]:
    return unit(np.random.default_rng(0).normal(size=(count, 8)) + 4 * np.eye(8)[np.arange(count) % 4])


def test_nearest_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    made = vectors(50)
    near, cosines = nearest_documents(made)
    assert near.shape == (50, NEAREST)
    full = made @ made.T
    np.fill_diagonal(full, -1)
    np.testing.assert_allclose(cosines, -np.sort(-full, axis=1)[:, :NEAREST], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(full, near, axis=1), cosines, atol=1e-6)
    assert nearest_documents(made[:4])[0].shape == (4, 3)


def test_map_keeps_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    made = vectors(80)
    one = lay_out(made, seed=2)
    assert one.places.shape == (80, 2)
    assert one.trustworthiness > 0.8
    np.testing.assert_array_equal(one.places, lay_out(made, seed=2).places)
    monkeypatch.setattr(analysis, "MAX_TSNE_DOCUMENTS", 60)
    beside = lay_out(made, seed=2)
    assert np.isfinite(beside.places).all()
    assert beside.trustworthiness > 0.7
    assert np.isfinite(lay_out(vectors(10)).places).all()
