"""Static models that learn an encoder's embeddings of passages."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document, write_texts
from training_support import assert_same_bytes

from simlte_st import to_static
from simlte_st.cli.main import main
from simlte_st.errors import ConfigurationError
from simlte_st.models import teaching
from simlte_st.models.static import token_embedding
from simlte_st.models.teaching import draw_passages

pytest.importorskip("skeletoken", reason="needs the extra static")
TEXTS = [make_document(number, sentences=6, words=8) for number in range(40)]


def mean_cosine(static: Path, encoder: Path, texts: list[str]) -> float:
    """Return how well the static model reproduces the encoder's similarities between texts."""
    similarities = []
    for folder in (static, encoder):
        vectors = SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)
        centred = vectors - vectors.mean(axis=0)
        centred /= np.linalg.norm(centred, axis=1, keepdims=True)
        similarities.append((centred @ centred.T)[np.triu_indices(len(texts), 1)])
    return float(np.corrcoef(similarities)[0, 1])


def test_passages_have_queries_and_long_texts_of_every_document() -> None:
    texts = [" ".join(f"{number}w{word}" for word in range(400)) for number in range(10)]
    passages = draw_passages(texts, 400, seed=0)
    lengths = np.array([len(passage.split()) for passage in passages])
    assert lengths.min() >= 3
    assert lengths.max() > 200
    assert 0.15 < (lengths <= 15).mean() < 0.35
    assert {passage.split("w")[0] for passage in passages} == {str(number) for number in range(10)}
    assert all(any(passage in text for text in texts) for passage in passages)
    assert draw_passages(texts, 400, seed=0) == passages != draw_passages(texts, 400, seed=1)
    assert draw_passages(["short text"], 2, seed=0) == ["short text"] * 2


def test_taught_model_reproduces_the_encoder_better(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "fit_table", partial(teaching.fit_table, learning_rate=5e-2))
    options = {"dimension": 16, "progress": False}
    to_static(encoder_path, tmp_path / "distilled", **options)
    to_static(encoder_path, tmp_path / "taught", teach=TEXTS, passages=1024, **options)
    to_static(encoder_path, tmp_path / "again", teach=TEXTS, passages=1024, **options)
    assert_same_bytes(tmp_path / "taught", tmp_path / "again")
    new = draw_passages(TEXTS, 100, seed=9)
    distilled, taught = (mean_cosine(tmp_path / name, encoder_path, new) for name in ("distilled", "taught"))
    assert taught > distilled + 0.05
    tables = [token_embedding(SentenceTransformer(str(tmp_path / name))).weight for name in ("distilled", "taught")]
    sizes = [float(table.detach().square().mean().sqrt()) for table in tables]
    assert sizes[1] == pytest.approx(sizes[0], rel=1e-5), "the training's learning rate suits this size"
    unknown = SentenceTransformer(str(tmp_path / "taught")).tokenizer.token_to_id("[UNK]")
    assert not tables[1][unknown].detach().any()
    assert "1,024 passages from 40 documents" in (tmp_path / "taught" / "README.md").read_text(encoding="utf-8")


def test_teaching_needs_passages_and_a_static_model(
    encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match="passages is 100; teaching needs at least 256"):
        to_static(encoder_path, tmp_path / "taught", dimension=16, teach=TEXTS, passages=100, progress=False)
    assert not (tmp_path / "taught").exists()
    assert main(["convert", str(encoder_path), "--teach", str(tmp_path), "--output", str(tmp_path / "long")]) == 1
    assert "--teach cannot be combined" in capsys.readouterr().err


def test_command_teaches(encoder_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = write_texts(tmp_path / "documents", TEXTS)
    arguments = ["convert", str(encoder_path), "--static", "--dimension", "16", "--passages", "256", "--quiet"]
    assert main([*arguments, "--teach", str(documents), "--output", str(tmp_path / "taught")]) == 0
    assert "16 dimensions" in capsys.readouterr().out
    assert (tmp_path / "taught" / "model.safetensors").exists()
