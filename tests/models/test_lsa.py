from __future__ import annotations

from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from simlte_st import SentenceTransformer as OwnSentenceTransformer
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_lsa, end_with_lsa, lengthened
from simlte_st.models.vectors import unit_rows
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.modules.latent_semantic_analysis import token_counts


def test_the_analysis_is_that_of_the_documents_and_the_weights_stay(
    encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    appended = append_lsa(encoder_path, documents, tmp_path / "mine", dimension=5)
    assert (appended.dimension, appended.embedding_dimension, appended.read.documents) == (5, 32 + 5, 48)
    base, model = SentenceTransformer(str(encoder_path), device="cpu"), OwnSentenceTransformer(tmp_path / "mine")
    for name, value in base.state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name].cpu().numpy(), value.numpy())
    expected = LatentSemanticAnalysis.fit(base, documents, dimension=5)
    np.testing.assert_array_equal(model[-1].components.cpu(), expected.components)
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    appended_line = "- Appended: latent semantic analysis, 5 dimensions; embeddings have 37\n"
    for part in ("- Documents: 48\n", appended_line, "from simlte_st import SentenceTransformer\n"):
        assert card.count(part) == 1
    assert documents[0][:60] not in card


def test_an_analysis_that_is_there_is_replaced(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    append_lsa(encoder_path, documents, tmp_path / "first", dimension=5)
    append_lsa(tmp_path / "first", documents[:20], tmp_path / "second", dimension=3, seed=1)
    append_lsa(encoder_path, documents[:20], tmp_path / "direct", dimension=3, seed=1)
    second, direct = (OwnSentenceTransformer(tmp_path / name, device="cpu") for name in ("second", "direct"))
    assert [type(module).__name__ for module in second].count("LatentSemanticAnalysis") == 1
    np.testing.assert_array_equal(second.encode(documents[:3]), direct.encode(documents[:3]))


def test_it_is_folded_into_a_static_model(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    appended = append_lsa(static_path, documents, tmp_path / "mine", dimension=5, progress=False)
    assert (appended.dimension, appended.embedding_dimension) == (5, 32)
    mine = SentenceTransformer(str(tmp_path / "mine"), device="cpu")  # the stock class
    assert [type(module).__name__ for module in mine] == ["StaticEmbedding", "Normalize"]
    assert "- Folded in: latent semantic analysis, 5 dimensions" in (tmp_path / "mine" / "README.md").read_text()

    base = load_model(static_path, device="cpu").model
    counts = token_counts(base, documents)
    analysis = LatentSemanticAnalysis.fit(base, counts, dimension=5)
    own = base[0].embedding.weight.detach().numpy()
    # By texts, a document at a time: a repeated token counts by its mean damping over the documents.
    dense, components = counts.toarray(), analysis.components.numpy()
    burst = np.where(dense > 0, 1 + np.log(dense.clip(1)), 0).sum(0) / dense.sum(0).clip(1)
    latent = (burst * analysis.idf.numpy() ** 1.5)[:, None] * components * np.linalg.norm(components, axis=0)
    lengths = [np.median([np.linalg.norm(row @ part) for row in dense]) for part in (own, latent)]
    share = 0.5 * np.median([min(1, row.sum() / 512) for row in dense])
    both = np.hstack([own, latent * np.sqrt(share / (1 - share)) * lengths[0] / lengths[1]])
    # 37 numbers in 32: what is lost are the directions that the tokens of these documents hardly have.
    _, _, directions = np.linalg.svd(np.sqrt(dense.sum(0))[:, None] * both, full_matrices=False)
    expected = unit_rows(dense @ both @ directions[:32].T)
    found = mine.encode(documents)
    assert found.shape == (48, 32)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    plain = base.encode(documents)
    assert np.abs(found @ found.T - plain @ plain.T).max() > 0.03
    assert not mine.encode([""]).any()


def test_a_static_model_of_more_modules_gets_it_appended(static_path: Path, documents: list[str]) -> None:
    model = load_model(static_path, device="cpu").model
    model.insert(1, Dense(32, 16))
    assert end_with_lsa([model], documents, 5, 0, False) == 5
    plain = SentenceTransformer(modules=list(model)[:-1], device="cpu")
    again = lengthened(plain, model[-1], documents, plain.encode(documents))
    np.testing.assert_allclose(again, model.encode(documents), atol=1e-6)
    assert again.shape == (48, 21)
