from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import BoW, Pooling, StaticEmbedding
from torch import nn
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

from simlte_st.compat import encoder_of
from simlte_st.errors import ModelError
from simlte_st.losses.masked_language_model import make_mlm_head

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
# RoBERTa-like models number positions from the padding id, 0 here, plus one.
KINDS: dict[str, dict[str, Any]] = {
    "bert": {**SIZES, "hidden_act": "relu"},
    "roberta": {**SIZES, "max_position_embeddings": 66},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "activation": "relu"},
    "electra": {**SIZES, "embedding_size": 20},
    "mpnet": {**SIZES, "max_position_embeddings": 66},
    "longformer": {**SIZES, "max_position_embeddings": 66, "attention_window": 8},
    "modernbert": {**SIZES, "global_attn_every_n_layers": 2, "local_attention": 16},
    "xlm-roberta": {**SIZES, "max_position_embeddings": 66},
    "camembert": {**SIZES, "max_position_embeddings": 66},
}
TEXTS = ["Ba bei bo, cun dis.", "Let lal gor hun tis wet wal. Ba, bei."]


def save_checkpoint(path: Path, tokenizer_path: Path, kind: str, headless: bool = False, **settings: Any) -> Path:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_path)
    ids = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    config = AutoConfig.for_model(
        kind,
        **{"max_position_embeddings": 64, **KINDS.get(kind, SIZES), **ids, "vocab_size": len(tokenizer)},
        **settings,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        masked_lm = AutoModelForMaskedLM.from_config(config)
        with torch.no_grad():
            for value in masked_lm.parameters():  # biases of 0 and norms of 1 hide errors
                value.add_(torch.randn_like(value) * 0.2)
    (masked_lm.base_model if headless else masked_lm).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def load(path: Path) -> SentenceTransformer:
    transformer = Transformer(str(path))
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[transformer, pooling], device="cpu").eval()


def stock_logits(path: Path, features: dict[str, Any]) -> torch.Tensor:
    masked_lm = AutoModelForMaskedLM.from_pretrained(path).eval()
    return masked_lm(input_ids=features["input_ids"], attention_mask=features["attention_mask"]).logits


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_checkpoints_head_gives_the_stock_logits(kind: str, tied: bool, bert_path: Path, tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / kind, bert_path, kind, tie_word_embeddings=tied)
    masked_lm = AutoModelForMaskedLM.from_pretrained(path)
    shared = torch.equal(masked_lm.get_input_embeddings().weight, masked_lm.get_output_embeddings().weight)
    assert shared is tied  # else the two cases are one
    model = load(path)
    state = torch.get_rng_state()
    head = make_mlm_head(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert head.pretrained
    assert (head.decoder is None) is tied

    features = model.preprocess(TEXTS)
    real = features["attention_mask"].bool()
    assert not real.all()
    expected = stock_logits(path, features)[real]
    words = encoder_of(model).get_input_embeddings().weight
    logits = head(model(features)["token_embeddings"][real], words)
    assert logits.shape == (int(real.sum()), len(words))
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)

    sizes = {tuple(parameter.shape) for parameter in head.parameters()}
    assert (tuple(words.shape) in sizes) is not tied
    logits.logsumexp(1).sum().backward()
    assert all(parameter.grad is not None for parameter in head.parameters())
    gradient = torch.autograd.grad(
        head(torch.randn(3, model[0].get_embedding_dimension()), words).square().sum(), words, allow_unused=True
    )[0]
    assert (gradient is not None and bool(gradient.any())) is tied


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_without_a_head_gets_a_fresh_one(
    kind: str, bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_checkpoint(tmp_path / kind, bert_path, kind, headless=True)
    model = load(path)
    state = torch.get_rng_state()
    with caplog.at_level(logging.INFO, "simlte_st"):
        head = make_mlm_head(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert not head.pretrained
    assert "MLM head: new" in caplog.text
    with pytest.raises(ModelError, match=r"MLM head.* no '.*fresh"):
        make_mlm_head(model, "pretrained")

    features = model.preprocess(TEXTS)
    words = encoder_of(model).get_input_embeddings().weight
    logits = head(model(features)["token_embeddings"].flatten(0, 1), words)
    assert logits.shape[1] == len(words) == head.bias.numel()
    assert logits.isfinite().all()
    assert logits.std() > 0


# A fresh head.


@pytest.fixture
def raw(bert_path: Path) -> SentenceTransformer:
    return load(bert_path)


def test_a_fresh_head_depends_on_the_seed_only(raw: SentenceTransformer) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = make_mlm_head(raw, "fresh", seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    second = make_mlm_head(raw, "fresh", seed=5)
    other = make_mlm_head(raw, "fresh", seed=6)
    assert first.state_dict().keys() == second.state_dict().keys()
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())
    assert not torch.equal(first.dense.weight, other.dense.weight)
    assert 0.015 < first.dense.weight.std() < 0.025  # the configuration's initializer_range is 0.02
    assert not first.dense.bias.any()
    assert not first.bias.any()
    assert (first.norm.weight == 1).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda tokenizer: StaticEmbedding(tokenizer.backend_tokenizer, embedding_dim=8),
        lambda tokenizer: BoW(vocab=["ba", "bei"]),
    ],
    ids=["static", "bag of words"],
)
def test_a_model_that_is_no_transformer(make: Callable[[Any], nn.Module], bert_path: Path) -> None:
    model = SentenceTransformer(modules=[make(AutoTokenizer.from_pretrained(bert_path))], device="cpu")
    name = re.escape(type(model[0]).__name__)
    for source in ("auto", "pretrained", "fresh"):
        with pytest.raises(ModelError, match=rf"begins with {name}.*mlm_weight=0"):
            make_mlm_head(model, source)  # type: ignore[arg-type]


# The library's messages.
