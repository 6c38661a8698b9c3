from __future__ import annotations

import itertools
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.words.analyzer import content_terms, extract_terms, is_stop_word, normal, split_words, word_to_term

LETTERS = st.characters(categories=["Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No"])
MARKS = st.characters(categories=["Mn", "Mc"])
WORDS = st.text(st.one_of(LETTERS, LETTERS, LETTERS, MARKS), min_size=1, max_size=12)
JOINED = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(".,:-/'’@_").map(lambda mark: mark.join(parts))
)


def terms(text: str, language: str = "en") -> list[str]:
    return [each.term for each in extract_terms(text, language)]


@settings(max_examples=60)
@given(st.lists(st.one_of(WORDS, JOINED), min_size=1, max_size=12), st.sampled_from(["en", "de", "ar", "hi", "zh"]))
def test_terms_of_each_word_are_terms_of_the_text(words: list[str], language: str) -> None:
    """The terms of a chunk between spaces, analysed on its own, are all terms of the text."""
    for separator in (" ", "\n", ", ", " (", "; "):
        have = set(terms(separator.join(words), language))
        for word in words:
            own = set(terms(word, language))
            assert own <= have, (word, own - have)
            if any(unicodedata.category(sign)[0] in "LN" for sign in normal(word)):
                assert own
                assert split_words(word)
        assert not any(set(term) & set(" \t\n\r\x0b\x0c") or not term for term in have)


def test_stop_words_are_dropped_unless_alone() -> None:
    def words(text: str, *languages: str) -> list[str]:
        return list(dict.fromkeys(each.word for each in content_terms(text, languages or ["en"])))

    assert words("who is the winner of the match?") == ["winner", "match"]
    assert words("who is it?") == ["who", "is", "it"]
    assert words("the US economy") == ["US", "economy"]
    assert words("THE US ECONOMY") == ["ECONOMY"]
    assert words("the fire system") == ["fire", "system"]
    assert words("die Regierung und der Minister", "de") == ["Regierung", "Minister"]
    assert words("что такое река Волга", "ru") == ["река", "Волга"]
    assert words("l'université de la région", "fr") == ["l'université", "université", "région"]
    assert words("Dems on Medicaid: https://t.co/UTys94") == ["Dems", "Medicaid", "t.co/UTys94", "UTys94"]
    assert words("www.example.org") == ["www.example.org", "example", "org"]
    assert words("U.S. trade, 3.5%, D-3") == ["U.S", "trade", "3.5", "D-3"], "a part of one letter is rare, and noise"
    assert words("京都 3월", "ja") == ["京都", "京", "都", "3월", "월"], "a character is a word there"
    assert words("А.С. Пушкин", "ru") == ["А.С", "Пушкин"]
    assert words("die Regierung", "en", "de")[0] == "Regierung"
    assert "die" in words("to die for", "en", "de")
    assert is_stop_word("είναι", "el"), "the list has no accents"


def test_query_words_are_stemmed_in_each_index_language() -> None:
    found = [each.term for each in content_terms("universities", ["en", "nl"])]
    assert found[:2] == [word_to_term("universities", "en"), word_to_term("universities", "nl")]
    assert found[0] != found[1]
    counts = [each.term for each in content_terms("flood flood", ["en", "ru"])]
    assert counts == ["flood", "flood"]
    german = "und die Regierung hat sich mit den Universitäten darüber geeinigt, dass es so nicht weitergehen kann " * 2
    both, alone = ([each.term for each in content_terms(german, languages)] for languages in (["en", "de"], ["de"]))
    assert both == alone


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("de", "Häuser", "Haus"), ("de", "Ueberraschung", "Überraschungen"), ("de", "Straße", "STRASSEN"),
        ("fr", "élevés", "élevée"), ("es", "naciones", "nación"), ("ru", "книгами", "книга"), ("ru", "Ёлки", "елка"),
        ("hi", "लड़कियों", "लड़की"), ("hi", "हिंदी", "हिन्दी"), ("hi", "पाँच", "पांच"), ("hi", "काफ़ी", "काफी"),
        ("ar", "المكتبات", "مكتبة"), ("ar", "كِتَابٌ", "كتاب"), ("ar", "كتـــاب", "كتاب"), ("he", "שָׁלוֹם", "שלום"),
        ("fa", "كتاب", "کتاب"), ("tr", "ÇAĞRI", "çağrı"), ("en", "cafés", "cafe"), ("zh", "databases", "database"),
        ("en", "co\u00adoperation", "cooperation"), ("en", "word\u200bbreak", "wordbreak"), ("hi", "क्\u200dष", "क्ष"),
        ("en", "١٩٨٤", "1984"), ("hi", "१९८४", "1984"), ("th", "๑๙๘๔", "1984"), ("en", "ｆｕｌｌ", "full"),
        ("el", "ΣΊΣΥΦΟΣ", "σισυφος"), ("sv", "flickorna", "flicka"), ("tr", "kitaplar", "kitap"),
        ("pl", "książki", "książka"), ("cs", "knihami", "kniha"), ("it", "università", "universita"),
    ],
)  # fmt: skip
def test_word_forms_share_a_term(language: str, one: str, other: str) -> None:
    assert word_to_term(one, language) == word_to_term(other, language)


