"""Every backbone follows the protocol, and a new one is a room and a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, BertConfig, LongformerConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from simlte_st.backbones.base import Backbone
from simlte_st.backbones.registry import BACKBONES, backbone_of, make_backbone, replacement_of
from simlte_st.chunk_mean import SimlteChunkMeanConfig
from simlte_st.chunk_mean.backbone import ChunkMean
from simlte_st.cli.main import main
from simlte_st.config import setting
from simlte_st.errors import ConfigurationError
from simlte_st.longformer import SimlteLongformerConfig
from simlte_st.longformer.backbone import Longformer
from simlte_st.training.config import Preset

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


def test_every_backbone_is_registered_and_says_how_it_reads() -> None:
    for name in BACKBONES:
        backbone = make_backbone(name)
        config = CONFIG_MAPPING[backbone.model_type]
        assert config.model_type == backbone.model_type
        assert hasattr(config, "usable_length")
        assert config in AutoModel._model_mapping
        assert "4,096 tokens" in backbone.reading.format(4096)


def test_settings_are_those_of_the_backbone() -> None:
    assert make_backbone("chunk-mean", overlap=4, chunk_length=None, positions=None) == ChunkMean(overlap=4)
    with pytest.raises(ConfigurationError, match=r"overlap=4 .* backbone='chunk-mean'"):
        make_backbone("longformer", overlap=4)
    with pytest.raises(ConfigurationError, match=r"'longformer' .* windows=.*attention_window"):
        make_backbone("longformer", windows=4)
    for make in (make_backbone, lambda name: Preset(backbone=name, max_length=9)):
        with pytest.raises(ConfigurationError, match="backbone='x'"):
            make("x")


@dataclass(frozen=True, kw_only=True)
class Copy(Backbone):
    """An encoder stays as it is."""

    model_type: ClassVar[str] = "copy"
    how: Literal["well", "badly"] = setting("well", "the way in which it does: well, or badly")

    def convert(self, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
        model.save_pretrained(str(path))
        (path / "how.txt").write_text(f"{self.how} {max_length} {tuned}")


def test_a_new_backbone_is_a_line(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(BACKBONES, "copy", Copy)
    command = ["convert", str(encoder_path), "--backbone", "copy", "--output", str(tmp_path / "m")]
    assert main([*command, "--how", "badly", "--max-length", "9"]) == 0
    assert (tmp_path / "m" / "how.txt").read_text() == "badly 9 True"
    assert Preset(backbone="copy", max_length=9).backbone == "copy"
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    assert "well, or badly" in capsys.readouterr().out
