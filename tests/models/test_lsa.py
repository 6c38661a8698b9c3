from __future__ import annotations

from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from simlte_st import SentenceTransformer as OwnSentenceTransformer
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_lsa, end_with_lsa, lengthened
from simlte_st.modules import LatentSemanticAnalysis


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


def test_a_static_embedding_gets_one_too(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    append_lsa(static_path, documents, tmp_path / "mine", dimension=5, progress=False)
    model = OwnSentenceTransformer(tmp_path / "mine", device="cpu")
    stock = load_model(static_path, device="cpu").model
    end_with_lsa([stock], documents, 5, 0, progress=False)
    found, expected = model.encode([*documents, ""]), stock.encode([*documents, ""])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.shape == (49, 37)
    assert not found[-1].any()
    plain = load_model(static_path, device="cpu").model
    again = lengthened(plain, model[-1], documents, plain.encode(documents))
    np.testing.assert_allclose(again, found[:-1], atol=1e-6)
