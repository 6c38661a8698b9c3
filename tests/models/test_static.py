from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer as Stock
from support import make_static_model, write_model2vec

import simlte_st
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation.evaluator import reading_at_most
from simlte_st.models.conversion import convert_base
from simlte_st.models.encode import encode_documents
from simlte_st.models.limits import Truncation, text_lengths
from simlte_st.models.loading import load_model
from simlte_st.models.parts import weights_digest
from simlte_st.models.static import adds_up, is_static
from simlte_st.views.transform import DocSplitTransform
from simlte_st.words import tokens

UNKNOWN = "\u16a0\u16a1 \u16a2"


@pytest.fixture
def texts(documents: list[str]) -> list[str]:
    return [*documents[:20], "", UNKNOWN, f"ba {UNKNOWN}", "ba", " ".join(documents)]


def stock_vectors(texts: list[str], prompt: str | None = None) -> np.ndarray:
    stock = make_static_model()
    stock.tokenizer.no_truncation()
    return stock.encode(texts, prompt=prompt)


def test_vectors_match_the_stock_class(static_path: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_model(static_path, device="cpu")
    assert is_static(loaded.model)
    assert loaded.tuned
    assert loaded.copy().model.max_seq_length == float("inf")
    ours = simlte_st.SentenceTransformer(static_path, device="cpu")
    assert ours.max_seq_length is None
    monkeypatch.setattr(tokens, "TOKENIZED_CHARACTERS", 700)  # the longest text has several thousand
    monkeypatch.setattr("simlte_st.models.static.TOKENIZED_CHARACTERS", 1_500)
    expected = stock_vectors(texts)
    assert np.abs(expected[20]).max() == 0
    for one in (loaded.model.encode(texts), ours.encode(texts), ours.encode(texts, batch_size=2)):
        np.testing.assert_allclose(one, expected, atol=1e-5)
    np.testing.assert_allclose(ours.encode(texts[0]), expected[0], atol=1e-6)
    assert ours.encode([]).shape == (0,)


def test_vector_depends_only_on_its_text(static_path: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ours = simlte_st.SentenceTransformer(static_path, device="cpu")
    assert adds_up(ours)
    texts = [*texts, "[MASK] ba[SEP]\x0cbo \u00a0bo\u200b", "ba " * 500]
    cold = ours.encode(texts, prompt="bo[")
    warm = ours.encode(texts[::-1], prompt="bo[")[::-1]
    alone = np.stack([ours.encode(text, prompt="bo[") for text in texts])
    monkeypatch.setattr(tokens, "MAX_CACHED_WORDS", 5)  # the cache forgets words between texts
    with ThreadPoolExecutor(4) as pool:
        forgotten = np.stack([*pool.map(lambda text: ours.encode(text, prompt="bo["), texts)])
    for found in (warm, alone, forgotten):
        np.testing.assert_array_equal(found, cold)
    np.testing.assert_allclose(cold, stock_vectors(texts, "bo["), atol=1e-5)


@pytest.mark.parametrize("change", ["weights", "hook", "dtype"])
def test_changed_models_give_changed_vectors(static_path: Path, texts: list[str], change: str) -> None:
    ours, stock = simlte_st.SentenceTransformer(static_path, device="cpu"), make_static_model()
    stock.tokenizer.no_truncation()
    before = ours.encode(texts)
    for model in (ours, stock):
        weight = model[0].embedding.weight
        if change == "weights":  # in place, as an optimizer does
            model(model.preprocess(["ba bo"]))["sentence_embedding"].sum().backward()
            torch.optim.SGD(model.parameters(), lr=5.0).step()
        elif change == "hook":
            model[0].register_forward_hook(lambda _, inputs, found: {key: value + 1 for key, value in found.items()})
        else:
            weight.data = weight.data.double() + 0.5
    assert adds_up(ours) == (change == "weights")
    found = ours.encode(texts)
    assert np.abs(found - before).max() > 0.01
    np.testing.assert_allclose(found, stock.encode(texts), atol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "mapped"])
@pytest.mark.parametrize("modules", [True, False])
def test_model2vec_folders_load_in_float32(tmp_path: Path, texts: list[str], kind: str, modules: bool) -> None:
    read = write_model2vec(tmp_path / "m2v", make_static_model(), kind, modules)
    expected = make_static_model()
    expected[0].embedding.weight.data = torch.from_numpy(read)
    expected.tokenizer.no_truncation()
    for model in (load_model(tmp_path / "m2v", device="cpu").model, simlte_st.SentenceTransformer(tmp_path / "m2v")):
        assert model[0].embedding.weight.dtype == torch.float32
        np.testing.assert_allclose(model.encode(texts), expected.encode(texts), atol=1e-5)


def test_bfloat16_tables_load_in_float32(static_model: Stock, texts: list[str], tmp_path: Path) -> None:
    static_model.tokenizer.no_truncation()
    static_model.to(torch.bfloat16).save_pretrained(str(tmp_path / "model"))
    for model in (load_model(tmp_path / "model").model, simlte_st.SentenceTransformer(tmp_path / "model")):
        np.testing.assert_allclose(model.encode(texts), static_model.float().encode(texts), atol=1e-5)


def test_static_models_have_no_max_seq_length(static_path: Path, documents: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="max_seq_length=64"):
        load_model(static_path).copy(max_seq_length=64)
    ours = simlte_st.SentenceTransformer(static_path)
    with pytest.raises(ConfigurationError, match="max_seq_length=64"):
        ours.max_seq_length = 64
    ours.max_seq_length = None
    text = " ".join(documents)
    read = Truncation.of(ours).add(text_lengths(ours, [text, "ba bo."]))
    assert (read.max_seq_length, read.budget, read.cut_texts, read.advice) == (None, None, 0, "")
    assert text_lengths(ours, ["ba bo.", "ba"], "bo ") == [3, 1]
    stock = load_model(static_path, device="cpu").model
    assert [Truncation.of(one, max_seq_length=8).max_seq_length for one in (stock, ours)] == [None, None]
    with reading_at_most(stock, 8):
        np.testing.assert_allclose(stock.encode([text]), stock_vectors([text]), atol=1e-6)
    assert weights_digest(ours) == weights_digest(load_model(static_path).model)
    assert DocSplitTransform(model=ours).budget is None


def test_inapplicable_options_are_refused(static_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no Pooling"):
        load_model(static_path).copy("mean")
    with pytest.raises(ModelError, match="whole texts"):
        convert_base(static_path, tmp_path / "converted")


def test_documents_without_known_tokens_are_counted(static_model: Stock, texts: list[str], tmp_path: Path) -> None:
    rows = [*texts[:20], "\x00\x01", UNKNOWN, f"ba {UNKNOWN}"]
    report = encode_documents(static_model, rows, tmp_path / "v.parquet", part_size=4, progress=False)
    found = report.truncation
    assert (report.documents, found.texts, found.max_seq_length, found.cut_texts) == (23, 23, None, 0)
    vectors = np.stack(pq.read_table(tmp_path / "v.parquet")["vector"].to_pylist())
    np.testing.assert_allclose(vectors, stock_vectors(rows), atol=1e-6)
