"""The whole model against transformers' own Longformer, and as a transformers and sentence-transformers model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import longformer_support as support
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, LongformerForMaskedLM, LongformerModel

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import SimlteLongformerConfig, SimlteLongformerForMaskedLM, SimlteLongformerModel


def make_pair(window: int | list[int] = 16, **fields: object) -> tuple[LongformerModel, SimlteLongformerModel]:
    stock = LongformerModel(support.stock_config(window, **fields))
    support.randomise(stock)
    return stock, support.ours_like(stock)


def assert_same(stock: LongformerModel, ours: SimlteLongformerModel, batch: dict[str, torch.Tensor]) -> None:
    mask = batch["attention_mask"]
    expected = stock(**batch).last_hidden_state
    truth, switch = support.gradients(stock, expected, mask), ours.set_attn_implementation
    with pytest.MonkeyPatch.context() as patch:
        for prepare in (lambda: None, lambda: support.emulate_kernel(patch), lambda: switch("eager")):
            prepare()
            found = ours(**batch).last_hidden_state
            assert ((found - expected) * mask[..., None]).abs().max() < 1e-4
            with torch.no_grad():  # which saves launches
                assert ((ours.eval()(**batch).last_hidden_state - found) * mask[..., None]).abs().max() < 1e-5
            ours.train(stock.training)
            support.assert_same_gradients(support.gradients(ours, found, mask), truth)


@pytest.mark.parametrize("globals_each", [0, 1, 7])
@pytest.mark.parametrize(
    ("window", "lengths"),
    [
        (4, [1]),  # the stock model breaks down at a window of 2
        (4, [5, 3, 1]),
        (16, [17, 100, 1, 33]),
        ([8, 64], [300, 129, 64]),
        (64, [128]),
        (512, [1030, 60]),
    ],
    ids=str,
)
def test_hidden_states_and_gradients_match_the_stock_model(
    window: int | list[int], lengths: list[int], globals_each: int
) -> None:
    assert_same(*make_pair(window), support.make_batch(lengths, globals_each))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_value_on_the_device_is_read(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    support.treat_as_gpu(monkeypatch, "meta")
    with torch.device("meta"):  # reading a value raises an error
        model = SimlteLongformerModel(SimlteLongformerConfig(**support.stock_config().to_dict())).to(dtype)
        ids = torch.ones(3, 600, dtype=torch.int64)
    mask = (torch.arange(600) < torch.tensor([[600], [300], [7]])).long()
    marked = (torch.arange(600) < torch.tensor([[3], [2], [0]])).long()
    for global_mask in (None, marked):
        model(ids, mask, global_mask).last_hidden_state.sum().backward()
    assert model.encoder.layer[0].attention.self.key.weight.grad.shape == (support.HIDDEN, support.HIDDEN)


class Launches(TorchDispatchMode):
    """Counts the operators that launch a kernel on a GPU: those that do not only make a view or reserve memory."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> object:
        self.count += not func.is_view and not func._schema.name.startswith(("aten::empty", "aten::_unsafe_view"))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("lengths", [[600], [600, 300, 20], [300] * 4])
def test_layer_takes_few_launches_on_a_gpu(lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    support.treat_as_gpu(monkeypatch, "meta")
    mask, counts = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long(), list[int]()
    for layers in (1, 2):
        config = SimlteLongformerConfig(**support.stock_config(num_hidden_layers=layers).to_dict())
        with torch.device("meta"):
            model, ids = SimlteLongformerModel(config).bfloat16().eval(), torch.ones(mask.shape, dtype=torch.int64)
        with torch.no_grad(), Launches() as launches:
            model(ids, mask)
        counts.append(launches.count)
    assert counts[1] - counts[0] <= 32, "the time of short batches is the number of launches"


def test_input_variants_match_the_stock_model() -> None:
    stock, ours = make_pair(16)
    batch = support.make_batch([50, 20], 1)
    shape, mask = batch["input_ids"].shape, batch["attention_mask"][..., None]
    segments = torch.randint(0, 2, shape)
    positions = torch.randint(2, 1000, shape)
    merged = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["attention_mask"] + batch["global_attention_mask"],
    }
    for features in ({**batch, "token_type_ids": segments}, {**batch, "position_ids": positions}, merged):
        with torch.no_grad():
            expected, found = stock(**features), ours(**features, output_hidden_states=True)
        assert ((found.last_hidden_state - expected.last_hidden_state) * mask).abs().max() < 1e-4
        assert len(found.hidden_states) == 3
        assert torch.equal(found.hidden_states[-1], found.last_hidden_state)


def test_eager_attention_returns_weights() -> None:
    _, ours = make_pair(16, attention_probs_dropout_prob=0.5)
    batch, ours = support.make_batch([50, 20, 1], 2), SimlteLongformerForMaskedLM(ours.config).train()
    for impossible in ({"output_attentions": True}, support.make_batch([1100] * 4, 0)):
        with pytest.raises(ModelError, match=r"needs eager attention|4,480. Use smaller batches"):
            ours(**{**batch, **impossible})
        ours.set_attn_implementation("eager")
    for implementation in ("eager", "sdpa"):
        ours.set_attn_implementation(implementation)
        assert not torch.equal(ours(**batch).logits, ours(**batch).logits)
    for module in ours.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    outputs = [ours(**batch)]
    ours.set_attn_implementation("eager")
    outputs.append(ours(**batch, output_attentions=True))
    torch.testing.assert_close(outputs[0].logits, outputs[1].logits)
    mask = batch["attention_mask"].float()
    for weights in outputs[1].attentions:
        torch.testing.assert_close(weights.sum(-1), mask[:, None].expand(3, 4, 50))
        assert not weights.sum(2).mul(1 - mask[:, None]).any()
        distance = (torch.arange(50)[:, None] - torch.arange(50)).abs()
        marked = batch["global_attention_mask"][0].bool()
        assert ((weights[0] > 0) == ((distance <= 8) | marked | marked[:, None])).all()


