from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st import Index
from simlte_st.data import Document
from simlte_st.files import read_json
from simlte_st.search import words
from simlte_st.search.words import MOST_WORDS, WORDS_FILE, WordCounts, terms_by_word


def test_the_words_that_say_most() -> None:
    known = WordCounts(documents=100, indexed=100, counts={"ba": 99, "bei": 20, "bo": 2})
    assert list(known.of_query("The ba ba ba. Bei bei bo, cun and not the bei!", ["en"])) == ["cun", "bo", "bei", "ba"]
    # what is often asked for counts more than what is rarer
    assert list(known.of_query("bei " * 9 + "cun", ["en"])) == ["bei", "cun"]
    weight = (1 + math.log(9)) * math.log1p((100 - 20 + 0.5) / (20 + 0.5))
    assert weight > math.log1p((100 - 1 + 0.5) / (1 + 0.5)) > weight / (1 + math.log(9))
    many = " ".join(f"w{number} " * (1 + number % 3) for number in range(3 * MOST_WORDS))
    assert list(known.of_query(many, ["en"])) == sorted(f"w{number}" for number in range(2, 3 * MOST_WORDS, 3))
    mixed = " ".join(f"{number}.5 {chr(0x4E00 + number)} x{number}" for number in range(MOST_WORDS))
    assert set(known.of_query(mixed, ["en"])) == {chr(0x4E00 + number) for number in range(MOST_WORDS)}
    assert "वर्षा" in known.of_query(mixed.replace(chr(0x4E00), "वर्षा"), ["en"])
    assert list(known.of_query("10.25 bo", ["en"])) == ["10", "10.25", "25", "bo"]
    assert WordCounts().of_query("Floods and flooding flood the zebra", ["en"]) == {"flood": "floods", "zebra": "zebra"}
    assert WordCounts().of_query("", ["en"]) == {}
    assert list(WordCounts().of_query("the and of", ["en"])) == ["and", "of", "the"]


def test_a_word_is_as_rare_as_the_most_frequent_of_its_terms() -> None:
    known = WordCounts(documents=100, indexed=100, counts={"regier": 90, "zug": 5})
    found = known.of_query("Regierung Zug", ["de", "nl"])
    assert list(dict.fromkeys(found.values())) == ["zug", "regierung"]
    assert terms_by_word(found)["regierung"][0] == "regier"
    assert known.weights(found) == {**dict.fromkeys(found, 2**-5), "regier": 1.0, "zug": 1.0, "zug\u0301": 0.5}
    many = " ".join(f"mot{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(2 * MOST_WORDS))
    assert len(terms_by_word(known.of_query(many, ["fr"]))) == MOST_WORDS


def test_words_are_counted_when_an_index_has_doubled(
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
    (index.folder / WORDS_FILE).unlink()  # as where a process is killed before it counts
    assert asdict(Index.open(index.folder, model)._searcher._words) == found
    assert list(index._searcher.words_of_query("zebra w0x w5")[0]) == ["w5", "w0x", "zebra"]
    monkeypatch.setattr(words, "_SAMPLE", 4)
    assert add(*range(6, 20))["documents"] == 4


@pytest.mark.parametrize(("query", "other"), [("make", "mak"), ("home", "hom"), ("notice", "notic")])
def test_the_stem_in_another_language_is_no_rare_word(
    query: str, other: str, model: SentenceTransformer, tmp_path: Path
) -> None:
    text = "I think that they {} it with the others of {}."
    documents = [Document(str(row), text.format(query, "x" * row)) for row in range(20)]
    documents.append(Document("stem", text.format(other, "it")))
    documents.append(Document("german", "Der Zug ist mit den anderen nicht auf dem Weg in die Stadt."))
    documents.append(Document("dutch", "De trein is met de anderen niet op weg naar het huis van een vriend."))
    index = Index.create(tmp_path / "index", model)
    index.add(documents)
    assert len(index.languages) > 1
    hits = index.search(query, top_k=21, mode="text", explain=True)
    scores = {hit.id: hit.bm25 or 0.0 for hit in hits}
    assert 0 < scores.pop("stem") < 1.5 * max(scores.values())
    assert all(sum(score for _, score in hit.words) == pytest.approx(hit.bm25) for hit in hits)
