from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoConfig, BertConfig

from simlte_st.chunk_mean import SimlteChunkMeanConfig
from simlte_st.errors import ConfigurationError


def test_saved_and_loaded_without_the_path_of_the_encoder(tmp_path: Path) -> None:
    encoder = BertConfig(vocab_size=77, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    encoder.name_or_path = "/home/someone/secret"
    config = SimlteChunkMeanConfig(encoder, "cls", False, True, 128, max_position_embeddings=1000)
    config.save_pretrained(tmp_path)
    assert "secret" not in (tmp_path / "config.json").read_text(encoding="utf-8")
    assert encoder.name_or_path == "/home/someone/secret"
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert isinstance(loaded, SimlteChunkMeanConfig)
    assert isinstance(loaded.encoder_config, BertConfig)
    ours, theirs = config.to_dict(), loaded.to_dict()
    for fields in (ours, theirs):
        fields.pop("_name_or_path")
        fields.pop("transformers_version", None)
    assert theirs == ours
    assert (loaded.pooling_mode, loaded.include_prompt, loaded.normalize_chunks) == ("cls", False, True)
    assert (loaded.chunk_length, loaded.usable_length) == (128, 1000)


def test_sizes_are_the_encoders() -> None:
    config = SimlteChunkMeanConfig({"model_type": "distilbert", "dim": 24, "vocab_size": 50})
    assert (config.hidden_size, config.vocab_size, config.usable_length) == (24, 50, 4096)
    config.vocab_size = 60
    assert config.encoder_config.vocab_size == 60


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"chunk_weights": "equal"}, "not supported"),
        ({"chunk_overlap": 4}, "not supported"),
        ({"chunk_length": 2}, "chunk_length=2"),
        ({"max_position_embeddings": 0}, "max_length=0"),
    ],
)
def test_what_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SimlteChunkMeanConfig(BertConfig(), **fields)  # type: ignore[arg-type]
