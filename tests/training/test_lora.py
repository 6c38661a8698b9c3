from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from longformer_support import randomise
from safetensors.torch import load_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.modules import BoW, Dense, Pooling
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertForMaskedLM

from simlte_st.compat import encoder_of
from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError, ResumeError
from simlte_st.longformer import SimlteLongformerModel
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.models.base import load_model
from simlte_st.training.batching import SeededBatchSampler
from simlte_st.training.callbacks import LossStateCallback
from simlte_st.training.dropout import set_dropout
from simlte_st.training.lora import (
    ADAPTER_FILE,
    FROZEN_FILE,
    LoraStateCallback,
    add_lora,
    has_adapters,
    merge_lora,
)

pytest.importorskip("peft")

TEXTS = ["Ba bei bo, cun dis.", "Let lal gor hun tis wet wal. Ba, bei."]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
KINDS: dict[str, dict[str, Any]] = {
    "bert": SIZES,
    "roberta": {**SIZES, "max_position_embeddings": 66},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "mpnet": {**SIZES, "max_position_embeddings": 66},
    "modernbert": {**SIZES, "global_attn_every_n_layers": 2, "local_attention": 16},
    "simlte_longformer": {**SIZES, "max_position_embeddings": 66, "attention_window": 8},
}


def make_model(kind: str, bert_path: Path, path: Path) -> SentenceTransformer:
    """A model with large random weights, loaded from a checkpoint."""
    tokenizer = AutoTokenizer.from_pretrained(bert_path)
    ids = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    fields = {"max_position_embeddings": 64, **KINDS[kind], **ids, "vocab_size": len(tokenizer)}
    encoder = AutoModel.from_config(AutoConfig.for_model(kind, **fields))
    randomise(encoder)
    encoder.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return load_model(path).model.eval()


def randomise_adapters(model: SentenceTransformer) -> None:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.normal_(0.0, 0.1, generator=generator)


