from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.search import Index
from simlte_st.search.hits import STATIC_VECTORS, VECTORS, fused_scores, shorten
from simlte_st.search.passages import PASSAGE
from simlte_st.search.words import MAX_QUERY_WORDS, WordCounts
from simlte_st.words.sentences import segment_document


def test_dense_search_ranks_by_cosine(index: Index, corpus: list[Document], model: SentenceTransformer) -> None:
    query, texts = "Ba bun bis.", [one.text for one in corpus]
    cosines = model.encode(texts, normalize_embeddings=True) @ model.encode(query, normalize_embeddings=True)
    hits = index.search(query, mode="dense", top_k=4)
    order = np.argsort(-cosines)[:4]
    assert [hit.id for hit in hits] == [f"d{row}" for row in order]
    np.testing.assert_allclose([hit.cosine for hit in hits], cosines[order], atol=1e-5)
    assert [hit.score for hit in hits] == [hit.cosine for hit in hits]
    assert hits[0].metadata == corpus[order[0]].metadata
    whole_words = texts[order[0]][:301].rpartition(" ")[0]
    assert hits[0].beginning == f"{whole_words} …"
    assert (hits[0].bm25, hits[0].words) == (None, ())


def test_text_search_ranks_by_bm25(index: Index) -> None:
    index.add(
        [Document("a", "Zebra ba. Zebras ba."), Document("b", "Zebra bun bis bun bis bun bis."), Document("c", "Ba.")]
    )
    hits = index.search("the zebra", mode="text")
    assert [hit.id for hit in hits] == ["a", "b"]
    assert hits[0].score == hits[0].bm25 > hits[1].score > 0
    assert hits[0].cosine is None
    assert len(index.search("the of and", mode="text")) == 0


