"""Documents, queries and explanations share the rules for terms; long queries keep their best words."""

from __future__ import annotations

import math
import time
import unicodedata
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from simlte_st import Index
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError
from simlte_st.files import read_json
from simlte_st.search import words
from simlte_st.search.words import MAX_QUERY_WORDS, WORDS_FILE, WordCounts, terms_by_word


def languages(index: Index) -> list[str]:
    """Return the languages of an index's documents."""
    return list(index._settings["languages"])


def test_query_keeps_the_most_informative_words() -> None:
    known = WordCounts(documents=100, indexed=100, counts={"ba": 99, "bei": 20, "bo": 2})
    assert list(known.top_words("The ba ba ba. Bei bei bo, cun and not the bei!", ["en"])) == [
        "cun",
        "bo",
        "bei",
        "ba",
    ]
    # a word frequent in the query counts more than a rarer word
    assert list(known.top_words("bei " * 9 + "cun", ["en"])) == ["bei", "cun"]
    weight = (1 + math.log(9)) * math.log1p((100 - 20 + 0.5) / (20 + 0.5))
    assert weight > math.log1p((100 - 1 + 0.5) / (1 + 0.5)) > weight / (1 + math.log(9))
    many = " ".join(f"w{number} " * (1 + number % 3) for number in range(3 * MAX_QUERY_WORDS))
    assert list(known.top_words(many, ["en"])) == sorted(f"w{number}" for number in range(2, 3 * MAX_QUERY_WORDS, 3))
    mixed = " ".join(f"{number}.5 {chr(0x4E00 + number)} x{number}" for number in range(MAX_QUERY_WORDS))
    assert set(known.top_words(mixed, ["en"])) == {chr(0x4E00 + number) for number in range(MAX_QUERY_WORDS)}
    assert list(known.top_words("10.25 bo", ["en"])) == ["10", "10.25", "25", "bo"]
    assert WordCounts().top_words("Floods and flooding flood the zebra", ["en"]) == {
        "flood": "floods",
        "zebra": "zebra",
    }
    assert WordCounts().top_words("", ["en"]) == {}
    assert list(WordCounts().top_words("the and of", ["en"])) == ["and", "of", "the"]


def test_word_weight_uses_its_most_frequent_term() -> None:
    known = WordCounts(documents=100, indexed=100, counts={"regier": 90, "zug": 5})
    found = known.top_words("Regierung Zug", ["de", "nl"])
    assert list(dict.fromkeys(found.values())) == ["zug", "regierung"]
    assert terms_by_word(found)["regierung"][0] == "regier"
    assert known.weights(found) == {**dict.fromkeys(found, 2**-5), "regier": 1.0, "zug": 1.0, "zug\u0301": 0.5}
    many = " ".join(f"mot{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(2 * MAX_QUERY_WORDS))
    assert len(terms_by_word(known.top_words(many, ["fr"]))) == MAX_QUERY_WORDS


def test_words_are_recounted_when_the_index_doubles(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index.create(tmp_path / "index", model)

    def add(*numbers: int) -> dict[str, object]:
        index.add([Document(str(number), f"The zebra w{number} w{number % 2}x.") for number in numbers])
        return read_json(index.folder / WORDS_FILE)

    assert add(0, 1, 2) == {"documents": 3, "indexed": 3, "counts": {"the": 3, "w0x": 2, "zebra": 3}}
    assert add(3, 4)["indexed"] == 3
    found = add(5)
    assert found == {"documents": 6, "indexed": 6, "counts": {"the": 6, "w0x": 3, "w1x": 3, "zebra": 6}}
    (index.folder / WORDS_FILE).unlink()  # as if a process was killed before counting
    assert asdict(Index.open(index.folder, model)._snapshot()._counts) == found
    assert list(index._snapshot().query_words("zebra w0x w5")[0]) == ["w5", "w0x", "zebra"]
    monkeypatch.setattr(words, "_SAMPLE", 4)
    assert add(*range(6, 20))["documents"] == 4


def test_foreign_stems_do_not_count_as_rare_words(model: SentenceTransformer, tmp_path: Path) -> None:
    text = "I think that they {} it with the others of {}."
    documents = [Document(str(row), text.format("make", "x" * row)) for row in range(20)]
    documents.append(Document("stem", text.format("mak", "it")))
    documents.append(Document("german", "Der Zug ist mit den anderen nicht auf dem Weg in die Stadt."))
    documents.append(Document("dutch", "De trein is met de anderen niet op weg naar het huis van een vriend."))
    index = Index.create(tmp_path / "index", model)
    index.add(documents)
    assert len(languages(index)) > 1
    hits = index.search("make", top_k=21, mode="text", explain=True)
    scores = {hit.id: hit.bm25 or 0.0 for hit in hits}
    assert 0 < scores.pop("stem") < 1.5 * max(scores.values())
    assert all(sum(score for _, score in hit.words) == pytest.approx(hit.bm25) for hit in hits)


LETTERS = st.characters(categories=["Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No"])
MARKS = st.characters(categories=["Mn", "Mc"])
WORDS = st.text(st.one_of(LETTERS, LETTERS, LETTERS, MARKS), min_size=1, max_size=12)
JOINED = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(".,:-/'’@_").map(lambda mark: mark.join(parts))
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.one_of(WORDS, JOINED), min_size=1, max_size=5), min_size=1, max_size=8))
def test_any_word_finds_its_document(model: SentenceTransformer, tmp_path: Path, texts: list[list[str]]) -> None:
    index = Index.create(tmp_path / f"index{time.monotonic_ns()}", model)
    documents = [Document(f"d{number}", f"{number} {' '.join(own)}") for number, own in enumerate(texts)]
    index.add(documents)
    for number, own in enumerate(texts):
        for word in own:
            if any(unicodedata.category(sign)[0] in "LN" for sign in unicodedata.normalize("NFKD", word)):
                hits = index.search(word, mode="text", top_k=len(texts))
                assert f"d{number}" in [hit.id for hit in hits], (word, word)


