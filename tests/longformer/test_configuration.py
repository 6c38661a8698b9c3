from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoConfig

from simlte_st.errors import ConfigurationError
from simlte_st.longformer import SimlteLongformerConfig


@pytest.mark.parametrize("window", [512, [64, 32, 512]])
def test_saved_and_loaded(tmp_path: Path, window: int | list[int]) -> None:
    config = SimlteLongformerConfig(attention_window=window, num_hidden_layers=3, global_tokens="none")
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert isinstance(loaded, SimlteLongformerConfig)
    assert {**loaded.to_dict(), "_name_or_path": ""} == config.to_dict()
    assert loaded.global_tokens == "none"
    assert loaded.layer_windows() == ([512] * 3 if window == 512 else window)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"global_tokens": "all"}, "global_tokens='all'"),
        ({"attention_window": 7}, "attention_window=7"),
        ({"attention_window": 0}, "attention_window=0"),
        ({"attention_window": [8, 8]}, "2 numbers for 12 layers"),
        ({"pad_token_id": None}, "pad_token_id=None"),
    ],
)
def test_what_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SimlteLongformerConfig(**fields)


def test_usable_length() -> None:
    assert SimlteLongformerConfig(max_position_embeddings=4098, pad_token_id=1).usable_length == 4096
