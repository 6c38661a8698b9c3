"""The architectures are registered whatever the order of imports, and nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sentence_transformers
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

import simlte_st

IMPORTS = {
    "before transformers": """
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
""",
    # transformers 5.0 imports the Auto classes from the middle of what our models need.
    "before one architecture of transformers": """
import sys
import simlte_st
from transformers import AutoConfig, BertModel
assert BertModel and AutoConfig.for_model("simlte_longformer").model_type == "simlte_longformer"
assert not any("simlte" in type(finder).__module__ for finder in sys.meta_path)
""",
    # Its import brings transformers' Auto classes, and ours with them, while it is half done itself.
    "in the middle of sentence_transformers": """
import simlte_st
import sentence_transformers, sys
assert "simlte_st.chunk_mean.modeling" in sys.modules
assert "simlte_st.chunk_mean.convert" not in sys.modules
from simlte_st.chunk_mean import to_chunk_mean
assert callable(to_chunk_mean)
""",
}


@pytest.mark.parametrize("code", IMPORTS.values(), ids=IMPORTS)
def test_in_a_process_of_its_own(code: str) -> None:
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
