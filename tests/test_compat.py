from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from chunk_mean_support import SIZES
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments

from simlte_st import compat
from simlte_st.errors import ModelError


class _Wrapper(torch.nn.Module):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module


def test_encoder_is_found_through_wrappers(model: SentenceTransformer) -> None:
    encoder = model[0].auto_model
    assert isinstance(encoder, transformers.PreTrainedModel)
    assert compat.get_encoder(model) is encoder
    assert compat.get_encoder(_Wrapper(model)) is encoder
    compiled = torch.compile(model)  # compilation only starts at the first call
    assert compat.unwrap_compiled(compiled) is compat.unwrap_compiled(model) is model
    assert compat.get_encoder(compiled) is encoder
    assert compat.get_encoder(_Wrapper(compiled)) is encoder
    assert compat.get_encoder(torch.compile(_Wrapper(model))) is encoder
    with pytest.raises(ModelError, match="begins with NoneType"):
        compat.get_encoder(torch.nn.Sequential())


def test_missing_weights_are_reported(bert_path: Path, encoder_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    state = torch.get_rng_state()
    whole, missing = compat.load_masked_lm(bert_path)
    assert isinstance(whole, transformers.BertForMaskedLM)
    assert missing == []
    _, missing = compat.load_masked_lm(encoder_path)
    assert {"cls.predictions.transform.dense.weight", "cls.predictions.transform.LayerNorm.bias"} <= set(missing)
    assert torch.equal(torch.get_rng_state(), state)
    assert capfd.readouterr().err == ""
    dense, activation, norm, decoder = (whole.get_submodule(path) for path in compat.MLM_HEADS["bert"])
    hidden = torch.randn(3, 32)
    torch.testing.assert_close(decoder(norm(activation(dense(hidden)))), whole.cls(hidden))
    with pytest.raises(OSError):  # noqa: PT011  # the message is the library's
        compat.load_masked_lm(bert_path / "nothing")


def test_only_weights_that_change_embeddings_are_reported(
    bert_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    compat.load_stock(str(bert_path), ())  # with an MLM head, without a pooler
    assert caplog.messages == []
    state = {name: each for name, each in load_file(bert_path / "model.safetensors").items() if "layer.0" not in name}
    shutil.copytree(bert_path, broken := tmp_path / "broken")
    save_file(state, broken / "model.safetensors", {"format": "pt"})
    compat.load_stock(str(broken), ())
    assert "REPORT" not in capfd.readouterr().err
    names = "encoder.layer.0.attention.output.LayerNorm.bias ..."
    assert caplog.messages == [
        f"16 weights of {broken} could not be loaded from the checkpoint and are random: {names}"
    ]


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch is built without oneDNN")
@torch.no_grad()
def test_onednn_linear() -> None:
    inputs, layer = torch.randn(2, 9, 32), torch.nn.Linear(32, 7)
    torch.testing.assert_close(compat.onednn_linear(inputs, layer.weight, layer.bias), layer(inputs))
    torch.testing.assert_close(
        compat.onednn_linear(inputs[0], layer.weight), torch.nn.functional.linear(inputs[0], layer.weight)
    )


def test_softmax_gradient() -> None:
    scores, grad = torch.randn(2, 3, 5, requires_grad=True), torch.randn(2, 3, 5)
    weights = scores.softmax(-1)
    weights.backward(grad)
    torch.testing.assert_close(compat.softmax_gradient(grad, weights.detach()), scores.grad)


def test_hooks_are_noticed() -> None:
    layer = torch.nn.Linear(2, 2)
    model = torch.nn.Sequential(layer)
    assert not compat.has_hooks(model)
    layer.register_forward_hook(lambda *_: None)
    assert compat.has_hooks(model)


def padded_features(lengths: list[int]) -> dict[str, Any]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return {"input_ids": mask.long() * 7, "attention_mask": mask.long(), "task": "x"}


def test_mini_batches_by_rows_and_by_tokens() -> None:
    features = padded_features([5, 4, 3, 2, 1])
    assert compat.mini_batch_ranges(features, 2, None) == [(0, 2), (2, 4), (4, 5)]
    assert compat.mini_batch_ranges(features, 2, 6) == [(0, 1), (1, 2), (2, 5)]
    assert compat.mini_batch_ranges(features, 2, 1) == [(row, row + 1) for row in range(5)]


def test_eager_attention_is_restored(bert_path: Path) -> None:
    encoder = compat.get_encoder(SentenceTransformer(str(bert_path), device="cpu"))
    inputs = {"input_ids": torch.tensor([[2, 9, 3]]), "output_attentions": True}
    assert encoder.config._attn_implementation == "sdpa"
    with pytest.raises(KeyError), compat.eager_attention(encoder):  # noqa: PT012
        assert encoder(**inputs).attentions[0].shape == (1, 4, 3, 3)
        with compat.eager_attention(encoder):
            pass
        assert encoder.config._attn_implementation == "eager"
        raise KeyError
    assert encoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(("own", "wanted", "reads"), [(64, None, 64), (64, 20, 20), (30, 50, 50), (4096, None, 64)])
def test_readable_length_is_within_the_positions(
    model: SentenceTransformer, own: int, wanted: int | None, reads: int
) -> None:
    model.max_seq_length = own
    assert compat.readable_length(model, wanted) == reads


@pytest.mark.parametrize(
    ("length", "prompt", "budget"), [(4096, None, 62), (64, "ba bei: ", 59), (4, "ba bei bo bun bis", 1)]
)
def test_view_budget_is_within_the_positions(
    model: SentenceTransformer, length: int, prompt: str | None, budget: int
) -> None:
    model.max_seq_length = length
    assert compat.view_budget(model, prompt) == budget


class Stub(list[Any]):
    """The attributes of a model that the limit depends on, without a tokenizer."""

    def __init__(self, encoder: Any) -> None:
        super().__init__([encoder])
        self.transformers_model = encoder


@pytest.mark.parametrize(
    ("kind", "settings", "reads"),
    [
        (transformers.BertModel, {"max_position_embeddings": 40}, 40),
        (transformers.RobertaModel, {"max_position_embeddings": 40, "pad_token_id": 1}, 38),
        (transformers.T5EncoderModel, {}, None),
        (None, {}, None),
    ],
)
def test_usable_positions(kind: Any, settings: dict[str, int], reads: int | None) -> None:
    encoder = kind and kind(kind.config_class(**SIZES, vocab_size=20, **settings))
    assert compat.readable_tokens(Stub(encoder)) == reads  # type: ignore[arg-type]
    if encoder is not None and reads is not None:
        encoder.eval()
        with torch.no_grad():
            encoder(input_ids=torch.full((1, reads), 5))
            with pytest.raises((IndexError, RuntimeError)):
                encoder(input_ids=torch.full((1, reads + 1), 5))


def test_trainer_uses_the_given_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    arguments = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    arguments._n_gpu = 2
    compat.use_one_gpu(arguments, "cuda:1")
    assert (arguments.device, arguments.n_gpu, arguments.train_batch_size) == (torch.device("cuda:1"), 1, 8)
    compat.use_one_gpu(arguments, "cuda")
    assert arguments.device == torch.device("cuda:0")
    assert chosen == [torch.device("cuda:1"), torch.device("cuda:0")]
