"""Fixtures for evaluators: tiny random models and labelled texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support import load_encoder, make_tokenizer
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel, T5Config, T5EncoderModel

from simlte_st.evaluation import CosineScores

WORDS = [f"w{i}" for i in range(60)]


def on_circle(degrees: list[float]) -> CosineScores:
    angles = np.deg2rad(degrees)
    return CosineScores(np.column_stack([np.cos(angles), np.sin(angles)]))


def _build(path: Path, family: str, positions: int, max_length: int) -> SentenceTransformer:
    tokenizer = make_tokenizer(WORDS, max_length)
    tokenizer.save_pretrained(path)
    size = len(tokenizer)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if family == "bert":
            model = BertModel(BertConfig(vocab_size=size, max_position_embeddings=positions, pad_token_id=0, **shape))
        elif family == "roberta":
            config = RobertaConfig(vocab_size=size, max_position_embeddings=positions, pad_token_id=1, **shape)
            model = RobertaModel(config)
        else:
            model = T5EncoderModel(T5Config(vocab_size=size, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2))
        model.save_pretrained(path)
    return load_encoder(path)


@pytest.fixture(scope="session")
def tiny_model_for_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SentenceTransformer]:
    """A function that builds a model of a family (bert, roberta, t5) with its position table and tokenizer limit."""

    def build(family: str = "bert", positions: int = 64, max_length: int = 16) -> SentenceTransformer:
        return _build(tmp_path_factory.mktemp(family), family, positions, max_length)

    return build


@pytest.fixture(scope="session")
def labelled_texts() -> tuple[list[str], list[str]]:
    """60 texts of 12 words in 3 classes with separate words."""
    generator = torch.Generator().manual_seed(3)
    texts, labels = [], []
    for i in range(60):
        kind = i % 3
        numbers = torch.randint(kind * 20, kind * 20 + 20, (12,), generator=generator).tolist()
        texts.append(" ".join(WORDS[number] for number in numbers))
        labels.append("abc"[kind])
    return texts, labels
