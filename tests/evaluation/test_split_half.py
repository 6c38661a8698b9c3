from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.evaluation import (
    StructureEvaluator,
    alignment,
    bootstrap_interval,
    split_half_retrieval,
    split_half_views,
    uniformity,
)

Build = Callable[..., SentenceTransformer]


@pytest.fixture
def corpus(documents: list[str]) -> list[Document]:
    return [Document(f"d{index}", text) for index, text in enumerate(documents)]


def test_hand_made_case() -> None:
    # Angles in degrees. Query 0 finds its own; query 1 is nearer to B 2 than to B 1; query 2 ranks its own third.
    angles_a, angles_b = np.deg2rad([0.0, 40.0, 10.0]), np.deg2rad([1.0, 90.0, 55.0])
    a = np.stack([np.cos(angles_a), np.sin(angles_a)], axis=1) * [[1.0], [5.0], [0.1]]  # lengths must not matter
    b = np.stack([np.cos(angles_b), np.sin(angles_b)], axis=1)
    result = split_half_retrieval(a, b)
    assert result.ranks.tolist() == [1, 3, 2]
    assert result.top1 == pytest.approx(1 / 3)
    assert result.mrr == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert result.documents == 3
    assert (result.mrr_low, result.mrr_high) == bootstrap_interval([1, 1 / 3, 1 / 2])
    assert (result.top1_low, result.top1_high) == bootstrap_interval([1, 0, 0])
    assert result.alignment == pytest.approx(alignment(a, b))
    assert result.uniformity == pytest.approx((uniformity(a) + uniformity(b)) / 2)


def test_against_a_double_loop_and_any_block(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    a = generator.normal(size=(37, 6)).astype(np.float32)
    b = a + generator.normal(size=(37, 6)).astype(np.float32)
    cosine = [[x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in b] for x in a]
    ranks = [1 + sum(cosine[i][j] >= cosine[i][i] for j in range(37) if j != i) for i in range(37)]
    for rows in (1, 10, 37):
        monkeypatch.setattr("simlte_st.models.vectors._SCRATCH_VALUES", 37 * rows)
        assert split_half_retrieval(a, b).ranks.tolist() == ranks
    assert 1 / 37 < split_half_retrieval(a, b).top1 < 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [3, 384, 767])
def test_collapsed_model_scores_at_chance_at_best(dtype: type, dim: int) -> None:
    point = np.random.default_rng(2).normal(size=dim).astype(dtype)
    result = split_half_retrieval(np.tile(point, (203, 1)), np.tile(point, (203, 1)))
    assert result.top1 == 0.0
    assert result.mrr == pytest.approx(1 / 203)
    assert result.uniformity == pytest.approx(0.0, abs=1e-9)


def test_refusals() -> None:
    x = np.eye(3)
    with pytest.raises(DataError, match="at least 2 documents"):
        split_half_retrieval(x[:1], x[:1])
    with pytest.raises(DataError, match="one shape"):
        split_half_retrieval(x, x[:2])
    with pytest.raises(DataError, match="not finite"):  # NaN compares false with everything, which would rank first
        split_half_retrieval(x * np.nan, x)
    with pytest.raises(DataError, match="there are 1"):
        StructureEvaluator(["two words", "one"])
    with pytest.raises(DataError, match="no file"):
        StructureEvaluator("nowhere.jsonl")


def test_halves_are_disjoint_and_depend_on_the_seed_only(corpus: list[Document]) -> None:
    anchors, positives = split_half_views(corpus, seed=1)
    assert split_half_views(corpus[::-1], seed=1) == (anchors[::-1], positives[::-1])
    assert split_half_views(corpus, seed=2) != (anchors, positives)
    for document, anchor, positive in zip(corpus, anchors, positives, strict=True):
        assert sorted((anchor + " " + positive).split()) == sorted(document.text.split())


def test_what_cannot_be_split_is_left_out(corpus: list[Document], caplog: pytest.LogCaptureFixture) -> None:
    anchors, _ = split_half_views([*corpus, Document("one", "word")])
    assert len(anchors) == len(corpus)
    assert "1 of 49 documents" in caplog.text
    with pytest.raises(DataError, match="there are 1"):
        split_half_views([corpus[0], Document("one", "word")])


def test_halves_fit_what_the_model_reads(tiny_model_for_evaluation: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model_for_evaluation()  # set to 16 tokens, 2 of them special, and able to read 64
    model.prompts = {"long": "w1 w2 w3 w4 "}
    documents = ["\n\n".join(f"w{(number * 7 + word) % 60} w2" for word in range(100)) for number in range(4)]
    encoded: list[str] = []
    encode = model.encode

    def counting(inputs: list[str], **options: object) -> np.ndarray:
        encoded[:] = inputs
        return encode(inputs, **options)

    monkeypatch.setattr(model, "encode", counting)
    lengths = {}
    for name, settings in {
        "own": {},
        "less": {"max_seq_length": 12},
        "more": {"max_seq_length": 512},
        "prompted": {"prompt_name": "long"},
        "prompted too": {"prompt": "w1 w2 w3 w4 "},
    }.items():
        StructureEvaluator(documents, **settings)(model)  # type: ignore[arg-type]
        assert len(encoded) == 8
        lengths[name] = max(len(text.split()) for text in encoded)
    assert lengths["less"] < lengths["own"] < lengths["more"] < 64
    assert lengths["prompted"] == lengths["prompted too"] < lengths["own"]
    model.default_prompt_name = "long"
    StructureEvaluator(documents)(model)
    assert max(len(text.split()) for text in encoded) == lengths["prompted"]
    assert model.max_seq_length == 16
