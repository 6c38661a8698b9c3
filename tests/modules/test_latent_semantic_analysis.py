from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch
from pooling_support import flattened
from sentence_transformers import SentenceTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from support import make_document

import simlte_st
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.models.lsa import end_with_lsa
from simlte_st.models.names import usage_example
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.modules.latent_semantic_analysis import scaling

TEXTS = [make_document(number) for number in range(20)]


@pytest.fixture
def fitted(model: SentenceTransformer) -> SentenceTransformer:
    model.append(LatentSemanticAnalysis.fit(model, TEXTS, dimension=6, weight=0.4))
    return model


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_the_cosine_mixes_that_of_the_encoder_with_that_of_tfidf_s_singular_vectors(model: SentenceTransformer) -> None:
    plain = unit(model.encode(TEXTS))
    model.max_seq_length = 40  # what is not read has no say in either
    read = unit(model.encode(TEXTS))
    model.append(LatentSemanticAnalysis.fit(model, TEXTS, dimension=12, weight=0.4, full=1))
    found = model.encode(TEXTS)

    words = TfidfVectorizer(sublinear_tf=True, norm="l2", tokenizer=str.split, token_pattern=None, lowercase=False)
    tokens = [" ".join(model.tokenizer.tokenize(text)[:38]) for text in TEXTS]
    tfidf = words.fit_transform(tokens).toarray()
    _, sizes, vectors = np.linalg.svd(tfidf, full_matrices=False)
    noise = (20 - sizes[0] ** 2) / 19  # what a vector says of a single document, on average
    kept = sizes[:12] ** 2 > noise
    factors = np.sqrt(1 - noise / sizes[:12][kept] ** 2) / np.sqrt(sizes[:12][kept])
    latent = unit(tfidf @ vectors[:12][kept].T * factors)
    expected = 0.6 * read @ read.T + 0.4 * latent @ latent.T
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-4)
    assert found.shape == (20, model.get_embedding_dimension() or 0) == (20, 32 + int(kept.sum()))
    assert not np.allclose(plain, read)


def test_short_texts_are_left_to_the_encoder(model: SentenceTransformer) -> None:
    lsa = LatentSemanticAnalysis.fit(model, TEXTS, dimension=6, weight=0.5, full=40)
    known = int(lsa.idf.nonzero()[0])
    for tokens, share in ((10, 0.125), (40, 0.5), (90, 0.5)):
        features = {"input_ids": torch.full((1, tokens), known), "sentence_embedding": torch.ones(1, 32)}
        found = lsa(features)["sentence_embedding"][0]
        assert found[32:].square().sum() == pytest.approx(share)
        assert found.norm() == pytest.approx(1)


