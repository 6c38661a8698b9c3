"""Train static models, from a static base and from a distilled one."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support import make_document
from training_support import assert_same_bytes, interrupt_at_step, weights

from simlte_st import train
from simlte_st.data import DocSplitTransform, read_documents
from simlte_st.errors import ConfigurationError
from simlte_st.models import teaching
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_lsa, document_token_counts
from simlte_st.training import get_preset
from simlte_st.training import prepare_model as loading
from simlte_st.training.batches import TokenViews, preprocess_views, tokenize_corpus
from simlte_st.training.prepare_model import preset_for
from simlte_st.views.corpus import document_lengths

OPTIONS: dict[str, Any] = {"max_steps": 8, "batch_size": 16, "keep": "trained", "progress": False, "device": "cpu"}


def vectors(folder: Path) -> np.ndarray:
    """Return the table of a static model."""
    tensors = weights(folder)
    return tensors["embeddings" if "embeddings" in tensors else "embedding.weight"]


def texts_of(corpus: Dataset) -> list[str]:
    return [" ".join(row["sentences"]) for row in corpus.with_format(None)]


def test_static_base_uses_its_preset_and_whole_documents(
    static_path: Path, documents: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert preset_for(load_model(static_path)) == get_preset("docsplit-static")
    with caplog.at_level("INFO", "simlte_st"):
        result = train(documents, tmp_path / "m", base=static_path, lsa=0, **OPTIONS)
    assert result.static
    assert result.preset == replace(get_preset("docsplit-static"), batch_size=16, steps=8, most_passes=None)
    assert result.steps == 8
    assert not result.truncation.cut_texts
    assert result.dtype == "float32"
    before, after = vectors(static_path), vectors(tmp_path / "m")
    assert before.shape == after.shape
    assert np.abs(before - after).max() > 1e-2
    stock = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert isinstance(stock[0], StaticEmbedding)
    long = " ".join(documents)
    np.testing.assert_allclose(stock.encode([long]), result.load(device="cpu").encode([long]), atol=1e-5)
    assert "static" in result.summary()
    assert json.loads((tmp_path / "m" / "simlte.json").read_text())["static"] is True
    assert "The model is static" in (tmp_path / "m" / "README.md").read_text()


def test_few_documents_limit_the_number_of_passes(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "max_steps"}
    result = train(documents, tmp_path / "m", base=static_path, lsa=0, held_out=0.0, **options)
    assert result.steps == 14 * (48 // 16), "and not the steps that are the most"
    most = train(documents[:20], tmp_path / "few", base=static_path, lsa=0, held_out=0.0, **options)
    assert most.steps == 14, "a step on the four that are left would count as one on sixteen"


def test_stock_libraries_load_the_trained_model(
    static_path: Path, documents: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [text.replace(" ", " \u2603 ", number % 9) for number, text in enumerate(documents)]  # unknown tokens
    result = train(documents, tmp_path / "m", base=static_path, **OPTIONS)
    assert result.lsa is not None
    without = train(documents, tmp_path / "without", base=static_path, lsa=0, **OPTIONS)
    assert without.lsa is None
    append_lsa(tmp_path / "m", documents, tmp_path / "appended")
    again = train(documents, tmp_path / "again", base=tmp_path / "m", **OPTIONS).load(device="cpu")
    assert [type(module).__name__ for module in again] == ["StaticEmbedding", "Normalize"]
    assert again.get_embedding_dimension() == 32, "and not longer by each analysis"
    assert caplog.text.count(" has a latent semantic analysis and keeps it") == 2, "not for the models above"
    assert np.abs(vectors(tmp_path / "m") - vectors(tmp_path / "without")).max() > 1e-2
    texts = [*documents, " ".join(documents)]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    code = """
import json, sys
import numpy as np
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer

