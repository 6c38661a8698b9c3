from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import AutoModel, AutoTokenizer

from benchmarks.rivals import ENCODERS, HUB_MODELS, Bm25Encoder, ModelEncoder, TfidfEncoder, load_encoder
from simlte_st.errors import ConfigurationError, DataError, ModelError
from simlte_st.evaluation import ClassificationProbeEvaluator

TEXTS = ["ba bei bo bo bun", "bei bo", "ka kei ko"]


def test_every_encoder_has_a_title_of_its_own() -> None:
    assert set(HUB_MODELS) < set(ENCODERS)
    assert len({entry.title for entry in ENCODERS.values()}) == len(ENCODERS)
    assert [name for name, entry in ENCODERS.items() if entry.ranks_only] == ["bm25"]
    with pytest.raises(ConfigurationError, match=r"Unknown encoder 'glove'.*chunk-mean"):
        load_encoder("glove")


def test_tfidf_learns_from_the_corpus_alone() -> None:
    encoder = load_encoder("tfidf", corpus=TEXTS[:2])
    assert isinstance(encoder, TfidfEncoder)
    expected = TfidfVectorizer(sublinear_tf=True).fit(TEXTS[:2]).transform(TEXTS)
    assert (encoder.encode(TEXTS) != expected).nnz == 0
    scores = encoder.scores(["bei bo"], TEXTS)
    np.testing.assert_allclose(scores, (expected[1] @ expected.T).toarray())
    assert scores[0, 2] == 0
    with pytest.raises(ConfigurationError, match="corpus="):
        load_encoder("tfidf")


def test_bm25_ranks_by_its_formula_and_has_no_vectors() -> None:
    pytest.importorskip("bm25s")
    encoder = load_encoder("bm25")
    assert isinstance(encoder, Bm25Encoder)
    documents = ["aa bb bb cc", "aa dd", "ee ff"]
    scores = encoder.scores(["bb dd", "x"], documents)

    def part(frequency: int, length: int) -> float:  # each of the two words is in one document of three
        idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
        return idf * frequency / (frequency + 1.5 * (1 - 0.75 + 0.75 * length / (8 / 3)))

    np.testing.assert_allclose(scores, [[part(2, 4), part(1, 2), 0], [0, 0, 0]], rtol=1e-6)
    with pytest.raises(ConfigurationError, match="no vectors"):
        encoder.encode(documents)
    with pytest.raises(DataError, match="word"):
        encoder.scores(["bb"], ["x", "y"])


@pytest.mark.parametrize(("name", "pooling"), [("base-cls", "cls"), ("base-mean", "mean")])
def test_the_base_is_pooled_as_its_name_says(name: str, pooling: str, bert_path: Path) -> None:
    encoder = load_encoder(name, base=bert_path, max_seq_length=5)
    batch = AutoTokenizer.from_pretrained(bert_path)(
        TEXTS, padding=True, truncation=True, max_length=5, return_tensors="pt"
    )
    states = AutoModel.from_pretrained(bert_path).eval()(**batch).last_hidden_state.detach()
    mask = batch["attention_mask"][..., None]
    expected = states[:, 0] if pooling == "cls" else (states * mask).sum(dim=1) / mask.sum(dim=1)
    found = encoder.encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    scores = encoder.scores(TEXTS[:2], TEXTS)
    lengths = np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(scores, (found @ found.T / np.outer(lengths, lengths))[:2], atol=1e-5)


def test_chunk_mean_reads_a_document_to_its_end(encoder_path: Path) -> None:
    base = load_encoder("base-mean", base=encoder_path)
    encoder = load_encoder("chunk-mean", base=encoder_path, chunk_mean_length=1000, max_seq_length=8)
    np.testing.assert_allclose(encoder.encode(TEXTS), base.encode(TEXTS), atol=1e-5)
    beginning = " ".join(["ba bei bo bun"] * 100)
    other = beginning + " ka kei ko kun" * 50
    assert np.abs(np.subtract(*base.encode([beginning, other]))).max() < 1e-6
    assert np.abs(np.subtract(*encoder.encode([beginning, other]))).max() > 1e-3


def test_each_task_has_its_prompt_and_evaluators_get_that_of_classification(model: SentenceTransformer) -> None:
    encoder = ModelEncoder("x", model, {"classification": "ba bei: ", "query": "ka: "})
    plain = {prompt: model.encode([f"{prompt}bo bun"], prompt="") for prompt in ("ba bei: ", "ka: ", "")}
    np.testing.assert_allclose(encoder.encode(["bo bun"]), plain["ba bei: "], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["bo bun"], "query"), plain["ka: "], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["bo bun"], "document"), plain[""], atol=1e-6)
    evaluator = ClassificationProbeEvaluator(
        ["bo", "bun"], [0, 1], ["bo", "bun"], [0, 1], shots=1, draws=1, write_csv=False
    )
    np.testing.assert_allclose(evaluator.embed_inputs(model, ["bo bun"]), plain["ba bei: "], atol=1e-6)


def test_a_base_that_is_nowhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be loaded"):
        load_encoder("base-mean", base=tmp_path / "nothing")
