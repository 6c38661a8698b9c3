from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from chunk_mean_support import by_hand, make_model
from longformer_support import assert_same_gradients
from sentence_transformers import SentenceTransformer
from support import make_document
from torch import Tensor, nn

from simlte_st.chunk_mean import SimlteChunkMeanModel, to_chunk_mean
from simlte_st.errors import ModelError

TEXTS = [make_document(number, sentences=sentences) for number, sentences in enumerate((5, 1, 14))] + ["ba bei"]


@pytest.fixture
def model(tmp_path: Path) -> SentenceTransformer:
    return make_model(tmp_path)


def reader_of(model: SentenceTransformer) -> SimlteChunkMeanModel:
    reader = model[0].auto_model
    assert isinstance(reader, SimlteChunkMeanModel)
    return reader


def features_of(model: SentenceTransformer, texts: list[str] = TEXTS, left: bool = False) -> dict[str, Any]:
    model.tokenizer.padding_side = "left" if left else "right"
    return dict(model.tokenizer(texts, return_tensors="pt", padding=True))


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def weigh(vectors: Tensor) -> Tensor:
    return (vectors * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))).sum()


def test_gradients_are_those_of_the_mean_made_by_hand(model: SentenceTransformer) -> None:
    converted = to_chunk_mean(model)
    vectors = torch.stack([by_hand(model, text) for text in TEXTS])
    weigh(vectors).backward()
    found = converted(features_of(converted))["sentence_embedding"]
    assert torch.allclose(found, vectors, atol=1e-5)
    weigh(found).backward()
    prefix = "encoder."
    ours = {name.removeprefix(prefix): grad for name, grad in gradients(reader_of(converted)).items()}
    assert_same_gradients(ours, gradients(model[0].auto_model))
    assert any("word_embeddings" in name for name in ours)


def test_token_states_are_their_chunks(model: SentenceTransformer) -> None:
    converted = to_chunk_mean(model)
    features = features_of(converted)
    ids, mask = features["input_ids"], features["attention_mask"]
    states = converted(dict(features))["token_embeddings"]
    assert states.shape[:2] == ids.shape
    assert states[mask == 0].abs().max() == 0
    for row in range(len(TEXTS)):
        length = int(mask[row].sum())
        body = ids[row, 1 : length - 1]
        for start in range(0, max(1, len(body)), 22):
            piece = torch.cat([ids[row, :1], body[start : start + 22], ids[row, length - 1 : length]])
            alone = model({"input_ids": piece[None], "attention_mask": torch.ones_like(piece)[None]})
            expected = alone["token_embeddings"][0, 1:-1]
            assert torch.allclose(states[row, 1 + start : 1 + start + len(expected)], expected, atol=1e-5)


def test_the_embedding_stands_at_the_first_token_on_either_side_of_padding(model: SentenceTransformer) -> None:
    converted = to_chunk_mean(model)
    expected = torch.stack([by_hand(model, text) for text in TEXTS])
    reader = reader_of(converted)
    for left in (False, True):
        features = features_of(converted, left=left)
        output = reader(**features)
        first = features["attention_mask"].argmax(1)
        assert torch.equal(output.last_hidden_state[torch.arange(len(TEXTS)), first], output.pooler_output)
        assert torch.allclose(converted(dict(features))["sentence_embedding"], expected, atol=1e-5)
    as_tuple = reader(**features, return_dict=False)
    assert torch.equal(as_tuple[0], output.last_hidden_state)


def test_flattened_documents(model: SentenceTransformer) -> None:
    converted = to_chunk_mean(model)
    rows = [converted.tokenizer(text)["input_ids"] for text in TEXTS]
    lengths = torch.tensor([len(row) for row in rows])
    flat = {
        "input_ids": torch.tensor([[token for row in rows for token in row]]),
        "position_ids": torch.cat([torch.arange(length) for length in lengths])[None],
        "cu_seq_lens_q": torch.cat([torch.zeros(1), lengths.cumsum(0)]).int(),
        "cu_seq_lens_k": torch.cat([torch.zeros(1), lengths.cumsum(0)]).int(),
        "max_length_q": int(lengths.max()),
    }
    padded = features_of(converted)
    states = reader_of(converted)(**padded).last_hidden_state[padded["attention_mask"] > 0]
    assert torch.allclose(reader_of(converted)(**flat).last_hidden_state[0], states, atol=1e-5)
    found = converted(flat)["sentence_embedding"]
    assert torch.allclose(found, torch.stack([by_hand(model, text) for text in TEXTS]), atol=1e-5)


def test_a_document_does_not_depend_on_its_batch_or_on_the_size_of_a_pass(
    model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = to_chunk_mean(model)
    reader = reader_of(converted)
    features = features_of(converted)
    expected = reader(**features).last_hidden_state
    for sizes in ((1, 0), (50, 3), (200, 200)):
        monkeypatch.setattr("simlte_st.chunk_mean.modeling._CPU_PASS", sizes)
        assert torch.allclose(reader(**features).last_hidden_state, expected, atol=1e-5)
    for row in range(len(TEXTS)):
        length = int(features["attention_mask"][row].sum())
        alone = {name: value[row : row + 1, :length] for name, value in features.items()}
        assert torch.allclose(reader(**alone).last_hidden_state[0], expected[row, :length], atol=1e-5)
        del alone["attention_mask"]
        assert torch.allclose(reader(**alone).last_hidden_state[0], expected[row, :length], atol=1e-5)


def test_rows_without_a_token(model: SentenceTransformer) -> None:
    reader = reader_of(to_chunk_mean(model))
    features = features_of(to_chunk_mean(model))
    expected = reader(**features)
    features["attention_mask"][1] = 0
    found = reader(**features)
    assert found.last_hidden_state[1].abs().max() == found.pooler_output[1].abs().max() == 0
    assert torch.allclose(found.pooler_output[[0, 2, 3]], expected.pooler_output[[0, 2, 3]], atol=1e-5)
    features["attention_mask"][:] = 0
    assert reader(**features).last_hidden_state.abs().max() == 0
    assert reader(**features).last_hidden_state.shape == expected.last_hidden_state.shape


def test_what_is_refused(model: SentenceTransformer) -> None:
    reader = reader_of(to_chunk_mean(model))
    ids = torch.randint(5, 100, (1, 9))
    with pytest.raises(ModelError, match="either"):
        reader()
    with pytest.raises(ModelError, match="either"):
        reader(input_ids=ids, inputs_embeds=reader.get_input_embeddings()(ids))
    for wish in ({"output_attentions": True}, {"output_hidden_states": True}):
        with pytest.raises(ModelError, match="output_attentions="):
            reader(input_ids=ids, **wish)
