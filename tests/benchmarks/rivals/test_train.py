from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from support import make_document, make_tokenizer
from torch import nn
from transformers import BertConfig, BertLMHeadModel, MPNetConfig, MPNetModel

from benchmarks.rivals import RIVAL_FILE, RIVALS, RivalRecord, train_rival
from benchmarks.rivals.train import CONTRASTIVE, TokenCount, count_tokens
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.data.views import Crop, Identity
from simlte_st.errors import ConfigurationError, EmptyCorpusError, ModelError
from simlte_st.training.config import get_preset

PRESET = get_preset("docsplit-bert").changed(learning_rate=1e-3)
BUDGET: dict[str, Any] = {"steps": 3, "batch_size": 8, "max_view_length": 32, "preset": PRESET}
ALL = sorted(RIVALS)


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "model.safetensors")


def changed(first: Path, second: Path) -> set[str]:
    before, after = weights(first), weights(second)
    return {name for name in after if name in before and not torch.equal(before[name], after[name])}


@pytest.fixture(scope="module")
def trained(
    bert_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[RivalRecord, Path]]:
    """Every rival, trained on the budget."""
    folder = tmp_path_factory.mktemp("rivals")
    return {name: (train_rival(name, documents, bert_path, folder / name, **BUDGET), folder / name) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_a_rival_moves_the_base_and_loads_as_a_stock_model(
    name: str, trained: dict[str, tuple[RivalRecord, Path]], bert_path: Path, documents: list[str]
) -> None:
    output = trained[name][1]
    model = SentenceTransformer(str(output), device="cpu")
    assert [type(module) for module in model] == [Transformer, Pooling]
    assert model.max_seq_length == 64, "it reads what the base reads, however short the texts in training were"
    vectors = model.encode(documents[:5])
    assert vectors.shape == (5, 32)
    assert np.isfinite(vectors).all()
    assert vectors.std(axis=0).max() > 1e-4, "the embeddings have not collapsed"

    base = SentenceTransformer(str(bert_path), device="cpu")
    before, after = base.state_dict(), model.state_dict()
    layers = {key for key in after if "layer.1.attention.self.query.weight" in key or "word_embeddings" in key}
    assert len(layers) == 2
    assert all(not torch.allclose(after[key], before[key], atol=1e-6) for key in layers)


@pytest.mark.parametrize("name", ALL)
def test_nothing_but_the_model_is_saved(name: str, trained: dict[str, tuple[RivalRecord, Path]]) -> None:
    record, output = trained[name]
    assert record.output == output
    assert sorted(path.name for path in output.parent.iterdir()) == ALL
    assert not any("cross" in key or "decoder" in key or "cls.predictions" in key for key in weights(output))
    config = json.loads((output / "config.json").read_text())
    assert not config.get("is_decoder", False)
    assert not config.get("add_cross_attention", False)


@pytest.mark.parametrize("name", ALL)
def test_the_budget_is_recorded(name: str, trained: dict[str, tuple[RivalRecord, Path]]) -> None:
    record, output = trained[name]
    saved = json.loads((output / RIVAL_FILE).read_text())
    assert saved == json.loads(json.dumps(record.to_dict()))
    expected = {
        "rival": name,
        "steps": 3,
        "batch_size": 8,
        "max_view_length": 32,
        "dtype": "float32",
        "seed": 0,
        "documents": 48,
    }
    assert {key: saved[key] for key in expected} == expected
    assert saved["preset"]["learning_rate"] == 1e-3
    assert saved["preset"]["pooling"] == "cls"
    assert saved["seconds"] > 0
    assert saved["passes"] == RIVALS[name].passes
    assert [line["step"] for line in saved["log"] if "loss" in line] == [1, 2, 3]
    assert (saved["decoder_tokens"] > 0) == (name == "tsdae")
    # Texts of 8 documents have at most 32 tokens; two of them, and as many masked ones.
    assert 0 < saved["encoder_tokens"] <= 3 * 8 * 32 * 4


def test_tokens_are_those_that_went_through(trained: dict[str, tuple[RivalRecord, Path]]) -> None:
    tokens = {name: trained[name][0].encoder_tokens for name in ALL}
    # Every sentence is 8 words and a full stop: 11 tokens with [CLS] and [SEP]; two passes, and two masked ones.
    assert tokens["simcse"] == 3 * 8 * 11 * 4
    # Three sentences fit 32 tokens.
    assert tokens["simcse-long"] == 3 * 8 * 29 * 4
    assert tokens["contrastive-tension"] == 3 * 8 * 29 * 2
    # The decoder reads all but the last token, padding apart; the encoder what is left of 60% deleted words.
    assert trained["tsdae"][0].decoder_tokens == 3 * 8 * 28
    assert 0.3 < (tokens["tsdae"] - 3 * 8 * 2) / (3 * 8 * 27) < 0.5


@pytest.mark.parametrize("name", ["contrastive-tension", "tsdae", "simcse"])
def test_the_same_seed_gives_the_same_bytes(
    name: str, trained: dict[str, tuple[RivalRecord, Path]], bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    random.seed(99)
    torch.manual_seed(99)
    again = tmp_path / "again"
    train_rival(name, documents, bert_path, again, **BUDGET)
    assert (again / "model.safetensors").read_bytes() == (trained[name][1] / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["contrastive-tension", "tsdae", "simcse"])
def test_another_seed_gives_other_weights(
    name: str, trained: dict[str, tuple[RivalRecord, Path]], bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    train_rival(name, documents, bert_path, tmp_path / "other", seed=1, **BUDGET)
    assert changed(trained[name][1], tmp_path / "other")


def test_only_what_a_rival_needs_differs_from_the_common_settings(trained: dict[str, tuple[RivalRecord, Path]]) -> None:
    common = PRESET.changed(batch_size=8, max_view_length=32)
    own = {name: {key for key, value in vars(common).items() if value != vars(trained[name][0].preset)[key]}
           for name in ALL}  # fmt: skip
    assert own == {
        "docsplit": set(),
        "contrastive-tension": set(),
        "tsdae": set(),
        "simcse": {"view", "dropout"},
        "simcse-long": {"view", "dropout"},
        "contriever": {"view"},
        "inverse-cloze": {"view"},
        "word-deletion": {"view"},
    }
    assert trained["simcse"][0].preset.view == Identity(unit="sentence")
    assert trained["simcse-long"][0].preset.view == Identity()
    assert trained["contriever"][0].preset.view == Crop()


def test_simcse_keeps_its_dropout_and_the_others_take_the_one_that_is_asked_for(
    bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    for name, expected in (("simcse-long", 0.1), ("tsdae", 0.0)):
        budget = {**BUDGET, "steps": 1, "preset": PRESET.changed(dropout=0.0, pooling="mean")}
        record = train_rival(name, documents, bert_path, tmp_path / name, **budget)
        assert record.preset.dropout == expected
        assert SentenceTransformer(str(tmp_path / name), device="cpu")[1].pooling_mode == "mean"


@pytest.mark.parametrize("name", ["contrastive-tension", "tsdae"])
def test_a_base_that_normalizes_is_trained_without_and_saved_with_it(
    name: str, encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    base = SentenceTransformer(str(encoder_path), device="cpu")
    base.append(Normalize())
    base.save_pretrained(str(tmp_path / "base"))
    seen = []
    step = SentenceTransformerTrainer.training_step

    def watch(self: SentenceTransformerTrainer, model: SentenceTransformer, *rest: Any, **more: Any) -> Any:
        seen.append([type(module) for module in model])
        return step(self, model, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SentenceTransformerTrainer, "training_step", watch)
        budget = {**BUDGET, "preset": CONTRASTIVE}
        train_rival(name, documents, tmp_path / "base", tmp_path / "out", **budget)
    assert seen == [[Transformer, Pooling]] * 3
    made = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert [type(module) for module in made] == [Transformer, Pooling, Normalize]
    assert changed(tmp_path / "base", tmp_path / "out")


@pytest.mark.parametrize("name", ["simcse", "contrastive-tension", "tsdae"])
def test_ctrl_c_leaves_nothing(
    name: str, bert_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = SentenceTransformerTrainer.training_step
    steps = []

    def interrupted(self: SentenceTransformerTrainer, *rest: Any, **more: Any) -> Any:
        steps.append(1)
        if len(steps) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self, *rest, **more)

    monkeypatch.setattr(SentenceTransformerTrainer, "training_step", interrupted)
    # A shell lets what it starts in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train_rival(name, documents, bert_path, tmp_path / "out", **{**BUDGET, "steps": 50})
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(steps) < 4
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_replaced_only_when_asked(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "mine.txt").write_text("x")
    for overwrite, message in ((False, "exists already"), (True, "is not replaced")):
        with pytest.raises(ConfigurationError, match=message):
            train_rival("tsdae", documents, bert_path, output, overwrite=overwrite, **BUDGET)
    (output / "modules.json").write_text("[]")
    train_rival("tsdae", documents, bert_path, output, overwrite=True, **BUDGET)
    assert not (output / "mine.txt").exists()
    assert (output / "modules.json").exists()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("moco", {}, "Unknown rival 'moco'.*simcse-long"),
        ("tsdae", {"steps": 0}, "steps=0"),
        ("contrastive-tension", {"batch_size": 12}, "batch_size=12.*multiple of 8"),
        ("tsdae", {"batch_size": 1}, "batch_size=1"),
        ("tsdae", {"max_view_length": 65}, "max_seq_length=65.*64 tokens"),
    ],
)
def test_what_cannot_be_is_said(
    name: str, changes: dict[str, Any], message: str, bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        train_rival(name, documents, bert_path, tmp_path / "out", **{**BUDGET, **changes})
    assert list(tmp_path.iterdir()) == []


def test_contrastive_tension_says_how_many_documents_a_batch_takes(bert_path: Path, tmp_path: Path) -> None:
    with pytest.raises(EmptyCorpusError, match=r"14 .* 8 pairs takes 15"):
        train_rival("contrastive-tension", [make_document(n) for n in range(14)], bert_path, tmp_path / "a", **BUDGET)
    train_rival("contrastive-tension", [make_document(n) for n in range(15)], bert_path, tmp_path / "b", **BUDGET)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_tsdae_needs_an_architecture_that_can_decode(documents: list[str], tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    MPNetModel(
        MPNetConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=70,
        )
    ).save_pretrained(tmp_path / "mpnet")
    tokenizer.save_pretrained(tmp_path / "mpnet")
    with pytest.raises(ModelError, match="'mpnet'"):
        train_rival("tsdae", documents, tmp_path / "mpnet", tmp_path / "out", **BUDGET)
    assert [path.name for path in tmp_path.iterdir()] == ["mpnet"]


def test_a_checkpoint_in_half_precision_is_trained_in_full(
    bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer, BertForMaskedLM

    BertForMaskedLM.from_pretrained(bert_path).to(torch.bfloat16).save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(tmp_path / "half")
    assert {value.dtype for value in weights(tmp_path / "half").values()} == {torch.bfloat16}
    train_rival("tsdae", documents, tmp_path / "half", tmp_path / "out", **BUDGET)
    assert {value.dtype for value in weights(tmp_path / "out").values()} == {torch.float32}


TEXTS = ["ba bei bo", "ba"]  # 5 and 3 tokens with [CLS] and [SEP]


def test_tokens_of_training_are_counted_without_padding(model: SentenceTransformer) -> None:
    features = model.preprocess(TEXTS)
    assert features["input_ids"].shape == (2, 5)
    with count_tokens() as count:
        model.train()(dict(features))
        assert (count.encoder, count.decoder) == (8, 0)
        model.eval()(dict(features))
        assert count.encoder == 8, "nobody trains it"
        model.train()(dict(features))
    model(dict(features))
    assert (count.encoder, count.decoder) == (16, 0)


def test_a_decoder_is_counted_by_itself() -> None:
    decoder = BertLMHeadModel(
        BertConfig(
            vocab_size=9,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
            is_decoder=True,
        )
    )
    with count_tokens() as count:
        decoder.train()(input_ids=torch.tensor([[2, 3, 0, 0]]))
    assert (count.encoder, count.decoder) == (0, 2)


def test_what_is_read_in_chunks_is_counted_once(model: SentenceTransformer) -> None:
    chunks = to_chunk_mean(model, max_length=64, chunk_length=6).train()
    with count_tokens() as count:
        chunks(chunks.preprocess(["ba bei bo bun bis bet", "ba"]))
    assert count.encoder == 8 + 3


def test_flattened_inputs_have_no_padding() -> None:
    count = TokenCount()
    transformer = Transformer.__new__(Transformer)
    nn.Module.__init__(transformer)
    count._see(transformer, ({"input_ids": torch.ones(1, 7), "cu_seq_lens_q": torch.tensor([0, 3, 7])},))
    assert count.encoder == 7
