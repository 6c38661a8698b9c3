from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import Transformer, transformer
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    Gemma3TextConfig,
    Gemma3TextModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_outputs import BaseModelOutput

from simlte_st.compat import (
    MLM_HEADS,
    eager_attention,
    encoder_of,
    load_masked_lm,
    masks_without_vmap,
    merge_feature_batches,
    mini_batch_ranges,
    onednn_linear,
    onnx_by,
    readable_length,
    readable_tokens,
    slice_rows,
    use_one_gpu,
    view_budget,
    with_encoder,
)
from simlte_st.errors import ModelError


class _Wrapper(torch.nn.Module):
    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module


def test_the_encoder_is_found_through_wrappers(model: SentenceTransformer) -> None:
    encoder = model[0].auto_model
    assert isinstance(encoder, PreTrainedModel)
    assert encoder_of(model) is encoder
    assert encoder_of(_Wrapper(model)) is encoder
    compiled = torch.compile(model)  # compiles nothing before it is called
    assert encoder_of(compiled) is encoder
    assert encoder_of(_Wrapper(compiled)) is encoder
    assert encoder_of(torch.compile(_Wrapper(model))) is encoder
    with pytest.raises(ModelError, match="begins with NoneType"):
        encoder_of(torch.nn.Sequential())


def test_the_weights_that_a_checkpoint_lacks_are_told(
    bert_path: Path, encoder_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state = torch.get_rng_state()
    whole, missing = load_masked_lm(bert_path)
    assert isinstance(whole, BertForMaskedLM)
    assert missing == []
    _, missing = load_masked_lm(encoder_path)
    assert {"cls.predictions.transform.dense.weight", "cls.predictions.transform.LayerNorm.bias"} <= set(missing)
    assert torch.equal(torch.get_rng_state(), state)
    assert capfd.readouterr().err == ""
    dense, activation, norm, decoder = (whole.get_submodule(path) for path in MLM_HEADS["bert"])
    hidden = torch.randn(3, 32)
    torch.testing.assert_close(decoder(norm(activation(dense(hidden)))), whole.cls(hidden))
    with pytest.raises(OSError):  # noqa: PT011  # the message is the library's
        load_masked_lm(bert_path / "nothing")


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch is built without oneDNN")
@torch.no_grad()
def test_a_linear_layer_by_onednn() -> None:
    inputs, layer = torch.randn(2, 9, 32), torch.nn.Linear(32, 7)
    torch.testing.assert_close(onednn_linear(inputs, layer.weight, layer.bias), layer(inputs))
    torch.testing.assert_close(
        onednn_linear(inputs[0], layer.weight), torch.nn.functional.linear(inputs[0], layer.weight)
    )


def padded(lengths: list[int]) -> dict[str, Any]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return {"input_ids": mask.long() * 7, "attention_mask": mask.long(), "task": "x"}


def test_mini_batches_by_rows_and_by_tokens() -> None:
    features = padded([5, 4, 3, 2, 1])
    assert mini_batch_ranges(features, 2, None) == [(0, 2), (2, 4), (4, 5)]
    assert mini_batch_ranges(features, 2, 6) == [(0, 1), (1, 2), (2, 5)]
    assert mini_batch_ranges(features, 2, 1) == [(row, row + 1) for row in range(5)]


def test_rows_lose_the_padding_they_share() -> None:
    features = padded([5, 4, 3, 2, 1])
    rows = slice_rows(features, 2, 4)
    assert rows["task"] == "x"
    assert rows["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    flat = {"input_ids": torch.arange(6).unsqueeze(0), "cu_seq_lens_q": torch.tensor([0, 1, 3, 6]), "max_length_q": 3}
    rows = slice_rows(flat, 1, 2)
    assert rows["input_ids"].tolist() == [[1, 2]]
    assert rows["cu_seq_lens_q"].tolist() == [0, 2]
    assert rows["max_length_q"] == 2


def test_columns_merge_under_each_other() -> None:
    merged = merge_feature_batches([padded([2, 1]), padded([3, 1])])
    assert merged is not None
    assert merged["attention_mask"].tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]]
    assert merged["task"] == "x"
    assert merge_feature_batches([padded([2, 1]), {**padded([3, 1]), "task": "y"}]) is None


class _Curious(BertModel):
    """Takes a feature that sentence-transformers keeps to itself, unless a model asks for it by name."""

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, prompt_length: int | None = None, **kwargs: Any
    ) -> BaseModelOutput:
        self.seen = {"prompt_length": prompt_length, **kwargs}
        return BaseModelOutput(last_hidden_state=torch.zeros(*input_ids.shape, 8))


def test_encoders_are_loaded_by_another_function(encoder_path: Path) -> None:
    class Made(torch.nn.Module):
        config = AutoConfig.from_pretrained(encoder_path)

        def forward(self, input_ids: Tensor, **options: Any) -> BaseModelOutput:
            return BaseModelOutput(last_hidden_state=torch.ones(*input_ids.shape, 32))

    before = vars(transformer)["load_onnx_model"]
    with onnx_by(lambda config, **options: Made()):
        model = SentenceTransformer(str(encoder_path), device="cpu", backend="onnx")
    assert model.encode("ba bun").tolist() == [1] * 32
    assert vars(transformer)["load_onnx_model"] is before


