from __future__ import annotations

import numpy as np
import pytest

from simlte_st.exploration.topic_terms import WORDS, topic_terms


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
