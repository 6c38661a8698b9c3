"""The architectures are registered whatever the order of imports, and nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sentence_transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

import simlte_st
from simlte_st.models.registration import extend_model_card
from simlte_st.modules import TokenAttention


def test_before_transformers() -> None:
    code = """
import sys
import simlte_st
assert "torch" not in sys.modules and "transformers" not in sys.modules
from transformers import AutoConfig, AutoModel
assert AutoModel and AutoConfig.for_model("simlte_longformer").model_type == "simlte_longformer"
chunk_mean = AutoConfig.for_model("simlte_chunk_mean", encoder_config={"model_type": "bert"})
assert chunk_mean.model_type == "simlte_chunk_mean"
import transformers.models.auto.modeling_auto as auto
assert "Registering" not in type(auto.__loader__).__name__ + type(auto.__spec__.loader).__name__
assert not any("simlte" in type(finder).__module__ for finder in sys.meta_path)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_in_the_middle_of_sentence_transformers() -> None:
    """Its import brings transformers' Auto classes, and ours with them, while it is half done itself."""
    code = """
import simlte_st
import sentence_transformers, sys
assert "simlte_st.chunk_mean.modeling" in sys.modules
assert "simlte_st.chunk_mean.convert" not in sys.modules
from simlte_st.chunk_mean import to_chunk_mean
assert callable(to_chunk_mean)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_after_transformers() -> None:
    # Here these were imported first.
    assert sentence_transformers.__version__
    assert simlte_st.__version__
    config = AutoConfig.for_model(
        "simlte_longformer", vocab_size=9, hidden_size=8, num_attention_heads=2, num_hidden_layers=1
    )
    assert type(AutoModel.from_config(config)).__name__ == "SimlteLongformerModel"
    assert type(AutoModelForMaskedLM.from_config(config)).__name__ == "SimlteLongformerForMaskedLM"
    chunk_mean = AutoConfig.for_model(
        "simlte_chunk_mean",
        encoder_config={"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1},
    )
    assert type(AutoModel.from_config(chunk_mean)).__name__ == "SimlteChunkMeanModel"


def test_an_extended_card_says_what_of_this_package_the_model_takes(bert_path: Path, tmp_path: Path) -> None:
    modules = [Transformer(str(bert_path)), TokenAttention(32)]
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(tmp_path))
    extend_model_card(tmp_path, "## A section")
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card.endswith("\n\n## A section")
    for part in ("from simlte_st import SentenceTransformer\n", "trust_remote_code=True", "simlte-st\n"):
        assert part in card
