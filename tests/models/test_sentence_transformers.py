from __future__ import annotations

import json
import logging
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from simlte_st.errors import ConfigurationError
from simlte_st.models.conversion import convert_base
from simlte_st.models.sentence_transformers import SentenceTransformer
from simlte_st.modules import PositionPooling, TokenAttention


@pytest.fixture(scope="module")
def longformer_path(encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "longformer"
    convert_base(encoder_path, path, max_length=100, attention_window=16)
    return path


def test_saved_model_is_stock(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(encoder_path, device="cpu")
    stock = sentence_transformers.SentenceTransformer(str(encoder_path), device="cpu")
    texts = ["Ba bei bo.", "Cis ka."]
    assert np.array_equal(model.encode(texts), stock.encode(texts))
    assert "sentence_transformers" in str(type(model)), "BERTopic and KeyBERT would replace other models"
    assert np.array_equal(pickle.loads(pickle.dumps(model)).encode(texts), stock.encode(texts))
    model.save_pretrained(str(tmp_path / "saved"))
    stock.save_pretrained(str(tmp_path / "stock"))
    for name in ("modules.json", "config_sentence_transformers.json"):
        saved, expected = (json.loads((tmp_path / kind / name).read_text()) for kind in ("saved", "stock"))
        assert saved == expected


def words(tokens: int) -> str:
    return " ".join(["ba"] * (tokens - 2))  # [CLS] and [SEP] are two more


def test_truncation_is_reported(longformer_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = SentenceTransformer(str(longformer_path), device="cpu")
    assert model.max_seq_length == 100
    with caplog.at_level(logging.WARNING, "simlte_st"):
        whole = model.encode([words(100), words(7)])
        assert caplog.messages == [], "the longest legal text is not cut"
        cut = [model.encode([words(101), words(7)]) for _ in "ab"][1]
        [message] = caplog.messages
        model.max_seq_length = 50
        model.encode(words(101))
    assert len(caplog.messages) == 2, "once a limit"
    assert re.search(r"100 tokens.* 1 of 2 .* 1\.0%", message)
    assert f"simlte convert {longformer_path} --output LONGER" in message
    np.testing.assert_allclose(cut, whole, atol=1e-6)


@pytest.mark.parametrize("pooling", [PositionPooling, TokenAttention, Pooling])
def test_poolings_can_exclude_the_prompt(encoder_path: Path, pooling: Callable[[int], torch.nn.Module]) -> None:
    model = SentenceTransformer(modules=[Transformer(str(encoder_path)), pooling(32)], device="cpu")
    with_prompt = model.encode("ba bun", prompt="bei bo ")
    model.set_pooling_include_prompt(False)
    assert np.abs(model.encode("ba bun", prompt="bei bo ") - with_prompt).max() > 1e-4
    model.set_pooling_include_prompt(True)
    np.testing.assert_array_equal(model.encode("ba bun", prompt="bei bo "), with_prompt)


def test_length_beyond_the_positions_is_refused(longformer_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(longformer_path), device="cpu")
    with pytest.raises(ConfigurationError, match=r"max_seq_length=101: .* 100 .*simlte convert"):
        model.max_seq_length = 101
    model.max_seq_length = 50
    assert model.max_seq_length == 50
    # A folder whose tokenizer has no limit, or a wrong one.
    path = Path(shutil.copytree(longformer_path, tmp_path / "m"))
    settings = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 10**30}))
    assert SentenceTransformer(str(path), device="cpu").max_seq_length == 100
