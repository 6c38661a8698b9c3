"""A text's vector depends on the text only, not on other texts, padding or earlier calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from chunk_mean_support import SIZES
from support import load_encoder, make_document, make_tokenizer, stock_model, watch
from torch import Tensor
from transformers import (
    BigBirdConfig,
    BigBirdModel,
    Gemma3TextConfig,
    Gemma3TextModel,
    OPTConfig,
    OPTModel,
    PreTrainedModel,
    Qwen3Config,
    Qwen3Model,
)

from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.models import passes
from simlte_st.models.encode import encode_documents
from simlte_st.models.loading import load_model
from simlte_st.models.passes import TextReader
from simlte_st.models.sentence_transformers import SentenceTransformer

LENGTHS = [3, 3, 5, 8, 9, 13, 14, 21, 34, 36, 55, 60]
TEXTS = [" ".join(["ba bun cis"] * length)[: 6 * length] for length in LENGTHS]
SHAPE: dict[str, Any] = {**SIZES, "vocab_size": 140, "max_position_embeddings": 256}
HEADS: dict[str, Any] = {**SHAPE, "num_key_value_heads": 2, "head_dim": 8}
DECODERS: dict[str, Callable[[], PreTrainedModel]] = {
    "qwen3": lambda: Qwen3Model(Qwen3Config(**HEADS)),
    "gemma": lambda: Gemma3TextModel(Gemma3TextConfig(**HEADS, sliding_window=8)),
    "opt": lambda: OPTModel(OPTConfig(**SHAPE, ffn_dim=48, word_embed_proj_dim=32)),
}


def write(folder: Path, make: Callable[[], PreTrainedModel], side: str = "right", pooling: Any = "mean") -> Path:
    torch.manual_seed(1)
    make().save_pretrained(folder / "raw")
    tokenizer = make_tokenizer()
    tokenizer.model_max_length, tokenizer.padding_side = 256, side
    tokenizer.init_kwargs["padding_side"] = side  # what is saved
    tokenizer.save_pretrained(folder / "raw")
    load_encoder(folder / "raw", pooling=pooling).save_pretrained(str(folder / "model"))
    return folder / "model"


@pytest.mark.parametrize("pooling", ["lasttoken", "mean"])
@pytest.mark.parametrize("name", DECODERS)
def test_left_padded_decoders_match_stock_with_little_padding(
    name: str, pooling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "CPU_PASS", (256, 8))
    folder = write(tmp_path, DECODERS[name], "left", pooling)
    model, stock = SentenceTransformer(str(folder), device="cpu"), stock_model(folder)
    assert stock.preprocess(TEXTS)["attention_mask"][:, 0].tolist() != [1] * len(TEXTS), "padded on the left"
    notes = watch(model)
    for options in ({}, {"prompt": "bei bo ", "normalize_embeddings": True}):
        np.testing.assert_allclose(model.encode(TEXTS, **options), stock.encode(TEXTS, **options), rtol=0, atol=1e-5)
    assert all(rows * width - tokens <= 8 for rows, width, tokens in notes)
    monkeypatch.undo()
    report = encode_documents(stock, TEXTS, tmp_path / "v.parquet", progress=False)
    assert report.truncation.tokens == sum(
        len(ids) for ids in stock.tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    )


# BigBird: 64 tokens and fewer are a short batch here.


def big_bird() -> BigBirdModel:
    return BigBirdModel(BigBirdConfig(**SHAPE, block_size=8, num_random_blocks=1))


def test_bigbird_vectors_do_not_depend_on_earlier_calls(tmp_path: Path) -> None:
    folder = write(tmp_path, big_bird)
    short, long = "ba bun", " ".join(make_document(number) for number in range(9))
    flipped, stock = stock_model(folder), stock_model(folder)
    after_short = [flipped.encode([short])[0], flipped.encode([long])[0]]
    assert not np.allclose(stock.encode([long])[0], after_short[1], atol=1e-3), "it depends on what was encoded before"
    for model in (SentenceTransformer(str(folder), device="cpu"), load_model(folder, device="cpu").model):
        for texts, expected in (([long], after_short[1:]), ([short, long], after_short), ([long], after_short[1:])):
            reader = TextReader(model, 32, texts)
            np.testing.assert_allclose(reader.model.encode(texts), expected, rtol=0, atol=1e-5)


# Training.


@pytest.mark.parametrize("loss_class", [MultipleNegativesRankingMLMLoss, CachedMultipleNegativesRankingMLMLoss])
def test_loss_does_not_depend_on_the_padding_side(loss_class: Any, tmp_path: Path) -> None:
    """Loss, gradients and passes."""
    options = {"mini_batch_num_tokens": 128} if loss_class is CachedMultipleNegativesRankingMLMLoss else {}
    texts = [TEXTS[:6] + TEXTS[-2:], TEXTS[2:8] + TEXTS[-2:]]
    results: list[tuple[float, Tensor]] = []
    passes_of: list[list[tuple[int, int, int]]] = []
    for side in ("left", "right"):
        model = load_model(write(tmp_path / side, DECODERS["qwen3"], "left", "lasttoken"), device="cpu").model
        model.tokenizer.padding_side = side
        loss = loss_class(model, mlm_weight=0, **options)
        notes = watch(model)
        value = loss([model.preprocess(column) for column in texts], None)
        value.backward()
        gradient = model[0].auto_model.layers[0].mlp.up_proj.weight.grad
        assert gradient is not None
        results.append((float(value.detach()), gradient))
        passes_of.append(notes)
    assert results[0][0] == pytest.approx(results[1][0], abs=1e-5)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-4, atol=1e-6)
    assert passes_of[0] == passes_of[1]
