from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.search import Index
from simlte_st.search import index as index_module
from simlte_st.search.calibrate import fit_threshold, read_labels


def test_several_documents_are_the_mean_of_their_vectors(index: Index, corpus: list[Document]) -> None:
    vectors = {one.id: index.encoder.documents([one.text])[0] for one in corpus}
    mean = vectors["d1"] + vectors["d4"]
    mean /= np.linalg.norm(mean)
    hits = index.link(["d1", "d4"], mode="dense")
    expected = {name: float(vector @ mean) for name, vector in vectors.items() if name not in ("d1", "d4")}
    assert {hit.id: pytest.approx(hit.cosine, abs=1e-5) for hit in hits} == expected
    assert [hit.id for hit in hits] == sorted(expected, key=lambda name: -expected[name])


def test_seeds_are_ids_files_and_texts(
    parted: Index, corpus: list[Document], tmp_path: Path, encoded: list[str]
) -> None:
    by_id = parted.link("d3", mode="dense")
    assert encoded == []
    assert {hit.id for hit in by_id} == {one.id for one in corpus} - {"d3"}
    file = tmp_path / "seed.txt"
    file.write_text(corpus[3].text)
    for seed in (file, str(file), corpus[3].text):
        hits = parted.link(seed, mode="dense")
        assert [hit.id for hit in hits] == [hit.id for hit in by_id], "the same text is no hit either"
        np.testing.assert_allclose([hit.cosine for hit in hits], [hit.cosine for hit in by_id], atol=1e-5)
    assert all(text in corpus[3].text for text in encoded), "by its passages, as it would be found itself"
    for mode in ("hybrid", "text"):
        assert "d3" not in {hit.id for hit in parted.link(["d3", "d4"], mode=mode)}  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "text"])
