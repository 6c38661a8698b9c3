"""The whole model against transformers' own Longformer, and as a transformers and sentence-transformers model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from longformer_support import assert_same_gradients, gradients, make_batch, randomise, stock_config
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document, make_tokenizer
from torch import nn
from transformers import AutoModel, AutoModelForMaskedLM, LongformerForMaskedLM, LongformerModel

from simlte_st.compat import readable_tokens
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer import SimlteLongformerConfig, SimlteLongformerForMaskedLM, SimlteLongformerModel, modeling
from simlte_st.losses.mlm_head import make_mlm_head


def make_pair(window: int | list[int] = 16, **fields: object) -> tuple[LongformerModel, SimlteLongformerModel]:
    stock = LongformerModel(stock_config(window, **fields))
    randomise(stock)
    return stock, SimlteLongformerModel.from_longformer(stock)


def assert_same(stock: LongformerModel, ours: SimlteLongformerModel, batch: dict[str, torch.Tensor]) -> None:
    mask = batch["attention_mask"]
    expected, found = stock(**batch).last_hidden_state, ours(**batch).last_hidden_state
    assert ((found - expected) * mask[..., None]).abs().max() < 1e-4
    assert_same_gradients(gradients(ours, found, mask), gradients(stock, expected, mask))


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
def test_hidden_states_and_gradients_are_the_stock_models(
    window: int | list[int], lengths: list[int], globals_each: int
) -> None:
    assert_same(*make_pair(window), make_batch(lengths, globals_each))


def test_the_eager_backend_too() -> None:
    stock, ours = make_pair(16)
    ours.set_attn_implementation("eager")
    assert_same(stock, ours, make_batch([70, 20, 1], 2))


def test_the_longest_documents() -> None:
    stock, ours = make_pair(512, max_position_embeddings=4098)
    batch = make_batch([4096], 1)
    with torch.no_grad():
        expected, found = stock(**batch), ours(**batch)
    assert (found.last_hidden_state - expected.last_hidden_state).abs().max() < 1e-4
    assert torch.allclose(found.pooler_output[:, :], ours.pooler(expected.last_hidden_state), atol=1e-4)


def test_many_random_shapes() -> None:
    for seed in range(12):
        draw = torch.Generator().manual_seed(seed)
        lengths = (torch.rand(4, generator=draw).pow(3) * 400 + 1).int().tolist()
        window = 2 * int(torch.randint(1, 60, (), generator=draw))
        stock, ours = make_pair(window)
        batch = make_batch(lengths, int(torch.randint(0, 4, (), generator=draw)), seed=seed)
        with torch.no_grad():
            difference = stock(**batch).last_hidden_state - ours(**batch).last_hidden_state
        assert (difference * batch["attention_mask"][..., None]).abs().max() < 1e-4, (lengths, window)


def test_other_ways_to_give_the_input() -> None:
    stock, ours = make_pair(16)
    batch = make_batch([50, 20], 1)
    shape, mask = batch["input_ids"].shape, batch["attention_mask"][..., None]
    segments = torch.randint(0, 2, shape)
    positions = torch.randint(2, 1000, shape)
    embedded = {name: batch[name] for name in ("attention_mask", "global_attention_mask")}
    embedded["inputs_embeds"] = torch.randn(*shape, 32)
    merged = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["attention_mask"] + batch["global_attention_mask"],
    }
    for features in ({**batch, "token_type_ids": segments}, {**batch, "position_ids": positions}, embedded, merged):
        with torch.no_grad():
            expected, found = stock(**features), ours(**features, output_hidden_states=True)
        assert ((found.last_hidden_state - expected.last_hidden_state) * mask).abs().max() < 1e-4
        assert len(found.hidden_states) == 3
        assert torch.equal(found.hidden_states[-1], found.last_hidden_state)


def test_documents_do_not_depend_on_their_batch_or_on_the_side_of_padding() -> None:
    _, ours = make_pair(16)
    lengths = [90, 31, 7]
    with torch.no_grad():
        right, left = (ours(**make_batch(lengths, 2, left=left)).last_hidden_state for left in (False, True))
        batch = make_batch(lengths, 2)
        for row, length in enumerate(lengths):
            alone = ours(**{name: value[row : row + 1, :length] for name, value in batch.items()}).last_hidden_state
            assert torch.allclose(right[row, :length], alone[0], atol=1e-5)
            assert torch.allclose(left[row, 90 - length :], alone[0], atol=1e-5)


def test_a_far_token_moves_cls_only_with_global_attention() -> None:
    _, ours = make_pair(16)
    batch = make_batch([500], 0)
    del batch["global_attention_mask"]
    changed = {**batch, "input_ids": batch["input_ids"].clone()}
    changed["input_ids"][0, 450] = 59 - batch["input_ids"][0, 450] // 2
    moved = {}
    with torch.no_grad():
        for ours.config.global_tokens in ("cls", "none"):
            before, after = (ours(**features).last_hidden_state[0, 0] for features in (batch, changed))
            moved[ours.config.global_tokens] = (before - after).abs().max()
    assert moved["cls"] > 1e-4
    assert moved["none"] == 0


def test_cls_is_global_by_default_as_with_the_mask() -> None:
    _, ours = make_pair(16)
    batch = make_batch([90, 31], 0, left=True)
    first = batch["attention_mask"].argmax(1)
    given = {**batch, "global_attention_mask": nn.functional.one_hot(first, 90)}
    del batch["global_attention_mask"]
    assert torch.equal(ours(**given).last_hidden_state, ours(**batch).last_hidden_state)


def test_the_longest_legal_input_works_and_one_token_more_says_so() -> None:
    _, ours = make_pair(16, max_position_embeddings=102)
    assert ours.config.usable_length == 100
    ours(**make_batch([100, 3], 1))
    with pytest.raises(ModelError, match=r"101 tokens.* for 100"):
        ours(**make_batch([101, 3], 1))


def test_what_is_refused() -> None:
    _, ours = make_pair(16)
    batch = make_batch([5], 0)
    with pytest.raises(ModelError, match="output_attentions"):
        ours(**batch, output_attentions=True)
    with pytest.raises(ModelError, match="either"):
        ours(attention_mask=batch["attention_mask"])
    with pytest.raises(ConfigurationError, match="flash_attention_2"):
        ours.set_attn_implementation("flash_attention_2")


def test_rows_without_a_token() -> None:
    _, ours = make_pair(16)
    batch = make_batch([5, 9], 1)
    batch["attention_mask"][0] = 0
    assert ours(**batch).last_hidden_state[0].abs().max() == 0
    batch["attention_mask"][:] = 0
    assert ours(**batch).last_hidden_state.abs().max() == 0


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_equal_gradients(reentrant: bool) -> None:
    _, ours = make_pair(16)
    batch = make_batch([90, 31], 2)
    expected = gradients(ours, ours(**batch).last_hidden_state, batch["attention_mask"])
    ours.gradient_checkpointing_enable({"use_reentrant": reentrant})
    ours.train()
    ours.enable_input_require_grads()
    found = gradients(ours, ours(**batch).last_hidden_state, batch["attention_mask"])
    assert found.keys() == expected.keys()
    assert all(torch.allclose(found[name], expected[name], atol=1e-5) for name in expected)


def test_feed_forward_without_gradients_is_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modeling, "SLOTS", 50)
    ours, batch = SimlteLongformerModel.from_longformer(make_pair(16)[0]), make_batch([90, 31], 1)
    sizes: list[int] = []
    ours.encoder.layer[0].output.register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    expected = ours(**batch).last_hidden_state
    (whole,) = sizes
    with torch.inference_mode():
        found = ours(**batch).last_hidden_state
    assert max(sizes[1:]) == 50
    assert sum(sizes[1:]) == whole
    assert torch.allclose(found, expected, atol=1e-5)


def test_feed_forward_in_pieces_and_half_precision() -> None:
    stock, _ = make_pair(16)
    expected_model = SimlteLongformerModel.from_longformer(stock)
    stock.config.chunk_size_feed_forward = 13
    batch = make_batch([90, 31], 1)
    expected = expected_model(**batch).last_hidden_state
    found = SimlteLongformerModel.from_longformer(stock)(**batch).last_hidden_state
    assert torch.allclose(found, expected, atol=1e-5)
    half = expected_model.to(torch.bfloat16)(**batch).last_hidden_state
    assert half.dtype == torch.bfloat16
    assert (half.float() - expected).abs().mean() < 0.05


def test_training_with_dropout_runs() -> None:
    ours = SimlteLongformerModel(SimlteLongformerConfig(**{**stock_config(16).to_dict(), "hidden_dropout_prob": 0.1}))
    for layer in ours.encoder.layer:
        layer.attention.self.dropout = 0.1
    batch = make_batch([90, 31], 1)
    found = gradients(ours.train(), ours(**batch).last_hidden_state, batch["attention_mask"])
    assert all(grad.isfinite().all() for grad in found.values())


def test_stock_checkpoints_load_and_are_saved_again(tmp_path: Path) -> None:
    stock, _ = make_pair([16, 8])
    stock.save_pretrained(tmp_path / "stock")
    ours, info = SimlteLongformerModel.from_pretrained(tmp_path / "stock", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert ours.config.global_tokens == "cls"
    ours.save_pretrained(tmp_path / "ours")
    again = AutoModel.from_pretrained(tmp_path / "ours")
    assert isinstance(again, SimlteLongformerModel)
    again.to_longformer().save_pretrained(tmp_path / "back")
    back, info = LongformerModel.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not info["missing_keys"]
    assert back.config.attention_window == [16, 8]
    assert all(torch.equal(back.state_dict()[name], weight) for name, weight in stock.state_dict().items())


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_goes_both_ways(tmp_path: Path, tied: bool) -> None:
    stock = LongformerForMaskedLM(stock_config(16, tie_word_embeddings=tied))
    randomise(stock)
    stock.save_pretrained(tmp_path / "stock")
    batch = make_batch([60, 20], 1)
    labels = batch["input_ids"].where(torch.rand(batch["input_ids"].shape) < 0.3, -100)
    labels = labels.where(batch["attention_mask"] > 0, -100)
    expected = stock(**batch, labels=labels)
    ours = SimlteLongformerForMaskedLM.from_pretrained(tmp_path / "stock")
    ours.save_pretrained(tmp_path / "ours")
    for model in (
        ours,
        SimlteLongformerForMaskedLM.from_longformer(tmp_path / "stock"),
        AutoModelForMaskedLM.from_pretrained(tmp_path / "ours"),
        ours.to_longformer(),
    ):
        found = model(**batch, labels=labels)
        assert torch.allclose(found.loss, expected.loss, atol=1e-4)
        mask = batch["attention_mask"][..., None]
        assert ((found.logits - expected.logits) * mask).abs().max() < 1e-3
        assert (model.get_output_embeddings().weight is model.get_input_embeddings().weight) == tied
    headless = SimlteLongformerModel.from_longformer(stock)
    assert torch.equal(headless.embeddings.word_embeddings.weight, stock.get_input_embeddings().weight)


def test_from_longformer_refuses_other_models() -> None:
    _, ours = make_pair()
    with pytest.raises(ModelError, match="not a stock Longformer"):
        SimlteLongformerModel.from_longformer(ours)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with its head and its tokenizer, whose own limit is wide of the mark."""
    path = tmp_path_factory.mktemp("models") / "tiny-longformer"
    tokenizer = make_tokenizer()
    tokenizer.model_max_length = 100
    config = stock_config(16, vocab_size=len(tokenizer), pad_token_id=0, max_position_embeddings=101).to_dict()
    torch.manual_seed(0)
    SimlteLongformerForMaskedLM(SimlteLongformerConfig(**config)).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_a_sentence_transformer_of_stock_modules(saved: Path, tmp_path: Path) -> None:
    transformer = Transformer(str(saved))
    model = SentenceTransformer(modules=[transformer, Pooling(32, "cls")], device="cpu")
    model.save_pretrained(str(tmp_path / "model"))
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert isinstance(loaded[0].auto_model, SimlteLongformerModel)
    assert readable_tokens(loaded) == 100
    texts = [make_document(number, sentences=number) for number in (1, 40, 3)]
    vectors = loaded.encode(texts, convert_to_tensor=True)
    assert torch.allclose(vectors, model.encode(texts, convert_to_tensor=True), atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert torch.allclose(loaded.encode(text, convert_to_tensor=True), vector, atol=1e-5)


def test_the_loss_finds_the_head(saved: Path) -> None:
    model = SentenceTransformer(modules=[Transformer(str(saved)), Pooling(32, "cls")], device="cpu")
    head = make_mlm_head(model, "pretrained")
    ours = SimlteLongformerForMaskedLM.from_pretrained(saved).eval()
    batch = make_batch([20], 0)
    del batch["global_attention_mask"]
    hidden = ours.longformer(**batch).last_hidden_state[0]
    words = model[0].auto_model.get_input_embeddings().weight
    assert torch.allclose(head(hidden, words), ours(**batch).logits[0], atol=1e-5)


def test_gradients_under_autocast_are_as_near_as_the_references() -> None:
    _, ours = make_pair(16)
    batch = make_batch([300, 40], 1)
    mask = batch["attention_mask"]
    truth = gradients(ours, ours(**batch).last_hidden_state, mask)
    errors = {}
    for backend in ("eager", "sdpa"):
        ours.set_attn_implementation(backend)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = ours(**batch).last_hidden_state
        found = gradients(ours, hidden.float(), mask)
        errors[backend] = max(
            float((found[name] - truth[name]).norm() / truth[name].norm()) for name in truth if "key" not in name
        )
    assert errors["sdpa"] < 1.5 * errors["eager"]
