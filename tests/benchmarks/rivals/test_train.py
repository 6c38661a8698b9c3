from __future__ import annotations

import json
import random
import signal
from contextlib import suppress
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
from simlte_st.data import Crop, Document, Identity, PunktSegmenter, draw_views, segment_document
from simlte_st.training import Preset, get_preset
from simlte_st.training.callbacks import CompleteCallback

PRESET = get_preset("docsplit-bert").changed(learning_rate=1e-3, batch_size=8, max_view_length=32)
BUDGET: dict[str, Any] = {"steps": 3, "preset": PRESET}
ALL = sorted(RIVALS)
Trained = dict[str, tuple[Preset, Path]]


@pytest.fixture(scope="module")
def trained(bert_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Every rival, trained on the budget: its settings and its folder."""
    folder = tmp_path_factory.mktemp("rivals")
    return {name: (train_rival(name, documents, bert_path, folder / name, **BUDGET), folder / name) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_rivals_change_the_base_and_load_as_stock_models(
    name: str, trained: Trained, bert_path: Path, documents: list[str]
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


@pytest.mark.parametrize("name", ["contrastive-tension", "tsdae", "simcse", "docsplit"])
def test_stopped_training_resumes_to_the_same_bytes(
    name: str, trained: Trained, bert_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def stop(callback: CompleteCallback, arguments: Any, state: Any, *others: Any, **named: Any) -> None:
        taken.append(state.global_step)
        if taken == [1]:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(CompleteCallback, "on_step_end", stop)
    random.seed(99)
    torch.manual_seed(99)
    with suppress(KeyboardInterrupt):
        train_rival(name, documents, bert_path, tmp_path / "again", **BUDGET)
    train_rival(name, documents, bert_path, tmp_path / "again", **BUDGET)
    assert taken == ([1, 2, 3] if name in ("simcse", "docsplit") else []), "it continues after the first step"
    train_rival(name, documents, bert_path, tmp_path / "other", seed=1, **BUDGET)
    folders = (trained[name][1], tmp_path / "again", tmp_path / "other")
    first, again, other = ((path / "model.safetensors").read_bytes() for path in folders)
    assert first == again != other


def test_rivals_change_only_their_own_settings(trained: Trained) -> None:
    own = {name: {key for key, value in vars(PRESET).items() if value != vars(trained[name][0])[key]} for name in ALL}
    assert {name: keys for name, keys in own.items() if keys} == {
        **{name: {"view"} for name in ("contriever", "inverse-cloze")},
        **{name: {"view", "dropout"} for name in ("simcse", "simcse-long")},
    }
    assert trained["simcse"][0].view == Identity(unit="sentence")
    assert trained["simcse-long"][0].view == Identity()
    assert trained["contriever"][0].view == Crop()


def test_inverse_cloze_is_a_sentence_and_its_context() -> None:
    document = segment_document(Document("d", "One is short. Two is longer. Three is last."), PunktSegmenter())
    pairs = [draw_views(document, RIVALS["inverse-cloze"].settings["view"], seed=seed) for seed in range(1000)]
    whole = 0
    for pair in pairs:
        context = [sentence for sentence in document.sentences if sentence != pair.anchor]
        whole += pair.positive == " ".join(document.sentences)
        assert pair.positive in (" ".join(context), " ".join(document.sentences))
    assert 70 < whole < 130
    assert {pair.anchor for pair in pairs} == {*document.sentences}
