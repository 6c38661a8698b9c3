from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers import SentenceTransformer
from support import flatten, make_document

import simlte_st
from simlte_st.errors import ConfigurationError
from simlte_st.models.names import usage_example
from simlte_st.models.vectors import unit_rows
from simlte_st.modules import TokenTable
from simlte_st.modules.token_table import FULL
from simlte_st.words.tokens import special_ids, token_ids, vocabulary_size

TEXTS = [make_document(number) for number in range(20)]


def table_for(model: SentenceTransformer) -> TokenTable:
    rows = torch.randn(vocabulary_size(model.tokenizer), 6, generator=torch.Generator().manual_seed(0))
    rows[special_ids(model.tokenizer)] = 0
    return TokenTable.of(rows, 32)


@pytest.fixture
def tabled(model: SentenceTransformer) -> SentenceTransformer:
    model.append(table_for(model))
    return model


def test_cosine_mixes_encoder_and_table(model: SentenceTransformer) -> None:
    model.max_seq_length = 40  # unread text affects neither
    texts = [" ".join(text.split()[: 1 + 2 * number]) for number, text in enumerate(TEXTS)]  # most of them are padded
    own, table = unit_rows(model.encode(texts)), table_for(model)
    model.append(table)
    found = model.encode(texts)
    read = token_ids(model.tokenizer, texts, 38)
    second = unit_rows(np.stack([table.table[list(ids)].numpy().mean(0) for ids in read]))
    share = np.sqrt([0.5 * len(ids) / FULL for ids in read])[:, None]
    np.testing.assert_allclose(found, np.hstack([own * np.sqrt(1 - share**2), second * share]), atol=1e-5)
    assert found.shape == (20, model.get_embedding_dimension() or 0) == (20, 38)


def test_table_weighs_less_for_short_texts(tabled: SentenceTransformer) -> None:
    for tokens, share in ((FULL // 4, 0.125), (FULL, 0.5), (3 * FULL, 0.5)):
        features = {"input_ids": torch.full((1, tokens), 40), "sentence_embedding": torch.ones(1, 40)}
        found = tabled[-1](features)["sentence_embedding"][0]
        assert found[32:].square().sum() == pytest.approx(share)
        assert found.norm() == pytest.approx(1)


def test_flat_static_tokens_match_padded_tokens(static_model: SentenceTransformer) -> None:
    table = table_for(static_model)
    table.table[::7] = 0
    texts = [*TEXTS[:6], "", "ba", " ".join(TEXTS)]
    flat = static_model.preprocess(texts)
    rows = [torch.tensor(static_model.tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    ids = torch.nn.utils.rnn.pad_sequence([row.long() for row in rows], batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    vectors = torch.randn(len(texts), 32)
    padded = table({"input_ids": ids, "attention_mask": mask, "sentence_embedding": vectors})["sentence_embedding"]
    found = table({**flat, "sentence_embedding": vectors})["sentence_embedding"]
    torch.testing.assert_close(found, padded, atol=1e-6, rtol=1e-5)
    assert not found[6, 32:].any()


def batch(model: SentenceTransformer, texts: list[str], **options: Any) -> dict[str, Any]:
    features = model.preprocess(texts, **options)
    kept = {name: features[name] for name in ("input_ids", "attention_mask", "prompt_length") if name in features}
    return {**kept, "sentence_embedding": torch.ones(len(texts), 32)}


def test_padding_and_prompts_are_ignored(tabled: SentenceTransformer) -> None:
    table, texts = tabled[-1], ["One two three.", "Four. " * 9, "Ba bun."]
    features, prompted = batch(tabled, texts), batch(tabled, texts, prompt="Ba ca di: ")
    expected = table(dict(features))["sentence_embedding"]
    flat = flatten({"token_embeddings": torch.zeros(*features["input_ids"].shape, 4), **features})
    flat["sentence_embedding"] = features["sentence_embedding"]
    # Padding is a special token.
    without = {name: value for name, value in features.items() if name != "attention_mask"}
    assert "prompt_length" in prompted
    for other in (flat, without, prompted):
        torch.testing.assert_close(table(other)["sentence_embedding"], expected)


def test_empty_texts_and_batches(tabled: SentenceTransformer) -> None:
    found = tabled[-1](batch(tabled, ["", TEXTS[0]]))["sentence_embedding"]
    assert not found[0, 32:].any()
    assert found[1].norm() == pytest.approx(1, abs=1e-5)
    empty = {"input_ids": torch.zeros(0, 3, dtype=torch.int64), "sentence_embedding": torch.zeros(0, 32)}
    assert tabled[-1](empty)["sentence_embedding"].shape == (0, 38)
    for name, value in (("dimension", 0), ("weight", 1.1)):
        with pytest.raises(ConfigurationError, match=f"{name}={value}: must be"):
            TokenTable(32, 50, **{"dimension": 6, name: value})


def test_save_and_load(tabled: SentenceTransformer, tmp_path: Path) -> None:
    vectors, place = tabled.encode(TEXTS), tmp_path / "model"
    tabled.save_pretrained(str(place))
    for kind in (simlte_st.SentenceTransformer, sentence_transformers.SentenceTransformer):
        np.testing.assert_array_equal(kind(str(place), device="cpu").encode(TEXTS), vectors)
    assert "from simlte_st import SentenceTransformer" in usage_example(place)
