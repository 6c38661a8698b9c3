from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from longformer_support import randomise, stock_config
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from support import make_tokenizer
from transformers import LongformerForMaskedLM, LongformerModel

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses.masked_language_model import make_mlm_head
from simlte_st.models.conversion import convert_base
from simlte_st.models.loading import load_model
from simlte_st.modules.chunk_mean import to_chunk_mean

TEXTS = ["Ba bei bo un.", "Cis ka " * 10]


def test_short_texts_keep_their_vectors(encoder_path: Path, tmp_path: Path) -> None:
    original = SentenceTransformer(str(encoder_path), device="cpu")
    original.append(Normalize())
    original.save_pretrained(str(tmp_path / "original"))
    convert_base(tmp_path / "original", tmp_path / "m", max_length=200, attention_window=64)
    model = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Normalize"]
    assert model.max_seq_length == 200
    np.testing.assert_allclose(model.encode(TEXTS), original.encode(TEXTS), atol=1e-5)
    assert not np.allclose(model.encode(["ba " * 150]), original.encode(["ba " * 150]), atol=1e-3)


@pytest.mark.parametrize("with_head", [True, False])
def test_stock_longformer_is_converted(with_head: bool, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    config = stock_config(vocab_size=len(tokenizer), pad_token_id=0, max_position_embeddings=90)
    stock = (LongformerForMaskedLM if with_head else LongformerModel)(config).eval()
    randomise(stock)
    stock.save_pretrained(tmp_path / "stock")
    tokenizer.save_pretrained(tmp_path / "stock")
    convert_base(tmp_path / "stock", tmp_path / "m", pooling="cls")
    model = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    assert model.max_seq_length == 89
    text = "ba bei " * 40
    ids = torch.tensor([tokenizer(text, truncation=False)["input_ids"]])
    first = torch.zeros_like(ids)
    first[:, 0] = 1
    encoder = stock.longformer if with_head else stock
    expected = encoder(input_ids=ids, global_attention_mask=first).last_hidden_state[0, 0]
    np.testing.assert_allclose(model.encode([text])[0], expected.detach().numpy(), atol=1e-4)
    if with_head:
        head = make_mlm_head(model, "pretrained")
        assert torch.equal(head.dense.weight.cpu(), stock.lm_head.dense.weight)
    with pytest.raises(ConfigurationError, match="max_length=500"):
        convert_base(tmp_path / "stock", tmp_path / "n", max_length=500)
    tuned = SentenceTransformer(str(tmp_path / "stock"), device="cpu")
    tuned.save_pretrained(str(tmp_path / "tuned"))
    convert_base(tmp_path / "tuned", tmp_path / "kept")
    kept = SentenceTransformer(str(tmp_path / "kept"), device="cpu")
    # Its tokenizer truncates after 64 tokens. No token attends globally, as in the stock model.
    np.testing.assert_allclose(kept.encode([text[:200]]), tuned.encode([text[:200]]), atol=1e-5)


def test_convert_defaults_to_whole_documents(encoder_path: Path, tmp_path: Path) -> None:
    convert_base(encoder_path, tmp_path / "m")
    model = load_model(tmp_path / "m").model
    expected = to_chunk_mean(load_model(encoder_path).model, 32_768)
    assert model.max_seq_length == 32_768
    np.testing.assert_allclose(model.encode(["ba bei " * 60]), expected.encode(["ba bei " * 60]), atol=1e-6)
    convert_base(encoder_path, tmp_path / "n", attention_window=64)
    assert load_model(tmp_path / "n").model.max_seq_length == 4096, "a setting of the Longformer's asks for one"


def test_chunk_mean_can_be_lengthened(encoder_path: Path, tmp_path: Path) -> None:
    convert_base(encoder_path, tmp_path / "m", backbone="chunk-mean", max_length=80, chunk_length=32)
    convert_base(tmp_path / "m", tmp_path / "longer", backbone="chunk-mean", max_length=200)
    model = load_model(tmp_path / "longer").model
    expected = to_chunk_mean(load_model(encoder_path).model, 200, 32)
    assert model.max_seq_length == 200
    np.testing.assert_allclose(model.encode(["ba bei " * 60]), expected.encode(["ba bei " * 60]), atol=1e-6)
    refused: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"backbone": "longformer"}, ModelError, "reads in chunks"),
        ({"backbone": "longformer", "chunk_length": 16}, ConfigurationError, "chunk_length=16 .*'longformer'"),
        ({"backbone": "chunk-mean", "global_tokens": "cls"}, ConfigurationError, "global_tokens='cls' .*'chunk-mean'"),
        ({"backbone": "x"}, ConfigurationError, "backbone='x'"),
    )
    for settings, error, message in refused:
        with pytest.raises(error, match=message):
            convert_base(tmp_path / "m", tmp_path / "n", **settings)
    assert not (tmp_path / "n").exists()


def test_convert_does_not_overwrite_or_leave_partial_files(encoder_path: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "precious").write_text("x")
    for overwrite, message in ((False, "already exists"), (True, "is not a model")):
        with pytest.raises(ConfigurationError, match=message):
            convert_base(encoder_path, tmp_path / "m", overwrite=overwrite)
    (tmp_path / "m" / "modules.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="attention_window"):
        convert_base(encoder_path, tmp_path / "m", attention_window=7, overwrite=True)
    with pytest.raises(ConfigurationError, match="max_length=2"):
        convert_base(encoder_path, tmp_path / "m", max_length=2, overwrite=True)
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"precious", "modules.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    convert_base(encoder_path, tmp_path / "m", max_length=100, overwrite=True)
    assert not (tmp_path / "m" / "precious").exists()