def test_flat_tokens_of_a_static_embedding_count_as_padded_ones(static_model: SentenceTransformer) -> None:
    lsa = LatentSemanticAnalysis.fit(static_model, TEXTS, dimension=6, full=60)
    texts = [*TEXTS[:6], "", "ba", "unknown words only", " ".join(TEXTS)]
    flat = static_model.preprocess(texts)
    rows = [torch.tensor(static_model.tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    ids = torch.nn.utils.rnn.pad_sequence([row.long() for row in rows], batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    vectors = torch.randn(len(texts), 32)
    padded = lsa({"input_ids": ids, "attention_mask": mask, "sentence_embedding": vectors})["sentence_embedding"]
    found = lsa({**flat, "sentence_embedding": vectors})["sentence_embedding"]
    torch.testing.assert_close(found, padded, atol=1e-6, rtol=0)
    assert not found[6:9:2, 32:].any()


def test_it_is_fitted_to_the_same_bytes(model: SentenceTransformer) -> None:
    one, two = (LatentSemanticAnalysis.fit(model, TEXTS, dimension=6) for _ in range(2))
    assert torch.equal(one.components, two.components)
    assert not torch.equal(one.components, LatentSemanticAnalysis.fit(model, TEXTS, dimension=6, seed=1).components)


def test_what_says_no_more_than_a_single_document_is_left_out(model: SentenceTransformer) -> None:
    # Squares 9, 4, 1 and .5 of 12 documents: beyond the first, the mean is 3 / 11 a document.
    np.testing.assert_allclose(
        scaling(np.sqrt([9, 4, 1, 0.27]), 12),
        [*(np.sqrt((1 - 3 / 11 / square) / np.sqrt(square)) for square in (9, 4, 1)), 0],
    )
    words = model.tokenizer.convert_ids_to_tokens(range(10, 22))
    apart = [" ".join(words[start : start + 3]) for start in range(0, 12, 3)]
    with pytest.raises(DataError, match="4 documents"):
        LatentSemanticAnalysis.fit(model, apart)


def test_copies_and_few_documents_have_fewer_dimensions(model: SentenceTransformer) -> None:
    assert LatentSemanticAnalysis.fit(model, TEXTS[:5]).dimension == 4
    assert LatentSemanticAnalysis.fit(model, TEXTS[:3] * 4).dimension == 3
    assert LatentSemanticAnalysis.fit(model, TEXTS, dimension=4).dimension == 4


def batch(model: SentenceTransformer, texts: list[str], **options: Any) -> dict[str, Any]:
    features = model.preprocess(texts, **options)
    kept = {name: features[name] for name in ("input_ids", "attention_mask", "prompt_length") if name in features}
    return {**kept, "sentence_embedding": torch.ones(len(texts), 32)}


def test_padding_says_nothing(fitted: SentenceTransformer) -> None:
    lsa = fitted[-1]
    features = batch(fitted, ["One two three.", "Four. " * 9, "Ba bun."])
    expected = lsa(dict(features))["sentence_embedding"]
    for row, length in enumerate(features["attention_mask"].sum(1).tolist()):
        alone = {
            name: value[row : row + 1, :length] for name, value in features.items() if name != "sentence_embedding"
        }
        alone["sentence_embedding"] = features["sentence_embedding"][:1]
        torch.testing.assert_close(lsa(alone)["sentence_embedding"], expected[row : row + 1])
    flat = flattened({"token_embeddings": torch.zeros(*features["input_ids"].shape, 4), **features})
    flat["input_ids"] = features["input_ids"][features["attention_mask"].bool()][None]
    flat["sentence_embedding"] = features["sentence_embedding"]
    torch.testing.assert_close(lsa(flat)["sentence_embedding"], expected)
    without = {name: value for name, value in features.items() if name != "attention_mask"}
    torch.testing.assert_close(lsa(without)["sentence_embedding"], expected)  # padding is a special token


def test_a_prompt_says_nothing(fitted: SentenceTransformer) -> None:
    texts = ["One two three.", "Ba bun."]
    prompted = batch(fitted, texts, prompt="Ba ca di: ")
    assert "prompt_length" in prompted
    expected = fitted[-1](batch(fitted, texts))["sentence_embedding"]
    torch.testing.assert_close(fitted[-1](prompted)["sentence_embedding"], expected)


def test_odd_batches(fitted: SentenceTransformer) -> None:
    found = fitted[-1](batch(fitted, ["", TEXTS[0]]))["sentence_embedding"]
    assert not found[0, 32:].any()
    assert found[1].norm() == pytest.approx(1, abs=1e-5)
    empty = {"input_ids": torch.zeros(0, 3, dtype=torch.int64), "sentence_embedding": torch.zeros(0, 32)}
    assert fitted[-1](empty)["sentence_embedding"].shape == (0, 38)


def test_a_model_with_it_is_saved_and_loaded(fitted: SentenceTransformer, tmp_path: Path) -> None:
    vectors = fitted.encode(TEXTS)
    fitted.save_pretrained(str(tmp_path / "model"))
    ours = simlte_st.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert ours.get_embedding_dimension() == 38
    np.testing.assert_array_equal(ours.encode(TEXTS), vectors)
    stock = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_array_equal(stock.encode(TEXTS), vectors)
    assert "from simlte_st import SentenceTransformer" in usage_example(tmp_path / "model")


def test_what_cannot_be_fitted(fitted: SentenceTransformer, model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="already"):
        LatentSemanticAnalysis.fit(fitted, TEXTS)
    del fitted[-1]
    for name, value in (("dimension", 0), ("weight", 1.1), ("full", 0)):
        with pytest.raises(ConfigurationError, match=f"{name}={value}: must be"):
            LatentSemanticAnalysis.fit(model, TEXTS, **{name: value})
    with pytest.raises(DataError, match="at least two documents"):
        LatentSemanticAnalysis.fit(model, TEXTS[:1])


def test_an_analysis_behind_embeddings_that_are_cut(model: SentenceTransformer) -> None:
    model.truncate_dim = 12
    with pytest.raises(ConfigurationError, match="truncate_dim"):
        LatentSemanticAnalysis.fit(model, TEXTS, dimension=4)
    plain = model.encode(TEXTS)
    end_with_lsa([model], TEXTS, 4, 0, False)
    assert model.get_embedding_dimension() == 16
    vectors = model.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 16)
    own = vectors[:, :12]
    cosines = (own * plain).sum(1) / np.linalg.norm(own, axis=1) / np.linalg.norm(plain, axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-5)