def test_names_are_searched_like_words(model: SentenceTransformer, tmp_path: Path) -> None:
    source, text, index = tmp_path / "files", "Ba bun bis, ba bei bo.", Index.create(tmp_path / "index", model)
    for name in ("Acme/terms_of_use.md", "Zebra Inc/terms_of_use.md", "Zebra Inc/2497-sale-of-cars.md", "ямщик_v2.md"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    index.add(source, progress=False)
    for query, names in {
        "Zebra's terms": ["Zebra Inc/terms_of_use.md"],
        "selling a car": ["Zebra Inc/2497-sale-of-cars.md"],
        "2497": ["Zebra Inc/2497-sale-of-cars.md"],
        "Ямщик": ["ямщик_v2.md"],
    }.items():
        assert [hit.id for hit in index.search(query, mode="text")][:1] == names
    assert index.unknown_words("acme apple") == ["apple"]

    for title, column, hits in (
        ("Zebras", "Title", ["a"]),
        ("Cars", "Title", []),
        (3, "title", []),
        ("Zebra", "by", []),
    ):
        index = Index.create(tmp_path / "table", model, overwrite=True)
        index.add([Document("a", text, metadata={"Title": "Zebras"})], progress=False)
        report = index.add([Document("a", text, metadata={"Title": None, column: title})], progress=False)
        assert report.encoded == 0, "vectors do not depend on names"
        assert [hit.id for hit in index.search("zebra", mode="text")] == hits
        assert len(index.search("1984", mode="text")) == (title == 1984)
    index = Index.create(tmp_path / "no column", model)
    index.add([Document("a", text, metadata={"title": "Zebras", "year": 1999})], columns=["year"], progress=False)
    assert not index.search("zebra", mode="text"), "the index does not know the title"


def test_hybrid_search_adds_standardised_scores(index: Index, corpus: list[Document]) -> None:
    query = corpus[6].text[:60]
    dense, text = ({hit.id: hit.score for hit in index.search(query, mode=mode)} for mode in ("dense", "text"))  # type: ignore[arg-type]
    assert len(dense) == 10
    cosines, words = np.array([*dense.values()]), np.array([text.get(name, 0.0) for name in dense])
    scores = (words - words.mean()) / words.std() + VECTORS * (cosines - cosines.mean()) / cosines.std()
    hits = index.search(query)
    assert {hit.id: pytest.approx(hit.score, abs=1e-4) for hit in hits} == dict(zip(dense, scores, strict=True))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [(hit.cosine, hit.bm25) for hit in hits] == [
        (pytest.approx(dense[hit.id], abs=1e-6), text.get(hit.id)) for hit in hits
    ]
    assert index.search(query, top_k=2) == hits[:2]


def test_static_vectors_weigh_less_for_a_text_than_for_a_document(
    static_model: SentenceTransformer, corpus: list[Document], tmp_path: Path
) -> None:
    index = Index.create(tmp_path / "index", static_model)
    index.add(corpus)
    for hits, weight in ((index.search(corpus[6].text), STATIC_VECTORS), (index.link("d6"), VECTORS)):
        assert len(hits) >= 9
        cosines, words = (np.array([getattr(hit, name) or 0.0 for hit in hits]) for name in ("cosine", "bm25"))
        vectors, scores = cosines - cosines.mean(), np.array([hit.score for hit in hits])
        design = np.stack([words - words.mean(), vectors / vectors.std()])
        assert np.linalg.lstsq(design.T, scores - scores.mean(), rcond=None)[0][1] == pytest.approx(weight, abs=0.01)


def test_fused_scores_with_one_side_or_equal_scores() -> None:
    assert fused_scores({"a": 0.5, "b": 0.5 + 1e-8}, {"a": 2.0, "b": 1.0}, 1)["a"] > 0
    assert fused_scores({"a": 0.9}, {"a": 3.0}, 1) == {"a": 0}
    assert fused_scores({}, {}, 1) == {}


@pytest.mark.parametrize("size", [5, 100, 1000])
def test_unique_word_outweighs_all_vectors(size: int) -> None:
    cosines = {str(number): 1 - number / size for number in range(size)}
    words = {f"{size - 1}": 2.0, **{str(number): 1.0 for number in range(min(size, 100) - 1)}}
    scores = fused_scores(cosines, words, STATIC_VECTORS)
    assert max(scores, key=scores.__getitem__) == f"{size - 1}"


def test_text_only_hits_have_a_cosine(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simlte_st.search.hits._DEPTH", 1)
    index.add([Document("a", "Zebra " + "ba bun bis " * 20)])
    dense = {hit.id: hit.cosine for hit in index.search("zebra", mode="dense", top_k=11)}
    assert next(iter(dense)) != "a"
    found = {hit.id: hit.cosine for top_k in (1, 2) for hit in index.search("zebra", top_k=top_k)}
    assert found["a"] == pytest.approx(dense["a"], abs=1e-6)


def test_threshold_returns_all_hits_above_it(parted: Index, corpus: list[Document]) -> None:
    everything = parted.search("Ba bun bis.", mode="dense", top_k=10)
    threshold = everything[5].cosine
    assert threshold is not None
    for mode in ("dense", "hybrid"):
        hits = parted.search("Ba bun bis.", mode=mode, threshold=threshold)  # type: ignore[arg-type]
        assert {hit.id for hit in hits} == {hit.id for hit in everything[:6]}
        assert len(parted.search("Ba bun bis.", mode=mode, threshold=threshold, top_k=2)) == 2  # type: ignore[arg-type]
    assert len(parted.search("Ba bun bis.", threshold=1)) == 0
    assert len(parted.search("Ba bun bis.", threshold=-1)) == 10


def test_best_passage_scores_the_document(
    parted: Index, model: SentenceTransformer, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simlte_st.search.passages.PASSAGE", 10_000)
    rows = parted._store.rows("part > 0", ["id", "part", "passage"]).to_pylist()
    passage = next(row["passage"] for row in rows if row["id"] == "d7" and row["part"] == 2)
    hit = parted.search(passage, top_k=1, mode="dense")[0]
    assert (hit.id, hit.passage) == ("d7", passage)
    assert hit.cosine == pytest.approx(1, abs=1e-5)
    found = parted.search("Ba bun bis.", mode="dense", top_k=10)
    assert len({hit.id for hit in found}) == 10
    query = model.encode("Ba bun bis.", normalize_embeddings=True)
    for hit in found:
        cosines = {
            row["passage"]: model.encode(row["passage"], normalize_embeddings=True) @ query
            for row in rows
            if row["id"] == hit.id
        }
        assert hit.passage == max(cosines, key=cosines.__getitem__)
        assert hit.cosine == pytest.approx(max(cosines.values()), abs=1e-5)


def test_hit_shows_the_passage_with_the_words(index: Index) -> None:
    filler = "İstanbul ba bun bis. " + "Bis stringent bun bis, ba bun bis bun. " * 30
    parts = ["The quagga grazes.", "Die UNIVERSITÄTEN schließen.", "- C++ or node.js", "今天天气很好。", filler.strip()]
    queries = ["how quaggas grazed string", "universitäten", "c++ and node.js", "天气很好", "nothing like it"]
    index.add([Document("long", "".join(f"{filler}\n\n{part}\n\n" for part in parts))])
    for query, part in zip(queries, parts, strict=True):
        hit = next(hit for hit in index.search(query, top_k=11) if hit.id == "long")
        assert hit.passage.startswith(part[:18])
        assert hit.passage in index.documents(["long"])[0].text
        assert len(hit.passage) <= PASSAGE


def test_passage_has_words_that_few_parts_of_the_text_have(index: Index) -> None:
    parts = ["Zebra ba bun. " * 30, "Zebra Zebra Zebra bis. " * 20, "Ba bun bis recording bei. " + "Ba bun bis. " * 40]
    index.add([Document("long", "\n\n".join(parts)), Document("other", "Recording, recordings.")])
    hit = next(hit for hit in index.search("Zebra recording", top_k=12) if hit.id == "long")
    assert "recording" in hit.passage, "although no other document has zebras"


def test_explain(index: Index, model: SentenceTransformer, corpus: list[Document]) -> None:
    sentences = corpus[5].text.split(". ")
    query = f"{sentences[3]}. The quagga."
    hit = index.search(query, top_k=3, explain=True)[0]
    assert hit.id == "d5"
    assert len(hit.sentences) == 3
    cosines = [cosine for _, cosine in hit.sentences]
    assert cosines == sorted(cosines, reverse=True)
    vector = model.encode(query, normalize_embeddings=True)
    for sentence, cosine in hit.sentences:
        assert sentence in corpus[5].text
        assert model.encode(sentence, normalize_embeddings=True) @ vector == pytest.approx(cosine, abs=1e-4)
    words = [word for word, _ in hit.words]
    assert words
    assert set(words) <= set(sentences[3].lower().split())
    for word, score in hit.words:
        assert index.search(word, mode="text", where="id = 'd5'")[0].bm25 == pytest.approx(score)


def test_sentence_vectors_are_cached(index: Index, corpus: list[Document], encoded: list[str]) -> None:
    query = corpus[5].text[:60]
    first = index.search(query, top_k=3, explain=True)
    segmenter = index._store.segmenter()
    found = [segment_document(corpus[int(hit.id[1:])], segmenter).sentences for hit in first]
    assert {*encoded} == {sentence for sentences in found for sentence in sentences}
    assert len(encoded) == len({*encoded})
    encoded.clear()
    assert index.search(query, top_k=3, explain=True) == first
    assert not encoded


def test_values_out_of_range_are_refused(index: Index) -> None:
    with pytest.raises(ConfigurationError, match="mode='text' does not compare vectors"):
        index.search("ba", mode="text", threshold=0.5)
    with pytest.raises(DataError, match="empty"):
        index.search(" \n")


def test_unknown_words(index: Index) -> None:
    index.add([Document("a", "The zebra. 天气 Universitäten.")])
    assert index.unknown_words("the zebras and quaggas, quagga or ba: xyzzy-7") == ["quaggas", "xyzzy", "xyzzy-7"]
    assert len(index.search("quagga")) == 10, "by vectors"


def test_query_syntax_is_ignored(index: Index) -> None:
    index.add([Document("a", "A zebra and word7.")])
    book = " ".join(f"word{number} zebra" for number in range(30_000))
    for text in ('zebra" OR 1', "zebra:ba^2~ (", "AND zebra NOT ba", "zebra\\", "Zébra", book):
        assert "a" in {hit.id for hit in index.search(text, mode="text", top_k=11)}
    assert len(WordCounts().top_words(book, ["en"])) == MAX_QUERY_WORDS


@pytest.mark.parametrize(
    ("text", "length", "shown"),
    [
        ("Rates rise.", 11, "Rates rise."),
        ("Rates rise again.", 12, "Rates rise …"),
        ("Rates\nrise again.", 8, "Rates …"),
        ("天气很好今天天气", 4, "天气很好 …"),
    ],
)
def test_shortened_text_ends_at_a_word_with_an_ellipsis(text: str, length: int, shown: str) -> None:
    assert shorten(text, length) == shown
