from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense
from sklearn.feature_extraction.text import TfidfVectorizer

from simlte_st import SentenceTransformer as OwnSentenceTransformer
from simlte_st.errors import DataError
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_lsa, append_vectors, document_token_counts, end_with_lsa, scaling, word_vectors
from simlte_st.models.vectors import unit_rows


def test_word_vectors_are_tfidf_singular_vectors(model: SentenceTransformer, documents: list[str]) -> None:
    documents, model.max_seq_length = documents[:20], 40
    counts, texts = document_token_counts(model, documents), [model.tokenizer.tokenize(each)[:38] for each in documents]
    found = word_vectors(counts, 12)
    words = TfidfVectorizer(sublinear_tf=True, analyzer=lambda tokens: tokens)
    tfidf = words.fit_transform(texts).toarray()
    _, sizes, vectors = np.linalg.svd(tfidf, full_matrices=False)
    noise = (20 - sizes[0] ** 2) / 19  # share of a vector that describes a single document, on average
    kept = sizes[:12] ** 2 > noise
    factors = np.sqrt(1 - noise / sizes[:12][kept] ** 2) / np.sqrt(sizes[:12][kept])
    rows = model.tokenizer.convert_tokens_to_ids(list(words.get_feature_names_out()))
    dense = counts.toarray()[:, rows]  # a repeated token counts by its mean damping over the documents
    burst = np.where(dense > 0, 1 + np.log(dense.clip(1)), 0).sum(0) / dense.sum(0)
    expected = (burst * words.idf_**1.5)[:, None] * vectors[:12][kept].T * factors**2
    np.testing.assert_allclose(found[rows] @ found[rows].T, expected @ expected.T, atol=1e-4)
    assert found.shape[1] == kept.sum()
    assert not np.delete(found, rows, axis=0).any()
    np.testing.assert_array_equal(found, word_vectors(counts, 12))
    assert not np.array_equal(found, word_vectors(counts, 12, seed=1))


def test_noise_dimensions_are_dropped(model: SentenceTransformer, documents: list[str]) -> None:
    # Squares 9, 4, 1 and .5 of 12 documents: beyond the first, the mean is 3 / 11 a document.
    np.testing.assert_allclose(
        scaling(np.sqrt([9, 4, 1, 0.27]), 12),
        [*(np.sqrt((1 - 3 / 11 / square) / np.sqrt(square)) for square in (9, 4, 1)), 0],
    )
    words = model.tokenizer.convert_ids_to_tokens(range(10, 22))
    apart = [" ".join(words[start : start + 3]) for start in range(0, 12, 3)]
    for texts, problem in ((apart, "4 documents"), (apart[:1], "at least two documents")):
        with pytest.raises(DataError, match=problem):
            word_vectors(document_token_counts(model, texts), 12)
    for texts, most, size in ((documents[:5], 256, 4), (documents[:3] * 4, 256, 3), (documents, 4, 4)):
        assert word_vectors(document_token_counts(model, texts), most).shape[1] == size


def test_lsa_follows_truncated_embeddings(model: SentenceTransformer, documents: list[str]) -> None:
    model.truncate_dim = 12
    plain = unit_rows(model.encode(documents))
    end_with_lsa([model], documents, 4)
    vectors = model.encode(documents)
    assert vectors.shape == (48, model.get_embedding_dimension() or 0) == (48, 16)
    np.testing.assert_allclose(unit_rows(vectors[:, :12]), plain, atol=1e-5)


def test_append_lsa_keeps_the_weights(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    appended = append_lsa(encoder_path, documents, tmp_path / "mine", dimension=5)
    assert (appended.dimension, appended.embedding_dimension, appended.read.documents) == (5, 32 + 5, 48)
    base, model = SentenceTransformer(str(encoder_path), device="cpu"), OwnSentenceTransformer(tmp_path / "mine")
    for name, value in base.state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name].cpu().numpy(), value.numpy())
    np.testing.assert_array_equal(model[-1].table.cpu(), word_vectors(document_token_counts(base, documents), 5))
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    appended_line = "- Dimensions: 5, appended to its embeddings; the embeddings have 37\n"
    for part in ("- Documents: 48\n", appended_line, "from simlte_st import SentenceTransformer\n"):
        assert card.count(part) == 1
    assert documents[0][:60] not in card


def test_append_lsa_replaces_an_existing_analysis(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    append_lsa(encoder_path, documents, tmp_path / "first", dimension=5)
    append_lsa(tmp_path / "first", documents[:20], tmp_path / "second", dimension=3, seed=1)
    append_lsa(encoder_path, documents[:20], tmp_path / "direct", dimension=3, seed=1)
    second, direct = (OwnSentenceTransformer(tmp_path / name, device="cpu") for name in ("second", "direct"))
    assert [type(module).__name__ for module in second].count("TokenTable") == 1
    np.testing.assert_array_equal(second.encode(documents[:3]), direct.encode(documents[:3]))


def test_lsa_is_folded_into_static_models(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    appended = append_lsa(static_path, documents, tmp_path / "mine", dimension=5, progress=False)
    assert (appended.dimension, appended.embedding_dimension) == (5, 32)
    mine = SentenceTransformer(str(tmp_path / "mine"), device="cpu")  # the stock class
    assert [type(module).__name__ for module in mine] == ["StaticEmbedding", "Normalize"]
    assert "- Dimensions: 5, folded into its token vectors; " in (tmp_path / "mine" / "README.md").read_text()

    base = load_model(static_path, device="cpu").model
    counts = document_token_counts(base, documents)
    own = base[0].embedding.weight.detach().numpy()
    dense, latent = counts.toarray(), word_vectors(counts, 5)
    lengths = [np.median([np.linalg.norm(row @ part) for row in dense]) for part in (own, latent)]
    share = 0.5 * np.median([min(1, row.sum() / 512) for row in dense])
    both = np.hstack([own, latent * np.sqrt(share / (1 - share)) * lengths[0] / lengths[1]])
    # 37 dimensions in 32: the lost directions hardly occur in these documents.
    _, _, directions = np.linalg.svd(np.sqrt(dense.sum(0))[:, None] * both, full_matrices=False)
    expected = unit_rows(dense @ both @ directions[:32].T)
    found = mine.encode(documents)
    assert found.shape == (48, 32)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    plain = base.encode(documents)
    assert np.abs(found @ found.T - plain @ plain.T).max() > 0.03
    assert not mine.encode([""]).any()


def test_lsa_is_appended_to_static_models_with_more_modules(static_path: Path, documents: list[str]) -> None:
    model = load_model(static_path, device="cpu").model
    model.insert(1, Dense(32, 16))
    assert end_with_lsa([model], documents, 5) == 5
    plain = SentenceTransformer(modules=list(model)[:-1], device="cpu")
    again = append_vectors(model, documents, plain.encode(documents))
    np.testing.assert_allclose(again, model.encode(documents), atol=1e-6)
    assert again.shape == (48, 21)
