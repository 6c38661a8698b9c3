from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document

from simlte_st import train
from simlte_st.data import DocSplit, DocSplitTransform, Document
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.modules import PositionPooling, TokenTable
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.training.load_corpus import HoldOut
from simlte_st.training.result import WHOLE

CORPUS = [Document(f"d{number}", "text") for number in range(2000)]


def held_out(documents: list[Document], seed: int = 0) -> set[str]:
    """Hold out a tenth of documents, and check that the others are trained on and that the order does not matter."""
    found = []
    for each in (documents, documents[::-1]):
        holder = HoldOut(0.1, seed=seed)
        rest = list(holder.divert(each))
        assert {*rest, *holder.documents} == {*documents}
        assert len(rest) + len(holder.documents) == len(documents)
        found.append({document.id for document in holder.documents})
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(("number", "low", "high"), [(2000, 150, 250), (600, 100, 100), (400, 90, 100), (120, 20, 55)])
def test_held_out_share_is_larger_for_few_documents(number: int, low: int, high: int) -> None:
    assert low <= len(held_out(CORPUS[:number])) <= high
    assert held_out(CORPUS[:number], seed=1) != held_out(CORPUS[:number], seed=2)


def test_training_and_held_out_texts_are_disjoint(tmp_path: Path) -> None:
    texts = [f"Number {number} begins. And it ends." for number in range(300)]
    corpus = [Document(f"{turn}-{number}", text) for turn in range(3) for number, text in enumerate(texts)]
    holder, views = HoldOut(0.1), DocSplitTransform(DocSplit())
    trained = views.attach(corpus, directory=tmp_path, hold_out=holder.divert).with_format(None)
    held = [document.text for document in holder.documents]
    left = [" ".join(sentences).replace("  ", " ") for sentences in trained["sentences"][:]]
    assert sorted([*held, *left]) == sorted(texts), "each text once, whichever of its copies would be held out"
    assert {document.id[:2] for document in holder.documents} == {"0-"}, "the first copy decides"
    assert views.report is not None
    assert views.report.left_out == {"exact duplicate of another document": 600}


OPTIONS: dict[str, Any] = {"batch_size": 8, "max_steps": 2, "learning_rate": 3e-3, "held_out": 0.3, "progress": False}
UNMEASURED: dict[str, Any] = {**OPTIONS, "held_out": 0.0}


@pytest.fixture(scope="module")
def long() -> list[str]:
    """110 documents of 102 tokens; a base reads 62 of them."""
    return [make_document(number) for number in range(110)]


def test_long_documents_are_read_whole(encoder_path: Path, long: list[str], tmp_path: Path) -> None:
    whole = train(long, tmp_path / "whole", base=encoder_path, keep="trained", **OPTIONS)
    assert whole.whole
    assert whole.truncation.cut_texts == 0
    assert WHOLE in str(whole)
    assert WHOLE in (tmp_path / "whole" / "README.md").read_text()
    assert "import simlte_st" in (tmp_path / "whole" / "README.md").read_text()

    short = train(long, tmp_path / "short", base=encoder_path, keep="trained", max_length="base", **OPTIONS)
    assert not short.whole
    assert json.loads((tmp_path / "short" / "simlte.json").read_text())["whole"] is False
    assert WHOLE not in str(short)
    assert whole.gain is not None
    assert short.gain is not None
    assert whole.gain["structure"] == short.gain["structure"], "both verdicts are on readers of as many tokens"
    inner = SentenceTransformer(str(tmp_path / "short"), device="cpu")
    assert (inner.max_seq_length, type(inner[0].auto_model).__name__) == (64, "BertModel")
    expected = to_chunk_mean(inner, WHOLE_DOCUMENTS).encode(long[:4])
    np.testing.assert_allclose(whole.load(device="cpu").encode(long[:4]), expected, atol=1e-5)
    assert not np.allclose(inner.encode(long[:4]), expected, atol=1e-3)


def test_kept_base_reads_whole_documents(encoder_path: Path, long: list[str], tmp_path: Path) -> None:
    result = train(long, tmp_path / "m", base=encoder_path, lsa=5, **{**OPTIONS, "learning_rate": 1e-9})
    assert result.kept == "base"
    kept = result.load(device="cpu")
    assert isinstance(kept[-1], TokenTable)
    base = to_chunk_mean(SentenceTransformer(str(encoder_path), device="cpu"), WHOLE_DOCUMENTS).encode(long[:4])
    own = kept.encode(long[:4])[:, : base.shape[1]]
    own, base = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (own, base))
    np.testing.assert_allclose(own, base, atol=1e-5)
    trained = SentenceTransformer(str(tmp_path / "m.trained"), device="cpu", trust_remote_code=True)
    assert trained.max_seq_length == kept.max_seq_length == WHOLE_DOCUMENTS


def test_base_is_not_converted_if_little_is_truncated(encoder_path: Path, long: list[str], tmp_path: Path) -> None:
    short = train([text[:220] for text in long], tmp_path / "short", base=encoder_path, **UNMEASURED)
    assert 0 < short.truncation.cut_tokens < 0.1 * short.truncation.tokens
    assert not short.whole, "little is cut"
    assert "BertModel" in str(type(short.load(device="cpu")[0].auto_model))
    base = SentenceTransformer(str(encoder_path), device="cpu")
    positioned = SentenceTransformer(modules=[base[0], PositionPooling(32)], device="cpu")
    positioned.save_pretrained(str(tmp_path / "positioned"))
    other = train(long, tmp_path / "other", base=tmp_path / "positioned", **UNMEASURED)
    assert not other.whole
