"""Documents, queries and reasons are made terms by the same rules, in every language: what a document says finds it."""

from __future__ import annotations

import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError
from simlte_st.files import SETTINGS_FILE, read_json, write_json
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
    "signs": "C++ is older than C#, F# and .NET",
    "marks": "ذَهَبَ الطَّالِبُ إِلَى المَكْتَبَةِ الكبـــيرة",
    "soft": "Do\u00adnau\u00addampf\u00adschiff \u0661\u0669\u0668\u0664",
    "mixed": "Windows下载 GPU가",
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
        ("🌊", "emoji"), ("c++", "signs"), ("C#", "signs"), ("F#?", "signs"), (".net", "signs"), ("NET", "signs"),
        ("المكتبة", "marks"), ("الطالب", "marks"), ("الكبيرة", "marks"), ("Donaudampfschiff", "soft"), ("1984", "soft"),
        ("کتاب", "fa"), ("강물", "ko"), ("हुई", "hi"), ("windows", "mixed"), ("gpu", "mixed"), ("下载", "mixed"),
    ],
)  # fmt: skip
def test_a_word_finds_its_document(found: Index, asked: str, name: str) -> None:
    hits = found.search(asked, mode="text", explain=True)
    assert name in [hit.id for hit in hits]
    own = next(hit for hit in hits if hit.id == name)
    assert own.words, "what BM25 has found is shown"
    assert own.bm25 == pytest.approx(sum(score for _, score in own.words), rel=1e-4) or len(own.words) == 8


LETTERS = st.characters(categories=["Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No"])
MARKS = st.characters(categories=["Mn", "Mc"])
WORDS = st.text(st.one_of(LETTERS, LETTERS, LETTERS, MARKS), min_size=1, max_size=12)
JOINED = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(".,:-/'’@_").map(lambda mark: mark.join(parts))
)


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
                assert f"d{number}" in [hit.id for hit in hits], (word, word)


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
    for number in range(0, 150, 30):
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


GERMAN = [
    "Die Regierungen der Länder haben sich mit den Universitäten über die neuen Häuser geeinigt.",
    "Eine Universität ist kein Haus, und auch die Regierung hat das nicht gesagt.",
    "Über den Fluss führt eine Brücke, die vor hundert Jahren gebaut wurde und jetzt zu schmal ist.",
]
FRENCH = [
    "Les universités des régions ont été créées par le gouvernement, et elles sont dans de belles maisons.",
    "Une maison est dans la région, et le gouvernement ne veut pas que nous y allions avec les autres.",
]
ENGLISH = [
    "The universities of the region were founded by the government, and they are in beautiful houses.",
    "It was to die for: the house that they have built, and which is not what we had wanted to see.",
]


@pytest.mark.parametrize(
    "query", ["Regierungen", "die Regierung", "Universitäten", "Haus", "HÄUSERN", "häuser", "Hauser"]
)
def test_words_find_their_other_forms(query: str, model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model)
    report = index.add([Document(f"d{number}", text) for number, text in enumerate(GERMAN)])
    assert report.languages == index.languages == ["de"]
    hits = index.search(query, mode="text", explain=True)
    assert sorted(hit.id for hit in hits) == ["d0", "d1"]
    assert all(word != "die" for hit in hits for word, _ in hit.words)


@pytest.mark.parametrize("query", ["considérée", "consideree"])
@pytest.mark.parametrize("one", ["considérée", "consideree"])
def test_a_word_with_accents_counts_once(query: str, one: str, model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model)
    texts = [f"La maison et {word} de la ville que le gouvernement a vus" for word in (one, "chemin", "fleuve")]
    index.add([Document(f"d{number}", text) for number, text in enumerate(texts)], language="fr")
    (found,) = index.search(query, mode="text", explain=True)
    assert (found.id, [word for word, _ in found.words]) == ("d0", [query])
    (other,) = index.search("chemin", mode="text")
    assert found.bm25 == pytest.approx(other.bm25, rel=0.1), "but for the length of the document, in terms"


def test_documents_are_stemmed_in_their_own_language(model: SentenceTransformer, tmp_path: Path) -> None:
    texts = {f"{name}{number}": text for name, own in (("de", GERMAN), ("fr", FRENCH), ("en", ENGLISH))
             for number, text in enumerate(own)}  # fmt: skip
    index = Index.create(tmp_path / "index", model)
    index.add([Document(name, text) for name, text in texts.items()])
    assert sorted(index.languages) == ["de", "en", "fr"]

    def found(query: str) -> list[str]:
        return sorted(hit.id for hit in index.search(query, mode="text", explain=True))

    assert found("Universität") == ["de0", "de1"]
    assert found("maisons") == ["fr0", "fr1"]
    assert found("house") == ["en0", "en1"]
    assert found("les régions") == found("region") == ["en0", "fr0", "fr1"]
    assert found("die Regierung") == ["de0", "de1"], "a stop word of German"
    assert "en1" in found("to die for"), "no stop word of English"
    hit = index.search("universities", mode="text", explain=True)[0]
    assert hit.bm25 == pytest.approx(sum(score for _, score in hit.words), rel=1e-4)
    assert len(hit.words) == 1, "a word is shown once, whatever it is in other languages"
    assert Index.open(index.folder, model).languages == index.languages
    index.add(
        [Document("ru", "Университеты страны были основаны правительством, и они находятся в домах, что у реки.")]
    )
    assert "ru" in index.languages
    assert found("университет") == ["ru"]


def test_a_named_language_is_kept(model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model)
    index.add([Document("a", "Häuser"), Document("b", "Haus")], language="de")
    index.add([Document("c", "The house of the rising sun is what they call it, and it has been there.")])
    assert index.languages == ["de"]
    assert sorted(hit.id for hit in index.search("Haus", mode="text")) == ["a", "b"]
    report = index.add([Document("a", "Häuser")], language="en")
    assert (report.stemmed, report.unchanged, report.encoded) == (3, 1, 0)
    assert "3 documents had their words stemmed anew (en)" in report.summary()
    assert [hit.id for hit in index.search("Haus", mode="text")] == ["b"]
    assert [hit.id for hit in index.search("houses", mode="text")] == ["c"]
    with pytest.raises(ConfigurationError, match=r"language='german'.*Did you mean 'de'"):
        index.add([Document("d", "Haus")], language="german")


def test_words_of_another_analyzer_are_searched_and_renewed(
    model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture, encoded: list[str]
) -> None:
    index = Index.create(tmp_path / "index", model)
    index.add([Document(f"d{number}", text) for number, text in enumerate(GERMAN)], language="en")
    settings = read_json(index.folder / SETTINGS_FILE)
    write_json(index.folder / SETTINGS_FILE, {**settings, "analyzer": {"version": 1}, "language": None})
    encoded.clear()

    old = Index.open(index.folder, model)
    assert [hit.id for hit in old.search("Regierungen", mode="text")] == ["d0"]
    assert "by another version" in caplog.text
    caplog.clear()
    report = old.add([Document("d0", GERMAN[0]), Document("d3", "Und die Regierung, die das nicht will, ist auch da.")])
    assert (report.stemmed, report.added, report.unchanged, len(encoded)) == (3, 1, 1, 1)
    for each in (old, Index.open(index.folder, model)):
        assert sorted(hit.id for hit in each.search("Regierungen", mode="text")) == ["d0", "d1", "d3"]
    assert not caplog.text
