from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, ModernBertConfig, ModernBertForMaskedLM

from simlte_st import train
from simlte_st.chunk_mean import SimlteChunkMeanModel
from simlte_st.losses.mlm_head import make_mlm_head
from simlte_st.models.loading import LoadedModel, load_model
from simlte_st.training import Preset, get_preset
from simlte_st.training.load_model import FEW_STEPS, convert, preset_for, warn_of_pooling

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


def saved(bert_path: Path, folder: Path, pooling: str) -> LoadedModel:
    """A sentence encoder: a base that comes with its pooling."""
    load_model(bert_path, pooling).model.save_pretrained(str(folder), create_model_card=False)
    return load_model(folder)


def test_the_preset_follows_from_the_base(bert_path: Path, tmp_path: Path) -> None:
    assert preset_for(load_model(bert_path)) == get_preset("docsplit-bert")
    tuned = saved(bert_path, tmp_path / "tuned", "mean")
    assert preset_for(tuned) == get_preset("docsplit-tuned")
    assert preset_for(tuned).pooling == "keep"


def test_a_pooling_that_is_to_be_learned_in_a_few_steps_is_told(
    bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mean, cls = (saved(bert_path, tmp_path / pooling, pooling) for pooling in ("mean", "cls"))
    preset = get_preset("docsplit-tuned").changed(pooling="cls")
    for base, chosen, steps in (
        (mean, preset, FEW_STEPS),
        (mean, preset.changed(pooling="keep"), 2),
        (cls, preset, 2),
        (load_model(bert_path), preset, 2),
    ):
        warn_of_pooling(base, chosen, steps)
    assert "pools by" not in caplog.text
    warn_of_pooling(mean, preset, FEW_STEPS - 1)
    assert "pools by mean" in caplog.text
    assert "few steps (29)" in caplog.text


def test_a_base_that_reads_enough_stays(bert_path: Path, folder: Path) -> None:
    assert convert(load_model(bert_path), Preset(max_length=64, pooling="mean"), folder, 0) == ("mean", None)
    assert not folder.exists()


def test_a_short_base_reads_in_chunks_and_keeps_its_head(bert_path: Path, folder: Path) -> None:
    base = load_model(bert_path)
    pooling, head = convert(base, Preset(pooling="mean", **CHUNKED), folder, 0)
    assert pooling == "keep"
    assert head is not None
    assert head.pretrained
    expected = make_mlm_head(base.model, "pretrained").state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in head.state_dict().items())
    reader = load_model(folder, pooling).model[0].auto_model
    assert isinstance(reader, SimlteChunkMeanModel)
    assert (reader.config.pooling_mode, reader.config.chunk_length) == ("mean", 64)


def test_a_base_with_more_positions_than_its_tokenizer_allows_uses_them(
    bert_path: Path, long: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = ModernBertConfig(
        vocab_size=140, pad_token_id=0, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=512, global_attn_every_n_layers=2, local_attention=16,
    )  # fmt: skip
    ModernBertForMaskedLM(config).save_pretrained(tmp_path / "base")
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(tmp_path / "base")  # 64 tokens
    with caplog.at_level("INFO", "simlte_st"):
        result = train(
            long, tmp_path / "m", base=tmp_path / "base", preset="docsplit-longformer", max_length=400, **SHORT
        )
    assert re.search("64 tokens: .* 400", caplog.text)
    assert result.coverage.cut == 0, "documents of 324 tokens"
    model = result.load(device="cpu")
    assert model.max_seq_length == 400
    assert type(model[0].auto_model).__name__ == "ModernBertModel"


@pytest.mark.parametrize(("max_length", "warned"), [(32, True), (64, False), ("base", False), (None, False)])
def test_a_length_below_the_bases_is_not_passed_over(
    bert_path: Path, folder: Path, caplog: pytest.LogCaptureFixture, max_length: Any, warned: bool
) -> None:
    base = load_model(str(bert_path), pooling="cls")
    convert(base, Preset(max_length=max_length), folder, 0)
    assert not folder.exists()
    assert base.model.max_seq_length == 64
    assert bool(re.search("max_length=32 .* 64 tokens", caplog.text)) is warned
