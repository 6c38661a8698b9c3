from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from benchmarks.rivals import RIVALS, train_rival
from simlte_st.data.views import Crop, Identity
from simlte_st.training.presets import Preset, get_preset

PRESET = get_preset("docsplit-bert").changed(learning_rate=1e-3)
BUDGET: dict[str, Any] = {"steps": 3, "batch_size": 8, "max_view_length": 32, "preset": PRESET}
ALL = sorted(RIVALS)


def changed(first: Path, second: Path) -> set[str]:
    before, after = (load_file(path / "model.safetensors") for path in (first, second))
    return {name for name in after if name in before and not torch.equal(before[name], after[name])}


@pytest.fixture(scope="module")
def trained(
    bert_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Preset, Path]]:
    """Every rival, trained on the budget: its settings and its folder."""
    folder = tmp_path_factory.mktemp("rivals")
    return {name: (train_rival(name, documents, bert_path, folder / name, **BUDGET), folder / name) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_a_rival_moves_the_base_and_loads_as_a_stock_model(
    name: str, trained: dict[str, tuple[Preset, Path]], bert_path: Path, documents: list[str]
) -> None:
    output = trained[name][1]
    assert sorted(path.name for path in output.parent.iterdir()) == ALL, "nothing but the models is saved"
    assert not any("cross" in key or "decoder" in key for key in load_file(output / "model.safetensors"))
    assert not json.loads((output / "config.json").read_text()).get("is_decoder", False)
    model = SentenceTransformer(str(output), device="cpu")
    assert [type(module) for module in model] == [Transformer, Pooling]
    assert model.max_seq_length == 64, "it reads what the base reads, however short the texts in training were"
    vectors = model.encode(documents[:5])
    assert np.isfinite(vectors).all()
    assert vectors.std(axis=0).max() > 1e-4, "the embeddings have not collapsed"
    before, after = SentenceTransformer(str(bert_path), device="cpu").state_dict(), model.state_dict()
    layers = {key for key in after if "layer.1.attention.self.query.weight" in key or "word_embeddings" in key}
    assert len(layers) == 2
    assert all(not torch.allclose(after[key], before[key], atol=1e-6) for key in layers)


@pytest.mark.parametrize("name", ["contrastive-tension", "tsdae", "simcse"])
def test_the_seed_decides(
    name: str, trained: dict[str, tuple[Preset, Path]], bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    random.seed(99)
    torch.manual_seed(99)
    train_rival(name, documents, bert_path, tmp_path / "again", **BUDGET)
    again, before = (path / "model.safetensors" for path in (tmp_path / "again", trained[name][1]))
    assert again.read_bytes() == before.read_bytes()
    train_rival(name, documents, bert_path, tmp_path / "other", seed=1, **BUDGET)
    assert changed(trained[name][1], tmp_path / "other")


def test_only_what_a_rival_needs_differs_from_the_common_settings(trained: dict[str, tuple[Preset, Path]]) -> None:
    common = PRESET.changed(batch_size=8, max_view_length=32)
    own = {name: {key for key, value in vars(common).items() if value != vars(trained[name][0])[key]} for name in ALL}
    view, nothing = {"view"}, set()
    assert own == {
        **{"docsplit": nothing, "contrastive-tension": nothing, "tsdae": nothing},
        **{
            "contriever": view,
            "inverse-cloze": view,
            "simcse": {"view", "dropout"},
            "simcse-long": {"view", "dropout"},
        },
    }
    assert trained["simcse"][0].view == Identity(unit="sentence")
    assert trained["simcse-long"][0].view == Identity()
    assert trained["contriever"][0].view == Crop()