def test_each_seed_is_a_question_of_its_own(
    parted: Index, corpus: list[Document], encoded: list[str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_TOGETHER", 4)
    new = [Document("d1", corpus[0].text[:60]), Document("same", corpus[3].text)]
    known = [Document(f"seed {one.id}", one.text) for one in corpus[:4]]
    options = {"top_k": 4, "mode": mode, "where": "year < 2008"}
    found = list(parted.link_each(iter([*known, *new]), **options))
    assert [seed for seed, _ in found] == [one.id for one in (*known, *new)]
    assert encoded == ([] if mode == "text" else [new[0].text]), "texts that the index has are not encoded again"
    for seed, (_, hits) in zip([f"d{number}" for number in range(4)] + [new[0].text, "d3"], found, strict=True):
        alone = parted.link(seed, **options)  # type: ignore[arg-type]
        assert [(hit.id, hit.passage, hit.metadata) for hit in hits] == [
            (hit.id, hit.passage, hit.metadata) for hit in alone
        ]
        for name in ("score", "cosine", "bm25"):
            assert [getattr(hit, name) for hit in hits] == pytest.approx(
                [getattr(hit, name) for hit in alone], abs=1e-5
            )


def test_long_seeds_do_not_wait_for_hundreds_of_others(
    index: Index, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()

    def seeds() -> Iterator[Document]:
        for one in corpus[:6]:
            read.append(one.id)
            yield one

    monkeypatch.setattr(index_module, "_TOGETHER_CHARACTERS", len(corpus[0].text) + len(corpus[1].text))
    found = index.link_each(seeds(), top_k=1)
    assert next(found)[0] == corpus[0].id
    assert len(read) == 3, "two, and the one that was too much"
    assert [seed for seed, _ in found] == [one.id for one in corpus[1:6]]


def test_each_seed_is_linked_by_the_calibrated_threshold(index: Index, corpus: list[Document]) -> None:
    cosines = [hit.cosine for hit in index.link("d0", mode="dense", top_k=9)]
    index.calibrate(
        [
            {"seed": "d0", "id": hit.id, "label": int(rank < 3)}
            for rank, hit in enumerate(index.link("d0", mode="dense", top_k=9))
        ]
    )
    ((_, hits),) = index.link_each([corpus[0].text], mode="dense")
    assert [hit.cosine for hit in hits] == pytest.approx(cosines[:3], abs=1e-5)
    with pytest.raises(DataError, match="no usable document"):
        list(index.link_each(iter([Document("x", " ")])))


@pytest.mark.parametrize("seed", ["d33", "nowhere.txt", "", "  "])
def test_a_mistyped_seed_is_no_text(index: Index, seed: str) -> None:
    with pytest.raises(DataError, match=r"neither an id|empty"):
        index.link(["d1", seed])


def test_a_threshold_from_labels(
    index: Index, corpus: list[Document], tmp_path: Path, model: SentenceTransformer
) -> None:
    cosines = {hit.id: hit.cosine for hit in index.link("d0", mode="dense", top_k=9)}
    ranked = list(cosines)
    rows = [{"seed": "d0", "id": name, "label": int(rank not in (2, 6, 7, 8))} for rank, name in enumerate(ranked)]
    labels = tmp_path / "labels.jsonl"
    labels.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    found = index.calibrate(labels, precision=0.8)
    assert found.threshold == pytest.approx(cosines[ranked[5]], abs=1e-6)
    assert (found.precision, found.recall, found.pairs, found.taken) == (5 / 6, 1.0, 9, 6)
    assert re.search(r"6 of 9 .* 83\.3%", found.summary())
    for opened in (index, Index.open(index.folder, model)):
        hits = opened.link("d0")
        assert {hit.id for hit in hits} == set(ranked[:6])
        assert hits.threshold == found.threshold
        assert len(opened.link("d0", top_k=8)) == 8
        assert len(opened.link("d0", threshold=-1)) == 9
        assert opened.link("d0", mode="text").threshold is None
    text = [{**row, "seed": corpus[0].text} for row in rows]
    assert index.calibrate(text, 0.8).threshold == pytest.approx(found.threshold, abs=1e-5)


def test_the_interval_is_clopper_and_pearsons() -> None:
    scores = np.linspace(1, 0, 50)
    labels = np.array([1] * 18 + [0] * 2 + [0] * 29 + [1])
    found = fit_threshold(scores, labels, 0.9)
    assert (found.taken, found.precision) == (20, 0.9)
    assert found.low == pytest.approx(beta.ppf(0.025, 18, 3))
    assert found.high == pytest.approx(beta.ppf(0.975, 19, 2))
    with pytest.raises(ConfigurationError, match=r"precision=0\.9: .*0\.500"):
        fit_threshold([0.9, 0.8, 0.2], [0, 1, 0], 0.9)
    for wanted in (0, 1.1):
        with pytest.raises(ConfigurationError, match="at most 1"):
            fit_threshold(scores, labels, wanted)
    with pytest.raises(DataError, match="same label"):
        fit_threshold(scores, labels * 0, 0.9)


@pytest.mark.parametrize(
    "row",
    [
        '{"seed": "d0", "id": "d1"}',
        '{"seed": 1, "id": "d1", "label": 1}',
        '{"seed": "d0", "id": "d1", "label": 2}',
        "{",
        '["d0", "d1", 1]',
    ],
)
def test_labels_that_are_none(tmp_path: Path, row: str) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text('{"seed": "d0", "id": "d1", "label": 1}\n' + row)
    with pytest.raises(DataError, match=r"line 2 of .*labels\.jsonl"):
        read_labels(file)


def test_labels_of_nothing(index: Index, tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text("\n")
    for labels in (tmp_path / "labels.jsonl", []):
        with pytest.raises(DataError, match="no labelled pairs"):
            index.calibrate(labels)
    with pytest.raises(DataError, match="JSON lines"):
        index.calibrate(tmp_path / "labels.csv")
    with pytest.raises(DataError, match="'gone'"):
        index.calibrate([{"seed": "d0", "id": "gone", "label": 1}, {"seed": "d0", "id": "d1", "label": 0}])