def test_far_token_affects_cls_only_with_global_attention() -> None:
    _, ours = make_pair(16)
    batch = support.make_batch([500], 0)
    del batch["global_attention_mask"]
    changed = {**batch, "input_ids": batch["input_ids"].clone()}
    changed["input_ids"][0, 450] = 59 - batch["input_ids"][0, 450] // 2
    for ours.config.global_tokens in ("cls", "none"):
        before, after = (ours(**features).last_hidden_state[0, 0] for features in (batch, changed))
        assert torch.allclose(before, after, atol=1e-4) == (ours.config.global_tokens == "none")


def test_input_longer_than_the_positions_is_refused() -> None:
    _, ours = make_pair(16, max_position_embeddings=102)
    assert ours.config.usable_length == 100
    ours(**support.make_batch([100, 3], 1))
    with pytest.raises(ModelError, match=r"101 tokens.* for 100"):
        ours(**support.make_batch([101, 3], 1))


def test_rows_without_tokens_are_zero() -> None:
    _, ours = make_pair(16)
    batch = support.make_batch([5, 9], 1)
    batch["attention_mask"][0] = 0
    assert ours(**batch).last_hidden_state[0].abs().max() == 0
    batch["attention_mask"][:] = 0
    assert ours(**batch).last_hidden_state.abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_keeps_the_gradients(reentrant: bool, dtype: torch.dtype) -> None:
    fields = support.stock_config([16, 64], hidden_dropout_prob=0.1).to_dict()
    ours = SimlteLongformerForMaskedLM(SimlteLongformerConfig(**{k: v for k, v in fields.items() if k != "model_type"}))
    support.randomise(ours)
    ours.to(dtype).train()
    batch = support.make_batch([200, 90, 31, 1], 2)
    runs = []
    for enable in (lambda _: None, ours.gradient_checkpointing_enable):
        enable({"use_reentrant": reentrant})
        torch.manual_seed(0)
        logits = ours(**batch).logits.float()
        runs.append((logits, support.gradients(ours, logits, batch["attention_mask"])))
    (first, expected), (second, found) = runs
    assert torch.equal(second, first), "the forward pass computes what the backward pass recomputes"
    assert all(gradient.isfinite().all() for gradient in found.values())
    support.assert_same_gradients(found, expected, 1e-5)


def test_stock_checkpoints_round_trip(tmp_path: Path) -> None:
    stock, _ = make_pair([16, 8])
    stock.save_pretrained(tmp_path / "stock")
    ours, info = SimlteLongformerModel.from_pretrained(tmp_path / "stock", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert ours.config.global_tokens == "cls"
    ours.save_pretrained(tmp_path / "ours")
    again = AutoModel.from_pretrained(tmp_path / "ours")
    assert isinstance(again, SimlteLongformerModel)
    back, info = LongformerModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"]
    assert back.config.attention_window == [16, 8]
    assert all(torch.equal(back.state_dict()[name], weight) for name, weight in stock.state_dict().items())


@pytest.mark.parametrize("tied", [True, False])
def test_mlm_head_round_trip(tmp_path: Path, tied: bool) -> None:
    stock = LongformerForMaskedLM(support.stock_config(16, tie_word_embeddings=tied))
    support.randomise(stock)
    stock.save_pretrained(tmp_path / "stock")
    batch = support.make_batch([60, 20], 1)
    labels = batch["input_ids"].where(torch.rand(batch["input_ids"].shape) < 0.3, -100)
    labels = labels.where(batch["attention_mask"] > 0, -100)
    expected = stock(**batch, labels=labels)
    ours = SimlteLongformerForMaskedLM.from_pretrained(tmp_path / "stock")
    ours.save_pretrained(tmp_path / "ours")
    for model in (
        ours,
        AutoModelForMaskedLM.from_pretrained(tmp_path / "ours"),
        LongformerForMaskedLM.from_pretrained(tmp_path / "ours"),
    ):
        found = model(**batch, labels=labels)
        assert torch.allclose(found.loss, expected.loss, atol=1e-4)
        mask = batch["attention_mask"][..., None]
        assert ((found.logits - expected.logits) * mask).abs().max() < 1e-3
        assert (model.get_output_embeddings().weight is model.get_input_embeddings().weight) == tied
    headless = SimlteLongformerModel.from_pretrained(tmp_path / "stock")
    assert torch.equal(headless.embeddings.word_embeddings.weight, stock.get_input_embeddings().weight)


def test_config_round_trip(tmp_path: Path) -> None:
    config = SimlteLongformerConfig(attention_window=[64, 32, 512], num_hidden_layers=3, global_tokens="none")
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert isinstance(loaded, SimlteLongformerConfig)
    assert {**loaded.to_dict(), "_name_or_path": ""} == config.to_dict()
    assert loaded.layer_windows() == [64, 32, 512]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"global_tokens": "all"}, "global_tokens='all'"),
        ({"attention_window": 7}, "attention_window=7"),
        ({"attention_window": 0}, "attention_window=0"),
        ({"attention_window": [8, 8]}, "2 sizes for 12 layers"),
        ({"pad_token_id": None}, "Set pad_token_id="),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SimlteLongformerConfig(**fields)
