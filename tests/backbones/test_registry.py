"""Every backbone follows the protocol, and a new one is a room and a line."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoModel, BertConfig, LongformerConfig

from simlte_st.backbones.base import Backbone
from simlte_st.backbones.registry import backbone_of, make_backbone, replacement_of
from simlte_st.chunk_mean import SimlteChunkMeanConfig
from simlte_st.chunk_mean.backbone import ChunkMean
from simlte_st.errors import ConfigurationError
from simlte_st.longformer import SimlteLongformerConfig
from simlte_st.longformer.backbone import Longformer
from simlte_st.training.presets import Preset

SIZES: dict[str, Any] = {
    "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 20
}  # fmt: skip


def test_an_encoder_is_of_the_backbone_that_it_is() -> None:
    bert = BertConfig(**SIZES)
    configurations = {
        Longformer: SimlteLongformerConfig(**SIZES, pad_token_id=0, attention_window=4),
        ChunkMean: SimlteChunkMeanConfig(encoder_config=bert),
        Backbone: bert,
    }
    for backbone, config in configurations.items():
        encoder = AutoModel.from_config(config)
        assert backbone_of(encoder) is backbone
        assert replacement_of(encoder) is None
        assert hasattr(config, "usable_length") == (backbone is not Backbone)
    stock = AutoModel.from_config(LongformerConfig(**SIZES, attention_window=[4]))
    assert (backbone_of(stock), replacement_of(stock)) == (Backbone, "longformer")


def test_settings_are_those_of_the_backbone() -> None:
    assert make_backbone("chunk-mean", chunk_length=4, positions=None) == ChunkMean(chunk_length=4)
    with pytest.raises(ConfigurationError, match=r"chunk_length=4 .* backbone='chunk-mean'"):
        make_backbone("longformer", chunk_length=4)
    with pytest.raises(ConfigurationError, match=r"'longformer' .* windows=.*attention_window"):
        make_backbone("longformer", windows=4)
    for make in (make_backbone, lambda name: Preset(backbone=name, max_length=9)):
        with pytest.raises(ConfigurationError, match="backbone='x'"):
            make("x")
