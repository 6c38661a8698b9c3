from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from chunk_mean_support import FAMILIES, make_config
from transformers import AutoModel, AutoTokenizer, ModernBertForMaskedLM

from simlte_st import train
from simlte_st.losses.masked_language_model import make_mlm_head
from simlte_st.models.loading import load_model
from simlte_st.modules import ChunkMean
from simlte_st.training import Preset
from simlte_st.training.prepare_model import convert, set_attention_dropout, set_dropout

CHUNKED: dict[str, Any] = {"max_length": 400, "backbone": "chunk-mean"}
SHORT: dict[str, Any] = {
    "batch_size": 4, "max_steps": 2, "held_out": 0.0, "learning_rate": 3e-3, "dropout": 0.0, "progress": False
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "model.run" / "base"


@pytest.fixture
def long(documents: list[str]) -> list[str]:
    """Documents of 324 tokens."""
    return [" ".join(documents[number : number + 3]) for number in range(24)]


def test_short_base_becomes_chunk_mean_with_its_head(bert_path: Path, folder: Path) -> None:
    base = load_model(bert_path)
    head = convert(base, Preset(pooling="mean", **CHUNKED), folder, 0)
    assert head is not None
    assert head.pretrained
    expected = make_mlm_head(base.model, "pretrained").state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in head.state_dict().items())
    reader = load_model(folder).copy("mean").model[0]
    assert isinstance(reader, ChunkMean)
    assert (reader.pooling_mode, reader.chunk_length) == ("mean", 64)


def test_positions_beyond_the_tokenizer_limit_are_used(
    bert_path: Path, long: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config("modernbert", 140, max_position_embeddings=512)
    ModernBertForMaskedLM(config).save_pretrained(tmp_path / "base")
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(tmp_path / "base")  # 64 tokens
    with caplog.at_level("INFO", "simlte_st"):
        options: dict[str, Any] = {"base": tmp_path / "base", "preset": "docsplit-longformer", "max_length": 400}
        result = train(long, tmp_path / "m", **options, **SHORT)
    assert re.search("raised from 64 to 400", caplog.text)
    assert result.truncation.cut_texts == 0, "documents of 324 tokens"
    model = result.load(device="cpu")
    assert model.max_seq_length == 400
    assert type(model[0].auto_model).__name__ == "ModernBertModel"


@pytest.mark.parametrize("max_length", [32, 64, "base", None])
def test_base_that_is_long_enough_is_not_converted(bert_path: Path, folder: Path, max_length: Any) -> None:
    base = load_model(str(bert_path)).copy("cls")
    assert convert(base, Preset(max_length=max_length), folder, 0) is None
    assert not folder.exists()
    assert base.model.max_seq_length == 64


DROPOUTS = {"distilbert": ["dropout", "attention_dropout"]}
DROPOUTS["modernbert"] = ["embedding_dropout", "mlp_dropout", "attention_dropout"]
KINDS: dict[str, dict[str, Any]] = {
    kind: {**sizes, **dict.fromkeys(DROPOUTS.get(kind, ["hidden_dropout_prob", "attention_probs_dropout_prob"]), 0.2)}
    for kind, sizes in {**FAMILIES, "longformer": {**FAMILIES["roberta"], "attention_window": 8}}.items()
}
"""Dropout of 0.2 everywhere, in the hidden states and in attention."""
HIDDEN = {"hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout"}


@pytest.mark.parametrize("only_attention", [False, True], ids=["all", "attention"])
@pytest.mark.parametrize(
    ("kind", "attention"),
    [(kind, "eager") for kind in KINDS] + [(kind, "sdpa") for kind in KINDS if kind not in ("longformer", "mpnet")],
)
def test_set_dropout(kind: str, attention: str, only_attention: bool) -> None:
    settings = KINDS[kind]
    if only_attention:  # which a model may keep as a number, not as a module
        settings = settings | dict.fromkeys(HIDDEN & settings.keys(), 0.0)
    model = AutoModel.from_config(make_config(kind, 60, **settings), attn_implementation=attention).train()
    ids = torch.randint(5, 60, (2, 16))

    def run() -> torch.Tensor:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.detach()

    assert not torch.equal(run(), run())
    set_dropout(model, 0.0)
    assert model.training
    first = run()
    assert torch.equal(first, run())
    torch.testing.assert_close(first, model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids))[0])
    set_dropout(model.train(), 0.3)
    assert not torch.equal(run(), run())


# ModernBERT uses one number for attention dropout and for a hidden dropout, which stays.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("longformer", "modernbert")])
def test_set_attention_dropout_keeps_hidden_dropout(kind: str) -> None:
    ids = torch.randint(5, 60, (2, 16))
    for hidden_dropout, steady in ((0.0, True), (0.2, False)):
        settings = KINDS[kind] | dict.fromkeys(HIDDEN & KINDS[kind].keys(), hidden_dropout)
        config = make_config(kind, 60, **settings)
        model = AutoModel.from_config(config, attn_implementation="eager").train()
        set_attention_dropout(model, 0.0)
        assert torch.equal(model(input_ids=ids)[0], model(input_ids=ids)[0]) is steady
