from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.search import Index, searcher


def test_several_query_documents_use_their_mean_vector(index: Index, corpus: list[Document]) -> None:
    vectors = {one.id: index.encoder.documents([one.text])[0] for one in corpus}
    mean = vectors["d1"] + vectors["d4"]
    mean /= np.linalg.norm(mean)
    hits = index.link(["d1", "d4"], mode="dense")
    expected = {name: float(vector @ mean) for name, vector in vectors.items() if name not in ("d1", "d4")}
    assert {hit.id: pytest.approx(hit.cosine, abs=1e-5) for hit in hits} == expected
    assert [hit.id for hit in hits] == sorted(expected, key=lambda name: -expected[name])


def test_query_documents_are_ids_files_or_texts(
    parted: Index, corpus: list[Document], tmp_path: Path, encoded: list[str]
) -> None:
    by_id = parted.link("d3", mode="dense")
    assert encoded == []
    assert {hit.id for hit in by_id} == {one.id for one in corpus} - {"d3"}
    file = tmp_path / "seed.txt"
    file.write_text(corpus[3].text)
    for query in (file, str(file), corpus[3].text):
        same, *hits = parted.link(query, mode="dense")
        assert (same.id, same.identical) == ("d3", True)
        assert [(hit.id, hit.identical) for hit in hits] == [(hit.id, False) for hit in by_id]
        np.testing.assert_allclose([hit.cosine for hit in hits], [hit.cosine for hit in by_id], atol=1e-5)
    assert encoded == [], "a text that the index has is not encoded again"
    longer = f"{corpus[3].text} Bis bun."
    parted.link(longer)
    assert len(encoded) > 1
    assert all(len(text) < len(longer) and text in longer for text in encoded), "by its passages, as it would be found"
    for mode in ("hybrid", "text"):
        assert "d3" not in {hit.id for hit in parted.link(["d3", "d4"], mode=mode)}  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "text"])
def test_link_each_queries_each_document_separately(
    parted: Index, corpus: list[Document], encoded: list[str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searcher, "_BATCH", 4)
    new = [Document("d9", corpus[0].text[:60]), Document("same", corpus[3].text)]
    known = [Document(one.id, one.text) for one in corpus[:4]]
    options = {"top_k": 4, "mode": mode, "where": "year < 2008"}
    found = list(parted.link_each(iter([*known, *new]), **options))
    assert [seed for seed, _ in found] == [one.id for one in (*known, *new)]
    assert encoded == ([] if mode == "text" else [new[0].text]), "texts that the index has are not encoded again"
    for seed, (_, hits) in zip(["d0", "d1", "d2", "d3", new[0].text, corpus[3].text], found, strict=True):
        alone = parted.link(seed, **options)  # type: ignore[arg-type]
        assert [(hit.id, hit.passage, hit.metadata) for hit in hits] == [
            (hit.id, hit.passage, hit.metadata) for hit in alone
        ]
        for name in ("score", "cosine", "bm25"):
            assert [getattr(hit, name) for hit in hits] == pytest.approx(
                [getattr(hit, name) for hit in alone], abs=1e-5
            )


@pytest.mark.parametrize("seed", ["nowhere.txt", "", "  ", "Terms, of Servic.md: a/terms of service.md", "d33: d3"])
def test_mistyped_query_document_is_an_error(index: Index, seed: str) -> None:
    index.add([Document("a/terms of service.md", "Ba bun.")])
    seed, _, near = seed.partition(": ")
    hint = f"like it: '{near}'" if near else "several words"
    with pytest.raises(DataError, match=f"neither an id.*{hint}"):
        index.link(["d1", seed])