def test_exact_names_and_numbers_rank_first(model: SentenceTransformer, tmp_path: Path) -> None:
    hosts = [
        f"The host alpha{number} with the address 10.{number % 7}.{number % 11}.{number} stands in rack {number % 9}. "
        f"Its owner is Kowal{chr(97 + number // 10)}{chr(97 + number % 10)}ski, its contract INV-2024-{number:04d}. "
        + "It is on in the night and in the day. "
        * 3
        for number in range(150)
    ]
    index = Index.create(tmp_path / "hosts", model)
    index.add([Document(f"host{number}", text) for number, text in enumerate(hosts)])
    for number in range(0, 150, 30):
        for asked in (
            f"Which host has the address 10.{number % 7}.{number % 11}.{number}?",
            f"inv-2024-{number:04d}",
            f"Who is the owner, kowal{chr(97 + number // 10)}aski, and what host stands in which rack?",
            f"alpha{number}",
        ):
            assert index.search(asked, explain=True)[0].id == f"host{number}", asked


TEXTS = {
    "de0": "Die Regierungen der Länder haben sich mit den Universitäten über die neuen Häuser geeinigt.",
    "de1": "Eine Universität ist kein Haus, und auch die Regierung hat das nicht gesagt.",
    "de2": "Über den Fluss führt eine Brücke, die vor hundert Jahren gebaut wurde und jetzt zu schmal ist.",
    "fr0": "Les universités des régions ont été créées par le gouvernement, et elles sont dans de belles maisons.",
    "fr1": "Une maison est dans la région, et le gouvernement ne veut pas que nous y allions avec les autres.",
    "en0": "The universities of the region were founded by the government, and they are in beautiful houses.",
    "en1": "It was to die for: the house that they have built, and which is not what we had wanted to see.",
}


def test_documents_are_stemmed_in_their_own_language(model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model)
    index.add([Document(name, text) for name, text in TEXTS.items()])
    assert sorted(languages(index)) == ["de", "en", "fr"]

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
    assert languages(Index.open(index.folder, model)) == languages(index)
    index.add(
        [Document("ru", "Университеты страны были основаны правительством, и они находятся в домах, что у реки.")]
    )
    assert "ru" in languages(index)
    assert found("университет") == ["ru"]


def test_language_option_is_kept(model: SentenceTransformer, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", model, language="DE")
    index.add([Document("a", "Häuser"), Document("b", "Haus")])
    index = Index.create(tmp_path / "index", model, exist_ok=True)
    index.add([Document("c", "The house of the rising sun is what they call it, and it has been there.")])
    assert languages(index) == ["de"]
    assert sorted(hit.id for hit in index.search("Haus", mode="text")) == ["a", "b"]
    assert Index.create(tmp_path / "index", model, language="de", exist_ok=True)
    with pytest.raises(ConfigurationError, match=r"made with language=de"):
        Index.create(tmp_path / "index", model, language="en", exist_ok=True)
    with pytest.raises(ConfigurationError, match=r"language='german'.*Did you mean 'de'"):
        Index.create(tmp_path / "other", model, language="german")
