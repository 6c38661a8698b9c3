"""Documents, questions and reasons are cut by the same rules, in every script: what a document says finds it."""

from __future__ import annotations

import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from simlte_st.data import Document
from simlte_st.data.analyzer import CONTENT_WORDS, content_terms, terms_of
from simlte_st.search import Index

FOUND = {
    "en": "The US IT system of node.js at 10.17.3.9 cost 12,500.75: a fire, a bill, interest. Don't ask INV-2024-0017.",
    "fr": "L'été à Besançon, d'après Œdipe : cœur",
    "de": "Straßenbahn, Füße und Äpfel",
    "tr": "İstanbul'da ığdır ÇAĞRI",
    "vi": "Đường phố Việt Nam",
    "el": "Ο ΣΊΣΥΦΟΣ κύλησε τον βράχο",
    "ru": "Ёлка стоит в лесу",
    "he": "שלום עולם",
    "ar": "النهر والسفينة ـ مدرسة",
    "fa": "می‌خواهم کتاب‌ها",
    "hi": "आज वर्षा हुई। नदी चढ़ गई।",
    "ta": "தமிழ் மொழி",
    "am": "ሰላም፡ለዓለም።",
    "ko": "강물이 올랐다. 배가 떠났다",
    "zh": "今天下雨了。河水上涨。",
    "ja": "今日は雨が降った。カメラと図書館",
    "th": "แม่น้ำขึ้นแล้ว เรือออก",
    "km": "ថ្ងៃនេះ មានភ្លៀង",
    "my": "မြန်မာဘာသာ စကား",
    "bo": "བོད་སྐད་ཡིག",
    "wide": "ｎｏｄｅ ① ½ ﬁre",
    "emoji": "🌊 flood wave🌊crest",
}


@pytest.fixture(scope="module")
def found(encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Index:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    index = Index.create(tmp_path_factory.mktemp("scripts") / "index", model)
    index.add([Document(name, text) for name, text in FOUND.items()])
    return index


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("fire", "en"), ("bill", "en"), ("system", "en"), ("interest", "en"), ("US IT", "en"), ("the", "en"),
        ("node.js", "en"), ("Node.JS?", "en"), ("10.17.3.9", "en"), ("12,500.75", "en"), ("INV-2024-0017", "en"),
        ("2024", "en"), ("don't", "en"), ("costs", "en"), ("été", "fr"), ("ete", "fr"), ("oedipe", "fr"),
        ("STRASSENBAHN", "de"), ("fusse", "de"), ("istanbul", "tr"), ("duong", "vi"), ("σίσυφος", "el"),
        ("елка", "ru"),
        ("עולם", "he"), ("مدرسة", "ar"), ("کتابها", "fa"), ("वर्षा", "hi"), ("नदी", "hi"), ("மொழி", "ta"),
        ("ለዓለም", "am"),
        ("올랐다", "ko"), ("下雨", "zh"), ("雨", "zh"), ("河水", "zh"), ("図書館", "ja"), ("カメラ", "ja"),
        ("เรือ", "th"),
        ("น้ำ", "th"), ("ភ្លៀង", "km"), ("ဘာသာ", "my"), ("སྐད", "bo"), ("node", "wide"), ("wave", "emoji"),
    ],
)  # fmt: skip
def test_a_word_finds_its_document(found: Index, asked: str, name: str) -> None:
    hits = found.search(asked, mode="text", explain=True)
    assert name in [hit.id for hit in hits], [each.term for each in terms_of(asked)]
    own = next(hit for hit in hits if hit.id == name)
    assert own.words, "what BM25 has found is shown"
    assert own.bm25 == pytest.approx(sum(score for _, score in own.words), rel=1e-4) or len(own.words) == 8


