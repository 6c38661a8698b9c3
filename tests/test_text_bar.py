from __future__ import annotations

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.models.conversion import convert_base
from simlte_st.models.loading import load_model
from simlte_st.models.passes import TextReader
from simlte_st.progress import TextBar


@pytest.mark.parametrize("kind", ["encoder", "chunk-mean", "static"])
def test_bar_moves_with_every_pass(
    kind: str, encoder_path: Path, static_model: SentenceTransformer, tmp_path: Path, documents: list[str]
) -> None:
    model = static_model
    if kind == "encoder":
        model = SentenceTransformer(str(encoder_path), device="cpu")
    elif kind == "chunk-mean":
        convert_base(str(encoder_path), tmp_path / "model", backbone=kind, max_length=512)
        model = load_model(tmp_path / "model").model
    texts, seen = documents * 4, []
    with TextBar("Encoding", len(texts), show=True) as bar:
        move = bar._bar.update
        bar._bar.update = lambda documents=1: (move(documents), seen.append(bar._bar.n))[0]
        bar.begin(len(texts))
        with bar.reading(texts, model):
            reader = TextReader(model, 8, texts)
            reader.model.encode(texts, batch_size=reader.batch_size)
    assert seen == sorted(seen)
    assert seen[-1] == bar._bar.total == len(texts)
    assert len(set(seen)) > (1 if kind == "static" else 5)  # a static model reads a million characters at once