def trainable(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    assert first
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.mark.parametrize("kind", KINDS)
def test_merging_gives_a_plain_model_with_the_same_output(kind: str, bert_path: Path, tmp_path: Path) -> None:
    model = make_model(kind, bert_path, tmp_path / "base")
    base, before = model.encode(TEXTS), state(model)
    assert not has_adapters(model)
    add_lora(model, 4)
    assert has_adapters(model)
    # It begins as the base; our Longformer projects plain layers another way than adapted ones.
    torch.testing.assert_close(model.encode(TEXTS), base, rtol=0, atol=1e-5 if "longformer" in kind else 0)
    randomise_adapters(model)
    adapted = model.encode(TEXTS)
    assert abs(adapted - base).max() > 0.1
    merge_lora(model)
    assert not has_adapters(model)
    torch.testing.assert_close(model.encode(TEXTS), adapted, rtol=0, atol=1e-5)
    assert {name: (value.shape, value.dtype) for name, value in state(model).items()} == {
        name: (value.shape, value.dtype) for name, value in before.items()
    }
    assert all(weight.requires_grad for weight in model.parameters())
    # The folder is the one that a plain model is saved in: it needs neither PEFT nor the base.
    model.save_pretrained(str(tmp_path / "merged"))
    plain = load_model(tmp_path / "base").model
    plain.encode(TEXTS)  # which sets up the tokenizer
    plain.save_pretrained(str(tmp_path / "plain"))
    shutil.rmtree(tmp_path / "base")
    files = [path.relative_to(tmp_path / "plain") for path in (tmp_path / "plain").rglob("*.*")]
    assert sorted(files) == sorted(path.relative_to(tmp_path / "merged") for path in (tmp_path / "merged").rglob("*.*"))
    for file in files:
        if file.suffix == ".json":
            assert (tmp_path / "merged" / file).read_text() == (tmp_path / "plain" / file).read_text()
    assert (SentenceTransformer(str(tmp_path / "merged"), device="cpu").encode(TEXTS) == model.encode(TEXTS)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_linear_layer_that_is_used_learns(kind: str, bert_path: Path, tmp_path: Path) -> None:
    model = make_model(kind, bert_path, tmp_path / "base")
    linear = {
        f"0.model.{name}" for name, layer in model.transformers_model.named_modules()
        if isinstance(layer, nn.Linear) and not name.startswith("pooler")
    }  # fmt: skip
    add_lora(model, 2)
    adapted = {name.split(".lora_")[0] for name in trainable(model)}
    assert adapted == linear
    randomise_adapters(model)  # B begins at 0, which lets no gradient through to A
    features = model.preprocess(TEXTS)
    # Of all tokens: a [CLS] with global attention needs no local attention in the last layer.
    (model(features)["token_embeddings"] * torch.arange(32.0)).sum().backward()
    assert [name for name, weight in trainable(model).items() if weight.grad is None] == []
    zero = [name for name, weight in trainable(model).items() if not weight.grad.any()]
    assert zero == []
    assert all(weight.grad is None for weight in model.parameters() if not weight.requires_grad)


def test_layers_can_be_chosen(model: SentenceTransformer) -> None:
    add_lora(model, 2, target_modules=["query", "attention.output.dense"])
    names = {name.split(".lora_")[0].split(".layer.")[1][2:] for name in trainable(model)}
    assert names == {"attention.self.query", "attention.output.dense"}


def test_rank_and_alpha_mean_what_they_say(model: SentenceTransformer) -> None:
    before = state(model)
    add_lora(model, 3, alpha=12.0, target_modules=["value"])
    randomise_adapters(model)
    weights = {name.rsplit(".default", 1)[0]: weight.detach().clone() for name, weight in trainable(model).items()}
    merge_lora(model)
    for layer in range(2):
        name = f"0.model.encoder.layer.{layer}.attention.self.value"
        a, b = weights[f"{name}.lora_A"], weights[f"{name}.lora_B"]
        assert (a.shape, b.shape) == ((3, 32), (32, 3))
        expected = before[f"{name}.weight"] + 12.0 / 3 * b @ a
        torch.testing.assert_close(model.state_dict()[f"{name}.weight"], expected, rtol=0, atol=1e-6)
    unchanged = {name for name, value in state(model).items() if torch.equal(value, before[name])}
    assert {name for name in before if not name.endswith("value.weight")} == unchanged


def test_the_seed_decides_and_the_global_numbers_do_not(encoder_path: Path) -> None:
    drawn = []
    for seed, global_seed in ((0, 1), (0, 2), (1, 1)):
        model = SentenceTransformer(str(encoder_path), device="cpu")
        torch.manual_seed(global_seed)
        numbers = torch.get_rng_state()
        add_lora(model, 4, seed=seed)
        assert torch.equal(torch.get_rng_state(), numbers)
        drawn.append({name: weight.detach() for name, weight in trainable(model).items() if "lora_A" in name})
    assert same(drawn[0], drawn[1])
    assert not any(torch.equal(value, drawn[2][name]) for name, value in drawn[0].items())
    first, second = list(drawn[0].values())[:2]
    assert not torch.equal(first, second)


def test_dropout_of_the_encoder_is_not_dropout_of_the_adapters(model: SentenceTransformer) -> None:
    add_lora(model, 4)
    randomise_adapters(model)
    set_dropout(model, 0.5)
    model.train()
    layer = encoder_of(model).encoder.layer[0].intermediate.dense
    hidden = torch.randn(3, 32)
    assert torch.equal(layer(hidden), layer(hidden))
    features = model.preprocess(TEXTS)
    first, second = (model({**features})["sentence_embedding"] for _ in range(2))
    assert not torch.equal(first, second)
    set_dropout(model, 0.0)
    first, second = (model({**features})["sentence_embedding"] for _ in range(2))
    assert torch.equal(first, second)


def test_the_mlm_term_teaches_adapters_and_head_only(bert_path: Path) -> None:
    model = load_model(bert_path, "mean").model
    add_lora(model, 4)
    loss = MultipleNegativesRankingMLMLoss(model, mlm_weight=1.0, mlm_probability=0.5)
    assert loss.mlm_head is not None
    assert loss.mlm_head.pretrained
    before = state(model)
    optimizer = torch.optim.Adam([weight for weight in loss.parameters() if weight.requires_grad], lr=3e-2)
    torch.manual_seed(0)
    values = []
    for _ in range(30):
        optimizer.zero_grad()
        features = [model.preprocess(TEXTS), model.preprocess(TEXTS[::-1])]
        terms = loss(features, None)
        assert isinstance(terms, dict)
        sum(terms.values()).backward()
        values.append(terms["mlm"].item())
        optimizer.step()
    assert sum(values[-5:]) < 0.8 * sum(values[:5])
    moved = {name for name, value in state(model).items() if not torch.equal(value, before[name])}
    assert moved == set(trainable(model))
    assert all(weight.grad is not None and weight.grad.any() for weight in loss.mlm_head.parameters())


@pytest.mark.parametrize("kind", ["bert", "simlte_longformer"])
def test_gradient_checkpointing_changes_no_gradient(kind: str, bert_path: Path, tmp_path: Path) -> None:
    model = make_model(kind, bert_path, tmp_path / "base")
    add_lora(model, 2)
    randomise_adapters(model)
    set_dropout(model, 0.0)
    model.train()
    found = []
    for reentrant in (None, False, True):
        if reentrant is not None:
            encoder = model.transformers_model
            # As transformers 5.23 calls it.
            enable = getattr(encoder, "activation_checkpointing_enable", encoder.gradient_checkpointing_enable)
            enable({"use_reentrant": reentrant})
        model.zero_grad()
        (model(model.preprocess(TEXTS))["sentence_embedding"] * torch.arange(32.0)).sum().backward()
        found.append({name: weight.grad for name, weight in trainable(model).items() if weight.grad is not None})
    for other in found[1:]:
        assert other.keys() == found[0].keys()
        for name, gradient in other.items():
            torch.testing.assert_close(gradient, found[0][name], rtol=1e-4, atol=1e-4)


def test_modules_after_the_encoder_do_not_learn(encoder_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model.append(Dense(32, 8))
    add_lora(model, 2)
    assert not any(weight.requires_grad for weight in model[2].parameters())
    merge_lora(model)
    assert all(weight.requires_grad for weight in model[2].parameters())


def test_bad_input_leaves_the_model_as_it_was(model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(model)
    with pytest.raises(ConfigurationError, match="rank=0"):
        add_lora(model, 0)
    with pytest.raises(ConfigurationError, match="alpha=0"):
        add_lora(model, 2, alpha=0)
    with pytest.raises(ConfigurationError, match=r"'q_proj'; there are \['dense', 'key', 'query', 'value'\]"):
        add_lora(model, 2, target_modules=["query", "q_proj"])
    with pytest.raises(ConfigurationError, match="'word_embeddings'"):
        add_lora(model, 2, target_modules=["word_embeddings"])
    with pytest.raises(ModelError, match="no adapters to merge"):
        merge_lora(model)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "peft", None)
        with pytest.raises(MissingExtraError, match=r"simlte-st\[lora\]"):
            add_lora(model, 2)
    assert same(state(model), before)
    assert len(trainable(model)) == len(list(model.parameters()))

    add_lora(model, 2)
    with pytest.raises(ModelError, match="adapters already"):
        add_lora(model, 2)
    next(iter(trainable(model).values())).data.fill_(float("nan"))
    with pytest.raises(ModelError, match="diverged"):
        merge_lora(model)
    with pytest.raises(ModelError, match="begins with BoW"):
        add_lora(SentenceTransformer(modules=[BoW(["a", "b"])], device="cpu"), 2)


def test_adapters_of_another_kind_are_not_merged(model: SentenceTransformer) -> None:
    import peft

    model.add_adapter(peft.IA3Config(target_modules=["query"], feedforward_modules=[]))
    with pytest.raises(ModelError, match="IA3"):
        merge_lora(model)


# Our Longformer takes a shortcut through plain projections of keys and values.


def test_a_longformers_global_attention_sees_the_adapters(bert_path: Path, tmp_path: Path) -> None:
    model = make_model("simlte_longformer", bert_path, tmp_path / "base")
    encoder = model.transformers_model
    assert isinstance(encoder, SimlteLongformerModel)
    base = model.encode(TEXTS)
    for name in ("query_global", "key_global", "value_global"):
        add_lora(model, 2, target_modules=[name])
        randomise_adapters(model)
        adapted = model.encode(TEXTS)
        assert abs(adapted - base).max() > 1e-3, name
        merge_lora(model)
        torch.testing.assert_close(model.encode(TEXTS), adapted, rtol=0, atol=1e-5)
        base = adapted


# Checkpoints and resuming, with the stock Trainer.


@pytest.fixture(params=["float32", "bfloat16"])
def base_path(request: pytest.FixtureRequest, bert_path: Path, tmp_path: Path) -> Path:
    """A raw language model: its checkpoint has no pooler. In half precision it would round what is loaded into it."""
    if request.param == "float32":
        return bert_path
    masked_lm = BertForMaskedLM.from_pretrained(bert_path, dtype=torch.bfloat16)
    masked_lm.save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(tmp_path / "half")
    return tmp_path / "half"


@pytest.fixture
def make_trainer(base_path: Path, documents: list[str], tmp_path: Path) -> Callable[..., SentenceTransformerTrainer]:
    sentences = [document.split(". ") for document in documents[:24]]
    dataset = Dataset.from_dict({"anchor": [row[0] for row in sentences], "positive": [row[5] for row in sentences]})

    def make(model: SentenceTransformer | None = None, rank: int = 4) -> SentenceTransformerTrainer:
        torch.manual_seed(0)
        model = load_model(base_path, "mean", dtype=torch.float32).model if model is None else model
        add_lora(model, rank)
        loss = MultipleNegativesRankingMLMLoss(model, mlm_weight=1.0)
        arguments = SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path / "run"),
            max_steps=6,
            per_device_train_batch_size=6,
            learning_rate=1e-2,
            save_steps=3,
            batch_sampler=SeededBatchSampler,
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        return SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=dataset,
            loss=loss,
            callbacks=[LossStateCallback(loss), LoraStateCallback(model)],
        )

    return make


def test_a_resumed_run_ends_with_the_same_bytes(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path
) -> None:
    whole = make_trainer()
    start = state(whole.model)
    whole.train()
    end = state(whole.model)
    moved = {name for name, value in end.items() if not torch.equal(value, start[name])}
    assert moved == set(trainable(whole.model))
    checkpoint = tmp_path / "run" / "checkpoint-3"
    assert set(load_file(checkpoint / ADAPTER_FILE)) == moved
    assert set(load_file(tmp_path / "run" / FROZEN_FILE)) == set(end) - moved
    assert not list(tmp_path.rglob("*.tmp"))

    resumed = make_trainer()
    assert same(state(resumed.model), start)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == 6
    assert same(state(resumed.model), end)
    assert same(resumed.loss.extra_state(), whole.loss.extra_state())
    for trainer, name in ((whole, "a"), (resumed, "b")):
        merge_lora(trainer.model)
        trainer.model.save_pretrained(str(tmp_path / name))
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in "ab")
    assert first == second


