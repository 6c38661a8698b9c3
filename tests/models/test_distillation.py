from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from support import load_encoder, make_tokenizer
from tokenizers_support import TOKENIZERS
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
)

import simlte_st
from simlte_st.errors import ModelError
from simlte_st.models import distillation
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import distil_base

pytest.importorskip("skeletoken", reason="needs the extra static")
static_model = pytest.importorskip("model2vec", reason="needs the extra static").StaticModel


def embeddings(model: SentenceTransformer) -> torch.Tensor:
    first = model[0]
    assert isinstance(first, StaticEmbedding)
    return first.embedding.weight.detach()


def tiny(folder: Path, tokenizer: PreTrainedTokenizerFast, *after: torch.nn.Module) -> SentenceTransformer:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_encoder(folder, *after)


# The result of a distillation.


def test_folder_loads_in_sentence_transformers_and_model2vec(
    encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    made = simlte_st.to_static(encoder_path, tmp_path / "fast", dimension=12, progress=False)
    assert (made.output, made.tokens, made.dimension) == (tmp_path / "fast", 133, 12)
    stock, other = SentenceTransformer(str(made.output), device="cpu"), static_model.from_pretrained(made.output)
    assert [type(module) for module in stock] == [StaticEmbedding, Normalize]
    assert embeddings(stock).dtype == torch.float32
    texts = ["Ba bun.", "xyz Ba bun [UNK] xyz.", "Ba. " * 700 + "Bun dal. " * 700, "", "xyz", *documents[:5]]
    vectors = stock.encode(texts)
    np.testing.assert_allclose(other.encode(texts), vectors, atol=1e-6)
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6, err_msg="unknown words count for nothing")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0, 0, 1, 1, 1, 1, 1], atol=1e-6)
    assert not np.allclose(stock.encode(["Ba. " * 700]), vectors[2], atol=1e-2), "it is read to its end"
    card = (made.output / "README.md").read_text(encoding="utf-8")
    assert "\n- Tokens: 133\n" in card
    assert "from sentence_transformers import SentenceTransformer\n" in card


def test_vectors_match_model2vec(encoder_path: Path) -> None:
    from model2vec.distill import distill_from_model

    model = SentenceTransformer(str(encoder_path), device="cpu")
    model[0].auto_model.name_or_path = str(encoder_path)  # otherwise the Hub is queried
    theirs = distill_from_model(model[0].auto_model, model.tokenizer, pca_dims=12, device="cpu", quantize_to="float32")
    ours = distil_base(model, dimension=12, progress=False)
    assert ours.tokenizer.get_vocab() == theirs.tokenizer.get_vocab()
    rows = [row for row in range(len(theirs.embedding)) if row != theirs.unk_token_id]
    np.testing.assert_allclose(embeddings(ours)[rows], theirs.embedding[rows], atol=1e-6)
    assert not embeddings(ours)[theirs.unk_token_id].any()


def test_added_tokens_are_kept(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["covid-19", "quux"])
    made = distil_base(tiny(tmp_path, tokenizer), progress=False)
    read = made.tokenizer.encode("ba covid-19 quux [CLS]", add_special_tokens=False)
    assert [token.strip() for token in read.tokens[:3]] == ["ba", "covid-19", "quux"]
    assert embeddings(made)[read.ids[1:3]].any(dim=1).all()
    assert "[CLS]" not in made.tokenizer.get_vocab()


# The base of a distillation.


def llama(folder: Path) -> SentenceTransformer:
    tokenizer = TOKENIZERS["byte_level_split"]()
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    LlamaModel(LlamaConfig(**sizes, vocab_size=len(tokenizer), max_position_embeddings=64)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_encoder(folder, pooling="lasttoken")


def dense(folder: Path) -> SentenceTransformer:
    return tiny(folder, make_tokenizer(), Dense(32, 20), Normalize())


def chunks(folder: Path) -> SentenceTransformer:
    tiny(folder / "short", make_tokenizer()).save_pretrained(str(folder / "model"))
    convert_base(folder / "model", folder / "long")
    return SentenceTransformer(str(folder / "long"), device="cpu")


@pytest.mark.parametrize(("make", "size"), [(llama, 32), (dense, 20), (chunks, 32)])
def test_encoders_keep_their_own_pooling(
    make: Callable[[Path], SentenceTransformer], size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model2vec.distill.inference.apply_pca", lambda vectors, dimension: vectors)
    base = make(tmp_path)
    made = distil_base(base, progress=False)
    for word in ("ba", "bun"):  # a word is read as it is within a text, after a space
        assert len(made.tokenizer.encode(word, add_special_tokens=False).ids) == 1
        found = made.encode(word, convert_to_tensor=True)
        wanted = torch.nn.functional.normalize(base.encode(f" {word}", convert_to_tensor=True), dim=0)
        assert found.shape == (size,)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_raw_checkpoint_is_mean_pooled(bert_path: Path, encoder_path: Path, tmp_path: Path) -> None:
    for base, name in ((bert_path, "bare"), (encoder_path, "pooled")):
        simlte_st.to_static(base, tmp_path / name, progress=False)
    one, two = (SentenceTransformer(str(tmp_path / name), device="cpu") for name in ("bare", "pooled"))
    torch.testing.assert_close(embeddings(one), embeddings(two), atol=1e-6, rtol=0)


# Models that cannot be distilled.


def test_unsupported_models_are_refused_before_encoding(
    encoder_path: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distillation, "_token_vectors", lambda *given: pytest.fail("tokens were encoded"))
    static = SentenceTransformer(modules=[StaticEmbedding(make_tokenizer(), embedding_dim=4)], device="cpu")
    with pytest.raises(ModelError, match="static"):
        distil_base(static, progress=False)
    classifier = BertForSequenceClassification(BertConfig.from_pretrained(bert_path))
    classifier.save_pretrained(tmp_path / "cross")
    make_tokenizer().save_pretrained(tmp_path / "cross")
    with pytest.raises(ModelError, match="CrossEncoder"):
        simlte_st.to_static(tmp_path / "cross", tmp_path / "x")
    model = SentenceTransformer(str(encoder_path), device="cpu")
    monkeypatch.setattr(type(model), "tokenizer", property(lambda self: object()))
    with pytest.raises(ModelError, match="fast tokenizer"):
        distil_base(model, progress=False)
    assert not (tmp_path / "x").exists()
