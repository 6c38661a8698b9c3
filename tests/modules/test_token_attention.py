from __future__ import annotations

import math
import re
from collections import OrderedDict
from functools import partial
from pathlib import Path

import pooling_support
import pytest
import torch
from datasets import Dataset
from pooling_support import check_empty_batches, check_flattened, check_round_trip, compute_both
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch import Tensor

from simlte_st.losses import ReconstructionLoss
from simlte_st.modules import TokenAttention, token_attention


def transcribed(module: TokenAttention, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """TA-SBERT, Eq. 1 to 4, for one text without padding, ``[s, d]``."""
    q, k, t = (tokens @ layer.weight.T for layer in (module.query, module.key, module.token))
    a = torch.softmax(q @ k.T / math.sqrt(tokens.shape[1]), dim=-1)
    o = torch.softmax(a @ t / math.sqrt(module.s_max), dim=0)
    return (o * tokens).sum(dim=0), o[:, 0]


batch = partial(pooling_support.batch, size=8)


@pytest.fixture
def module() -> TokenAttention:
    return TokenAttention(8, s_max=4)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("block", [1, 40, 1 << 22])
def test_vectors_and_gradients_match_the_equations(
    module: TokenAttention, block: int, left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_attention, "BLOCK", block)
    features = batch((7, 1, 12), left=left)
    torch.testing.assert_close(*compute_both(module, features, lambda tokens: transcribed(module, tokens)[0]))
    rows = zip(*(features[name] for name in ("token_embeddings", "attention_mask")), strict=True)
    for weights, (tokens, mask) in zip(module(dict(features))["token_attention"], rows, strict=True):
        torch.testing.assert_close(weights[mask.bool()], transcribed(module, tokens[mask.bool()])[1])
        assert not weights[~mask.bool()].any()


def test_prompt_can_be_excluded(module: TokenAttention) -> None:
    features = batch((9, 6))
    whole = module(dict(features))["sentence_embedding"]
    torch.testing.assert_close(module({**features, "prompt_length": 3})["sentence_embedding"], whole)
    module.include_prompt = False
    found = module({**features, "prompt_length": torch.tensor([3])})["sentence_embedding"]
    for row, length in enumerate((9, 6)):
        torch.testing.assert_close(found[row], transcribed(module, features["token_embeddings"][row, 3:length])[0])


def test_flattened_and_empty_batches(module: TokenAttention) -> None:
    check_flattened(module)
    module.include_prompt = True
    one = batch((1,))
    torch.testing.assert_close(module(dict(one))["sentence_embedding"], one["token_embeddings"][:, 0])
    check_empty_batches(module)
    nothing = module({"token_embeddings": torch.zeros(2, 0, 8), "attention_mask": torch.zeros(2, 0)})
    assert nothing["sentence_embedding"].tolist() == torch.zeros(2, 8).tolist()


def test_initial_weights_follow_the_paper() -> None:
    before = torch.get_rng_state()
    module = TokenAttention(256)
    assert torch.equal(before, torch.get_rng_state())
    weights = module.query.weight.detach()
    assert weights.mean().abs() < 0.002
    assert weights.var() == pytest.approx(0.02, rel=0.03)
    assert weights.abs().max() <= math.sqrt(0.06)
    assert torch.equal(weights, TokenAttention(256).query.weight)
    assert not torch.equal(weights, TokenAttention(256, seed=1).query.weight)


def test_save_and_load(bert_path: Path, tmp_path: Path) -> None:
    pooling = TokenAttention(32, s_max=64, seed=3)
    loaded = check_round_trip(pooling, bert_path, tmp_path)
    assert loaded.s_max == 64
    assert torch.equal(loaded.query.weight, pooling.query.weight)


@pytest.mark.parametrize("named", [False, True])
def test_documented_learning_rate_applies_beyond_the_encoder(bert_path: Path, tmp_path: Path, named: bool) -> None:
    found = re.search(r'learning_rate_mapping={r"(.*?)": 3e-5}', TokenAttention.__doc__ or "")
    assert found
    pattern = found[1].replace("0", "transformer") if named else found[1]
    parts = OrderedDict(transformer=Transformer(str(bert_path)), pooling=TokenAttention(32))
    model = SentenceTransformer(modules=parts if named else list(parts.values()), device="cpu")
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), learning_rate=2e-5, learning_rate_mapping={pattern: 3e-5}, report_to=[], use_cpu=True
    )
    data = Dataset.from_dict({"first": ["a b", "c d"], "second": ["a", "c"], "label": [0, 1]})
    loss = ReconstructionLoss(SoftmaxLoss(model, 32, num_labels=2))
    trainer = SentenceTransformerTrainer(model, arguments, data, loss=loss)
    groups = trainer.create_optimizer().param_groups
    rates = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    assert {rates[id(weight)] for weight in model[0].parameters()} == {2e-5}
    for part in (model[1], loss.head, loss.loss.classifier):
        assert {rates[id(weight)] for weight in part.parameters()} == {3e-5}
