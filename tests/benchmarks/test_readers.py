from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from benchmarks.readers import embed, readers


def test_an_interrupted_encoding_keeps_its_pieces(
    model: SentenceTransformer, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = model.encode(documents)
    encode, calls = model.encode, []

    def interrupted(texts: list[str], **options: Any) -> np.ndarray:
        calls.append(len(texts))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return encode(texts, **options)

    monkeypatch.setattr(model, "encode", interrupted)

    def part(start: int, stop: int) -> np.ndarray:
        return model.encode(documents[start:stop])

    with pytest.raises(KeyboardInterrupt):
        embed(tmp_path, part, len(documents), piece=20)
    embeddings = embed(tmp_path, part, len(documents), piece=20)
    assert calls == [20, 20, 8, 8]
    assert embeddings == pytest.approx(whole, abs=1e-5)


def test_readers(encoder_path: Path) -> None:
    made = readers(str(encoder_path), [], 200)
    assert [model().max_seq_length for model in made.values()] == [64, 200]
    again = readers("base", [str(encoder_path)], 40)
    assert list(again) == ["base, truncated", "base, chunk-mean", "tiny-encoder"]
    assert again["tiny-encoder"]().max_seq_length == 40
    with pytest.raises(SystemExit, match=r"Two .*'tiny-encoder'"):
        readers("base", [str(encoder_path), str(encoder_path)], 40)
