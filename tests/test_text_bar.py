from __future__ import annotations

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.models.conversion import convert_base
from simlte_st.models.loading import load_model
from simlte_st.models.passes import TextReader
from simlte_st.progress import TextBar, reading


@pytest.mark.parametrize("kind", ["encoder", "chunk-mean", "static"])
def test_it_moves_with_every_pass(
    kind: str, encoder_path: Path, static_model: SentenceTransformer, tmp_path: Path, documents: list[str]
) -> None:
    model = static_model
    if kind == "encoder":
        model = SentenceTransformer(str(encoder_path), device="cpu")
    elif kind == "chunk-mean":
        convert_base(str(encoder_path), tmp_path / "model", backbone=kind, max_length=512)
        model = load_model(tmp_path / "model").model
    texts, seen = documents * 4, []
    with TextBar(model, "Encoding", len(texts), shown=True) as bar:
        move = bar._bar.update
        bar._bar.update = lambda documents=1: (move(documents), seen.append(bar._bar.n))[0]
        bar.begin(len(texts))
        with bar.reading(texts):
            reader = TextReader(model, 8, texts)
            reader.model.encode(texts, batch_size=reader.batch_size)
    assert seen == sorted(seen)
    assert seen[-1] == bar._bar.total == len(texts)
    assert len(set(seen)) > (1 if kind == "static" else 5)  # a static one reads a million characters at once


def test_passages_count_as_parts_of_their_documents(model: SentenceTransformer, documents: list[str]) -> None:
    with TextBar(model, "Indexing", 30, shown=True) as bar:
        for start in (0, 10):
            bar.begin(10)
            with bar.reading(documents[start : start + 20]):
                model.encode(documents[start : start + 20], batch_size=2)
        bar.begin(5)  # of which none has to be read
        assert (bar._bar.n, bar._bar.total) == (20, 30)


def test_a_bar_that_is_not_shown_does_nothing(
    model: SentenceTransformer, documents: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with TextBar(model, "Encoding", None, shown=False) as bar, bar.reading(documents):
        assert not any(module._forward_hooks for module in model.modules())
        model.encode(documents)
    assert capsys.readouterr().err == ""


def test_hooks_are_gone_after_an_error(model: SentenceTransformer) -> None:
    with pytest.raises(OSError, match="gone"), reading(model, "Encoding", ["A text."], shown=True):
        raise OSError("The disk is gone.")
    assert not any(module._forward_hooks for module in model.modules())