@pytest.mark.parametrize(
    ("language", "one", "bare"),
    [("es", "después", "despues"), ("fr", "considérée", "consideree"), ("fr", "Assemblée", "assemblee"),
     ("pt", "NÃO", "nao")],
)  # fmt: skip
def test_accented_and_bare_words_share_one_term(language: str, one: str, bare: str) -> None:
    assert word_to_term(one, language) != word_to_term(bare, language)
    for query, text in itertools.product((one, bare), repeat=2):
        shared = {each.term for each in content_terms(query, [language])} & set(terms(text, language))
        assert len(shared) == 1, "BM25 adds up the scores of terms"


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [("en", "C", "C++"), ("en", "C++", "C#"), ("en", "C#", "F#"), ("en", "🌊", "🔥"), ("hi", "काम", "कम"),
     ("bn", "ড়", "ঢ়"),
     ("dv", "ދިވެހި", "ދވހ"), ("th", "เสือ", "เสื่อ"), ("en", "12", "13")],
)  # fmt: skip
def test_different_words_have_different_terms(language: str, one: str, other: str) -> None:
    assert terms(one, language)
    assert not set(terms(one, language)) & set(terms(other, language)) - set("เสอ")


def test_terms_of_joined_words_symbols_and_scripts() -> None:
    assert terms("node.js (C++, C# and .NET)") == ["node.js", "node", "js", "c++", "c#", "and", ".net", "net"]
    assert terms("C++17, a+b, x+1, issue #12.") == ["c++", "17", "a", "b", "x", "1", "issu", "12"]
    assert terms("👩‍💻❤️🇩🇪 1️⃣") == ["👩", "💻", "❤", "🇩🇪", "1"]
    assert terms("下雨了", "zh") == ["下雨了", "下", "雨", "了", "下雨", "雨了"]
    assert terms("น้ำ", "th") == ["น้ํา", "น้ํ", "า", "น้ํา"]
    assert terms("강물이", "ko") == ["강물이", "강물", "물이"]
    assert terms("Windows下载", "zh") == ["windows下载", "window", "下", "载", "下载"]
    assert terms("می‌خواهم", "fa")[0] == word_to_term("میخواهم", "fa")
    assert word_to_term("کتاب", "fa") in terms("کتاب‌ها", "fa")


def test_surrounding_punctuation_is_stripped() -> None:
    assert [split_words(f"{sign}Snow,") for sign in "([{\"'\u201c\u2018"] == [["snow"]] * 7
    assert [terms(f"(Snow{sign}") for sign in ".,;:!?)]}\"'\u201d\u2019"] == [["snow"]] * 13
    expected = ["c++", ".net", "net", "3.5", "3", "5", "node.js", "node", "js"]
    assert terms("(C++) .NET, 3.5% “node.js”") == expected


def test_words_are_normalised() -> None:
    assert split_words("Don't stop: node.js, C++ & ÉTÉ!") == ["don", "t", "stop", "node", "js", "c++", "été"]
    assert split_words("天气 ข่าว") == ["天", "气", "ข่", "า", "ว"]
    assert split_words("क्रिकेट में") == ["क्रिकेट", "में"]
    assert split_words("Er\u00adde كِتَابٌ 🌊") == ["erde", "كتاب", "🌊"]
    assert split_words("— … ? _ __") == []
    assert split_words("_hard_ snake_case") == ["hard", "snake_case"]


def test_analysis_takes_linear_time() -> None:
    for text in ("a.-" * 60_000, "漢" * 60_000, "a" * 180_000, "x-" * 90_000 + "1", "'" * 180_000, "é́" * 60_000,
                 "+" * 180_000, "a+" * 90_000, "🇩" * 60_000, "\u200c" * 180_000, "Zm9v/3+b" * 22_000,
                 "0a ff 1c " * 20_000, "12.5,-3e-7\t" * 16_000, '{"id":17,"ok":[1,2]},' * 8_000):  # fmt: skip
        start = time.process_time()
        assert sum(1 for _ in extract_terms(text, "en")) >= 0
        assert len(split_words(text)) >= 0
        assert time.process_time() - start < 3


def test_tfidf_uses_the_analyzer_words() -> None:
    texts = ["वर्षा हुई", "天气很好", "naïve C++"]
    expected = ["वर्षा", "हुई", "天", "天气", "气", "气很", "很", "很好", "好", "naïve", "c++"]
    assert fit_tfidf(texts).get_feature_names_out().tolist() == sorted(expected)
