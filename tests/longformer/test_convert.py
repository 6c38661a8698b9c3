from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from chunk_mean_support import SIZES
from longformer_support import randomise

from simlte_st.errors import ModelError
from simlte_st.longformer import SimlteLongformerForMaskedLM, SimlteLongformerModel, convert_to_longformer

SHAPE = {**SIZES, "vocab_size": 60, "max_position_embeddings": 66, "embedding_size": 32}


def make(name: str, **fields: object) -> transformers.PreTrainedModel:
    model = getattr(transformers, name)
    made = model(model.config_class(**{**SHAPE, **fields})).eval()
    randomise(made)
    return made


def batch_for(model: transformers.PreTrainedModel, lengths: tuple[int, ...] = (20, 7)) -> dict[str, torch.Tensor]:
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    ids = torch.randint(5, 60, mask.shape).where(mask > 0, model.config.pad_token_id)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}


@pytest.mark.parametrize("name", ["BertModel", "RobertaModel", "ElectraModel"])
def test_hidden_states_do_not_change_within_half_a_window(name: str) -> None:
    original = make(name)
    converted = convert_to_longformer(original, max_length=300, attention_window=40)
    assert converted.config.usable_length == 300
    batch = batch_for(original)
    with torch.no_grad():
        expected, found = original(**batch), converted(**batch)
    difference = (found.last_hidden_state - expected.last_hidden_state) * batch["attention_mask"][..., None]
    assert difference.abs().max() < 1e-4
    converted(input_ids=torch.randint(5, 60, (1, 300)))
    if getattr(expected, "pooler_output", None) is not None:
        assert torch.allclose(found.pooler_output, expected.pooler_output, atol=1e-4)


@pytest.mark.parametrize(("kind", "tied"), [("Bert", True), ("Roberta", True), ("Roberta", False), ("Electra", True)])
def test_mlm_head_is_converted(kind: str, tied: bool, tmp_path: Path) -> None:
    original = make(f"{kind}ForMaskedLM", tie_word_embeddings=tied)
    original.save_pretrained(tmp_path)
    batch = batch_for(original)
    expected = original(**batch).logits
    for source in (original, tmp_path):
        converted = convert_to_longformer(source, max_length=128, attention_window=40).eval()
        assert isinstance(converted, SimlteLongformerForMaskedLM)
        difference = (converted(**batch).logits - expected) * batch["attention_mask"][..., None]
        assert difference.abs().max() < 1e-3


def test_headless_checkpoint_loads_in_the_stock_model(bert_path: Path, tmp_path: Path) -> None:
    transformers.AutoModel.from_pretrained(bert_path).save_pretrained(tmp_path / "encoder")
    converted = convert_to_longformer(tmp_path / "encoder", max_length=200, attention_window=32)
    assert isinstance(converted, SimlteLongformerModel)
    converted.save_pretrained(tmp_path / "stock")
    stock = transformers.LongformerModel.from_pretrained(tmp_path / "stock").eval()
    ids = torch.randint(5, 60, (1, 200))
    cls = torch.eye(200)[:1].long()
    found = converted.eval()(ids).last_hidden_state
    assert torch.allclose(found, stock(ids, global_attention_mask=cls).last_hidden_state, atol=1e-4)


def test_positions_are_tiled() -> None:
    original = make("RobertaModel")
    table = original.embeddings.position_embeddings.weight[2:]
    for length in (127, 10):
        converted = convert_to_longformer(original, max_length=length, attention_window=8)
        found = converted.embeddings.position_embeddings.weight[2:]
        assert torch.equal(found, torch.cat([table, table])[:length])


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("MPNetModel", 32, "'mpnet' cannot be converted.* bert, "),
        ("ElectraModel", 16, "embedding_size=16 differs from hidden_size=32"),
    ],
)
def test_unsupported_models_are_refused(name: str, size: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        convert_to_longformer(make(name, embedding_size=size))