def test_what_cannot_be_resumed_is_refused(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path
) -> None:
    make_trainer().train()
    checkpoint = tmp_path / "run" / "checkpoint-3"
    with pytest.raises((ResumeError, RuntimeError), match=r"another rank|size mismatch"):
        make_trainer(rank=2).train(resume_from_checkpoint=str(checkpoint))
    for path in (checkpoint / ADAPTER_FILE, tmp_path / "run" / FROZEN_FILE):
        path.rename(tmp_path / "elsewhere")
        with pytest.raises(ResumeError, match=path.name):
            make_trainer().train(resume_from_checkpoint=str(checkpoint))
        (tmp_path / "elsewhere").rename(path)


@pytest.mark.parametrize("base_path", ["float32"], indirect=True)
def test_a_model_that_the_trainer_could_not_load_again_is_refused_at_once(
    make_trainer: Callable[..., SentenceTransformerTrainer], bert_path: Path, tmp_path: Path
) -> None:
    loaded = load_model(bert_path).model
    loaded.save_pretrained(str(tmp_path / "old"))
    moved = [path for path in (tmp_path / "old").iterdir() if path.is_file() and path.name != "modules.json"]
    (tmp_path / "old" / "0_Transformer").mkdir()
    for path in moved:
        path.rename(tmp_path / "old" / "0_Transformer" / path.name)
    modules = json.loads((tmp_path / "old" / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (tmp_path / "old" / "modules.json").write_text(json.dumps(modules))
    old_layout = SentenceTransformer(str(tmp_path / "old"), device="cpu")
    with pytest.raises(ModelError, match="would not find the encoder"):
        make_trainer(old_layout).train()

    in_memory = load_model(bert_path).model
    in_memory.transformers_model.config._name_or_path = ""
    with pytest.raises(ModelError, match="was not loaded from a checkpoint"):
        make_trainer(in_memory).train()
    assert isinstance(in_memory[1], Pooling)
