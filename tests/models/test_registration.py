"""The architectures are registered whatever the order of imports, and nothing heavy is imported for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers
from shipped_support import BERT, STATIC, ship, ship_static
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

import simlte_st
from simlte_st.models.conversion import convert_base

IN_ITS_MIDDLE = """
import sys
import simlte_st
assert "torch" not in sys.modules and "transformers" not in sys.modules
import sentence_transformers
assert "simlte_st.longformer.modeling" in sys.modules
assert "simlte_st.longformer.convert" not in sys.modules
assert not any("simlte" in type(finder).__module__ for finder in sys.meta_path)
from sentence_transformers.sentence_transformer import model
assert "exec_module" not in vars(model.__loader__) and "exec_module" not in vars(model.__spec__.loader)
model = sentence_transformers.SentenceTransformer("simlte-static", device="cpu")
assert type(model) is sentence_transformers.SentenceTransformer and model.encode("A text.").shape == (256,)
model = sentence_transformers.SentenceTransformer("simlte-longformer", device="cpu")  # a folder here
assert type(model[0].auto_model).__name__ == "SimlteLongformerModel"
assert model.encode(["Ba bun.", "ba " * 500]).shape == (2, 32)
"""


def test_before_sentence_transformers(encoder_path: Path, tmp_path: Path) -> None:
    convert_base(encoder_path, tmp_path / "simlte-longformer", max_length=100)
    subprocess.run([sys.executable, "-c", IN_ITS_MIDDLE], check=True, cwd=tmp_path)


def test_after_sentence_transformers() -> None:
    # Here these were imported first.
    assert sentence_transformers.__version__
    assert simlte_st.__version__
    config = AutoConfig.for_model(
        "simlte_longformer", vocab_size=9, hidden_size=8, num_attention_heads=2, num_hidden_layers=1
    )
    assert type(AutoModel.from_config(config)).__name__ == "SimlteLongformerModel"
    assert type(AutoModelForMaskedLM.from_config(config)).__name__ == "SimlteLongformerForMaskedLM"


@pytest.mark.usefixtures("weights")
def test_the_stock_class_knows_our_models(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    ship_static()
    ship(BERT, tiny)
    Stock = sentence_transformers.SentenceTransformer
    for name, own in ((STATIC, simlte_st.SentenceTransformer(STATIC)), (BERT, simlte_st.SentenceTransformer(BERT))):
        model = Stock(name)
        assert type(model) is Stock
        assert np.allclose(model.encode("ba bo"), own.encode("ba bo"), atol=1e-5)
    with pytest.raises(OSError, match="huggingface"):
        Stock("simlte-staticc")

    monkeypatch.chdir(tmp_path)
    shutil.copytree(encoder_path, STATIC)
    assert Stock(STATIC).get_embedding_dimension() == Stock(str(encoder_path)).get_embedding_dimension()