folder, texts = sys.argv[1], json.load(open(sys.argv[2]))
stock = SentenceTransformer(folder, device="cpu")
assert [type(module).__name__ for module in stock] == ["StaticEmbedding", "Normalize"]
assert not any(name.startswith("simlte") for name in sys.modules)
model2vec = StaticModel.from_pretrained(folder).encode(texts, max_length=None)
vectors = stock.encode(texts)
assert np.abs(vectors - model2vec).max() < 1e-6, np.abs(vectors - model2vec).max()
np.save(sys.argv[3], vectors)
"""
    places = [str(tmp_path / name) for name in ("m", "texts.json", "vectors.npy")]
    done = subprocess.run([sys.executable, "-c", code, *places], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(places[2]), result.load(device="cpu").encode(texts), atol=1e-5)


def test_encoder_is_distilled_once_before_training(
    encoder_path: Path, static_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def distil_base(base: Any, **options: Any) -> SentenceTransformer:
        calls.append(base.name)
        return load_model(static_path).model

    def teach(
        model: SentenceTransformer, encoder: SentenceTransformer, texts: list[str], *_: Any, **options: Any
    ) -> None:
        calls.append(f"{len(texts)} texts")
        teaching.teach(model, encoder, texts, 300, **options)

    monkeypatch.setattr(loading, "distil_base", distil_base)
    monkeypatch.setattr(loading, "teach", teach)
    options = {**OPTIONS, "base": encoder_path, "static": True, "save_steps": 2}
    train(documents, tmp_path / "whole", **options)
    assert calls == [str(encoder_path), "38 texts"], "without those held out"
    with interrupt_at_step(5):
        train(documents, tmp_path / "m", **options)
    result = train(documents, tmp_path / "m", resume=True, workers=1, **options)
    assert len(calls) == 4, "the taught base is in the folder of the run"
    assert_same_bytes(tmp_path / "whole", tmp_path / "m")
    assert result.static
    saved = json.loads((tmp_path / "m" / "simlte.json").read_text())
    assert saved["base"] == str(encoder_path)


def test_verdict_compares_whole_halves(static_path: Path, tmp_path: Path) -> None:
    documents = [make_document(number, sentences=24) for number in range(120)]
    result = train(documents, tmp_path / "m", base=static_path, held_out=0.3, **{**OPTIONS, "keep": "verdict"})
    assert result.gain is not None
    assert result.gain["documents"] >= 30
    gains = result.gain["halves"]
    assert set(gains) >= {"base", "trained"}
    # Halves of 62 tokens, as for encoders, would be found far less often.
    assert gains["base"]["split_half_mrr"] > 0.9
    refused = train(
        documents, tmp_path / "same", base=static_path, held_out=0.3, lsa=0,
        **{**OPTIONS, "keep": "verdict", "learning_rate": 1e-9},
    )  # fmt: skip
    assert refused.kept == "base"
    expected = vectors(static_path)
    expected[1] = 0  # of unknown tokens, which model2vec skips
    np.testing.assert_array_equal(vectors(tmp_path / "same"), expected)


def test_token_views_match_text_views(static_model: SentenceTransformer, documents: list[str], tmp_path: Path) -> None:
    views = DocSplitTransform(seed=3)
    corpus = views.attach([*documents, "Net run kor na so ma", "One " * 70 + "run."])
    tokenized = tokenize_corpus(corpus, static_model.tokenizer, tmp_path / "tokens", progress=False)
    tokens = TokenViews(tokenized, views)
    for epoch in (0, 1):
        views.callback.epoch = epoch
        drawn, rows = tokens.rows()[:], corpus[:]
        for column in ("anchor", "positive"):
            expected = static_model.preprocess(rows[column][:48])
            made = preprocess_views(static_model.tokenizer, drawn[column][:48])
            assert torch.equal(made["input_ids"], expected["input_ids"])
            assert torch.equal(made["offsets"], expected["offsets"])
            text = preprocess_views(static_model.tokenizer, rows[column][:48])
            assert torch.equal(text["input_ids"], expected["input_ids"])
    halves = [drawn[column][48].tolist() for column in ("anchor", "positive")]
    assert [len(half) for half in halves] == [3, 3], "of one sentence"
    ids = [static_model.tokenizer.encode(text, add_special_tokens=False).ids for text in texts_of(corpus)]
    assert [*halves[0], *halves[1]] == ids[48]
    assert [length for part in document_lengths(tokenized) for length in part] == [len(own) for own in ids]
    again = pickle.loads(pickle.dumps(tokens)).rows()[:]
    assert all(np.array_equal(one, two) for one, two in zip(again["anchor"], drawn["anchor"], strict=True))
    prompted = preprocess_views(static_model.tokenizer, drawn["anchor"][:2], prompt="ba bun ")
    assert torch.equal(prompted["offsets"], torch.tensor([0, 2 + len(drawn["anchor"][0])]))


def test_token_counts_match_the_texts(static_model: SentenceTransformer, documents: list[str], tmp_path: Path) -> None:
    views = DocSplitTransform()
    corpus = views.attach([*documents, "[MASK] run. [MASK] so. Run ma."])
    tokenized = tokenize_corpus(corpus, static_model.tokenizer, tmp_path / "tokens", progress=False)
    counts = TokenViews(tokenized, views).counts(static_model.tokenizer)
    texts = texts_of(corpus)
    assert document_token_counts(static_model, counts) is counts
    np.testing.assert_array_equal(document_token_counts(static_model, texts).toarray(), counts.toarray())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("dropout", 0.1, ""), ("pooling", "cls", ""), ("max_view_length", 64, ""), ("max_length", 4096, ""),
        ("mlm_weight", 0.1, ""), ("preset", "docsplit-tuned", "docsplit-static"), ("static", False, "static=False"),
    ],
)  # fmt: skip
def test_inapplicable_options_are_refused(name: str, value: Any, said: str, static_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=said or f"{name}=.*static model"):
        train(["Ba. Bo."] * 3, tmp_path / "m", base=static_path, **{**OPTIONS, name: value})
    assert not (tmp_path / "m.run").exists()


def test_train_on_a_stream(static_path: Path, documents: list[str], tmp_path: Path) -> None:
    stream = read_documents(Dataset.from_dict({"text": documents}).to_iterable_dataset(num_shards=4), stream=True)
    result = train(stream, tmp_path / "m", base=static_path, **OPTIONS)
    assert (result.static, result.lsa) == (True, None)
    assert np.abs(vectors(static_path) - vectors(tmp_path / "m")).max() > 1e-2