def test_masks_are_traced_and_then_as_before() -> None:
    """A mask that is made of a function of its own, as EmbeddingGemma's, cannot be traced otherwise."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    kind = {"layer_types": ["full_attention"], "use_bidirectional_attention": True}
    config = Gemma3TextConfig(**sizes, **kind, num_key_value_heads=1, head_dim=8, vocab_size=9)
    model, ids = Gemma3TextModel(config).requires_grad_(False).eval(), torch.ones(2, 3, dtype=torch.int64)
    before = {name: ALL_MASK_ATTENTION_FUNCTIONS[name] for name in ("sdpa", "eager")}
    expected = model(ids, attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]))[0]
    with masks_without_vmap(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.allclose(model(ids, attention_mask=torch.tensor([[1, 1, 1], [1, 1, 0]]))[0], expected)
        traced = torch.jit.trace(lambda *inputs: model(*inputs)[0], (ids, torch.ones_like(ids)))
    assert torch.allclose(traced(ids, torch.tensor([[1, 1, 1], [1, 1, 0]])), expected, atol=1e-6)
    assert {name: ALL_MASK_ATTENTION_FUNCTIONS[name] for name in before} == before


def test_another_encoder_gets_the_features_that_it_asks_for(bert_path: Path) -> None:
    transformer = Transformer(str(bert_path))
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    encoder = _Curious(config)
    made = with_encoder(transformer, encoder)
    assert made.auto_model is encoder
    made.max_seq_length = 7
    assert transformer.max_seq_length == 64, "the tokenizer is another one"
    features = made.preprocess(["ba bei bo bun bis"], prompt="bo ")
    assert features["input_ids"].shape == (1, 7)
    assert made(features)["token_embeddings"].shape == (1, 7, 8)
    assert encoder.seen["prompt_length"] == 2
    assert "attention_mask" in encoder.seen
    assert "modality" not in encoder.seen
    assert type(transformer.auto_model) is type(AutoModel.from_pretrained(bert_path))
    assert transformer(transformer.preprocess(["ba"]))["token_embeddings"].shape[2] == 32


def test_attention_is_eager_for_a_while_and_then_as_before(bert_path: Path) -> None:
    encoder = encoder_of(SentenceTransformer(str(bert_path), device="cpu"))
    inputs = {"input_ids": torch.tensor([[2, 9, 3]]), "output_attentions": True}
    assert encoder.config._attn_implementation == "sdpa"
    with eager_attention(encoder):
        assert encoder.config._attn_implementation == "eager"
        assert encoder(**inputs).attentions[0].shape == (1, 4, 3, 3)
        with eager_attention(encoder):
            pass
        assert encoder.config._attn_implementation == "eager"
    assert encoder.config._attn_implementation == "sdpa"
    with pytest.raises(KeyError), eager_attention(encoder):
        raise KeyError
    assert encoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    ("own", "wanted", "reads"),
    [(64, None, 64), (64, 20, 20), (30, 50, 50), (4096, None, 64)],
)
def test_the_readable_length_is_what_is_wanted_or_set_within_the_positions(
    model: SentenceTransformer, own: int, wanted: int | None, reads: int
) -> None:
    model.max_seq_length = own
    assert readable_length(model, wanted) == reads


@pytest.mark.parametrize(
    ("length", "prompt", "budget"), [(4096, None, 62), (64, "ba bei: ", 59), (4, "ba bei bo bun bis", 1)]
)
def test_the_budget_is_within_the_positions_and_never_less_than_one_token(
    model: SentenceTransformer, length: int, prompt: str | None, budget: int
) -> None:
    model.max_seq_length = length
    assert view_budget(model, prompt) == budget


def stub(transformer: Any, max_seq_length: int | None = None) -> SentenceTransformer:
    """What the limits look at, without a tokenizer that each architecture would need."""
    return Stub([transformer], transformer, max_seq_length)  # type: ignore[return-value]


class Stub(list[Any]):
    """Modules, with what else of a model the limits look at."""

    def __init__(self, modules: list[Any], transformers_model: Any, max_seq_length: int | None) -> None:
        super().__init__(modules)
        self.transformers_model, self.max_seq_length = transformers_model, max_seq_length


SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 20}


@pytest.mark.parametrize(
    ("transformer", "reads"),
    [
        (lambda: BertModel(BertConfig(**SMALL, max_position_embeddings=40)), 40),
        (lambda: RobertaModel(RobertaConfig(**SMALL, max_position_embeddings=40, pad_token_id=1)), 38),
        (lambda: T5EncoderModel(T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)), None),
        (lambda: None, None),
    ],
    ids=["BERT", "RoBERTa", "T5", "no transformer"],
)
def test_positions_that_can_be_used(transformer: Any, reads: int | None) -> None:
    encoder = transformer()
    assert readable_tokens(stub(encoder)) == reads
    if encoder is not None and reads is not None:
        encoder.eval()
        with torch.no_grad():
            encoder(input_ids=torch.full((1, reads), 5))
            with pytest.raises((IndexError, RuntimeError)):
                encoder(input_ids=torch.full((1, reads + 1), 5))


def test_the_trainer_uses_the_gpu_that_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    arguments = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    arguments._n_gpu = 2
    use_one_gpu(arguments, "cuda:1")
    assert (arguments.device, arguments.n_gpu, arguments.train_batch_size) == (torch.device("cuda:1"), 1, 8)
    use_one_gpu(arguments, "cuda")
    assert arguments.device == torch.device("cuda:0")
    assert chosen == [torch.device("cuda:1"), torch.device("cuda:0")]