LETTERS = st.characters(categories=["Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No"])
MARKS = st.characters(categories=["Mn", "Mc"])
WORDS = st.text(st.one_of(LETTERS, LETTERS, LETTERS, MARKS), min_size=1, max_size=12)
JOINED = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(".,:-/'’@_").map(lambda mark: mark.join(parts))
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(WORDS, JOINED), min_size=1, max_size=12))
def test_any_word_of_any_text_is_a_term_of_it(words: list[str]) -> None:
    """Whatever stands between spaces in a text has, by itself, terms that the text has too: all of them."""
    for separator in (" ", "\n", ", ", " (", "; "):
        have = {each.term for each in terms_of(separator.join(words))}
        for word in words:
            terms = {each.term for each in terms_of(word)}
            assert terms <= have, (word, terms - have)
            if any(unicodedata.category(sign)[0] in "LN" for sign in unicodedata.normalize("NFKD", word)):
                assert terms
        assert not any(set(term) & set(" \t\n\r\x0b\x0c") or not term for term in have)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.one_of(WORDS, JOINED), min_size=1, max_size=5), min_size=1, max_size=8))
def test_any_word_of_any_document_finds_it(model: SentenceTransformer, tmp_path: Path, texts: list[list[str]]) -> None:
    index = Index.create(tmp_path / f"index{time.monotonic_ns()}", model)
    documents = [Document(f"d{number}", f"{number} {' '.join(words)}") for number, words in enumerate(texts)]
    index.add(documents)
    for number, words in enumerate(texts):
        for word in words:
            if any(unicodedata.category(sign)[0] in "LN" for sign in unicodedata.normalize("NFKD", word)):
                hits = index.search(word, mode="text", top_k=len(texts))
                assert f"d{number}" in [hit.id for hit in hits], (word, list(terms_of(word)))


def test_stop_words_are_left_out_where_there_are_others() -> None:
    def words(text: str) -> list[str]:
        return [each.word for each in content_terms(text)]

    assert words("who is the winner of the match?") == ["winner", "match"]
    assert words("who is it?") == ["who", "is", "it"]
    assert words("the US economy") == ["US", "economy"]
    assert words("THE US ECONOMY") == ["ECONOMY"]
    assert words("the fire system") == ["fire", "system"]
    assert CONTENT_WORDS <= ENGLISH_STOP_WORDS


def test_time_grows_with_the_length() -> None:
    for text in ("a.-" * 300_000, "漢" * 300_000, "a" * 900_000, "x-" * 450_000 + "1", "'" * 900_000, "é́" * 300_000):
        start = time.process_time()
        assert sum(1 for _ in terms_of(text)) >= 0
        assert time.process_time() - start < 10


NAMES = ("alpha", "beta", "gamma", "delta", "kappa")
HOSTS = [
    Document(
        f"host{number}",
        f"The host {NAMES[number % 5]}{number} with the address 10.{number % 7}.{number % 11}.{number} stands in rack "
        f"{number % 9}. Its owner is Kowal{'abcdefghijklmno'[number // 10]}{'klmnopqrst'[number % 10]}ski, its "
        f"contract is INV-2024-{number:04d}, and it costs {1000 + number},50 a year. "
        + "It is on in the night and in the day. "
        * 3,
    )
    for number in range(150)
]


def test_an_exact_name_or_number_comes_first_among_its_like(encoder_path: Path, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "hosts", SentenceTransformer(str(encoder_path), device="cpu"))
    index.add(HOSTS)
    for number in range(0, 150, 10):
        owner = HOSTS[number].text.split("owner is ")[1].split(",")[0]
        for asked in (
            f"10.{number % 7}.{number % 11}.{number}",
            f"Which host has the address 10.{number % 7}.{number % 11}.{number}?",
            f"inv-2024-{number:04d}",
            f"the contract INV-2024-{number:04d} of a host",
            owner,
            f"Who is the owner, {owner.lower()}, and what host stands in which rack?",
            f"{NAMES[number % 5]}{number}",
        ):
            hits = index.search(asked, explain=True)
            assert hits[0].id == f"host{number}", asked
