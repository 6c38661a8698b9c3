"""Token ids to model inputs: what the model's own preprocessing gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from tokenizers_support import TOKENIZERS, byte_level, word_piece
from transformers import BertConfig, BertModel, DataCollatorWithFlattening, PreTrainedTokenizerFast

from simlte_st.data.token_inputs import TokenPreprocessor
from simlte_st.data.tokenized_document import TokenView, tokenize_document
from simlte_st.data.tokens import SentenceTokenizer
from simlte_st.data.views import whole
from simlte_st.errors import ConfigurationError, ModelError

SENTENCES = [["Ba bei.", "Bun kun, bo!"], ["Ba"], ["Ba bei bo bun. " * 30 + "Kun."], ["Naïve.", "Bo bo bo."]]


def make_model(folder: Path, tokenizer: PreTrainedTokenizerFast) -> SentenceTransformer:
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return SentenceTransformer(modules=[Transformer(str(folder))], device="cpu")


def views_of(model: SentenceTransformer) -> tuple[list[TokenView], list[str]]:
    """Views, and the same as texts."""
    encode = SentenceTokenizer(model.tokenizer)
    documents = [tokenize_document("d", sentences, [0], encode) for sentences in SENTENCES]
    views = [TokenView(document, whole(range(len(document.tokens)))) for document in documents]
    return views, [" ".join(sentences) for sentences in SENTENCES]


def check(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    for name, value in one.items():
        if torch.is_tensor(value):
            assert value.dtype == other[name].dtype
            assert torch.equal(value, other[name]), name
        else:
            assert value == other[name]
            assert type(value) is type(other[name])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_inputs_are_those_of_the_texts(tmp_path: Path, name: str) -> None:
    model = make_model(tmp_path, TOKENIZERS[name]())
    preprocess = TokenPreprocessor(model)
    views, texts = views_of(model)
    for prompt in (None, "ba bei: ", "Bo: "):
        check(preprocess(views, prompt=prompt), model.preprocess(texts, prompt=prompt))


@pytest.mark.parametrize("make", [word_piece, byte_level])
@pytest.mark.parametrize("side", ["left", "right"])
def test_sides_and_lengths_are_the_tokenizers(tmp_path: Path, make: Callable[[], Any], side: str) -> None:
    model = make_model(tmp_path, make())
    model.tokenizer.truncation_side = model.tokenizer.padding_side = side
    preprocess = TokenPreprocessor(model)
    views, texts = views_of(model)
    for length in (7, 12, 30):
        check(preprocess(views, max_length=length), model.preprocess(texts, max_length=length))
    for length in (3, 12, 48):  # looked up at each call
        model.max_seq_length = length
        check(preprocess(views), model.preprocess(texts))
        if length > 3:  # where the prompt has room
            check(preprocess(views, prompt="ba bei: "), model.preprocess(texts, prompt="ba bei: "))
    model.tokenizer.model_max_length = int(1e30)
    check(preprocess(views), model.preprocess(texts))


def test_a_limit_far_beyond_any_text(tmp_path: Path) -> None:
    tokenizer = word_piece()
    tokenizer.model_max_length = int(1e30)
    model = make_model(tmp_path, tokenizer)
    model.max_seq_length = int(1e30)
    views, texts = views_of(model)
    made = TokenPreprocessor(model)(views)
    check(made, model.preprocess(texts))
    assert made["input_ids"].shape[1] > 100


def test_padding_to_a_multiple(tmp_path: Path) -> None:
    model = make_model(tmp_path, word_piece())
    views, texts = views_of(model)
    made = TokenPreprocessor(model, pad_to_multiple_of=16)(views[:2], max_length=13)
    assert made["input_ids"].shape == (2, 16)
    encoded = model.tokenizer(texts[:2], truncation=True, max_length=13)
    wanted = model.tokenizer.pad(encoded, pad_to_multiple_of=16, return_tensors="pt")
    assert set(wanted) <= set(made)
    assert all(torch.equal(made[key], wanted[key]) for key in wanted)


def test_flattened_inputs(tmp_path: Path) -> None:
    """As under flash attention, where all texts are one row."""
    model = make_model(tmp_path, word_piece())
    transformer: Any = model[0]
    transformer.can_flatten_inputs = True
    transformer._flatten_position_offset = 2
    transformer.data_collator = DataCollatorWithFlattening(
        return_seq_idx=True, return_flash_attn_kwargs=True, return_position_ids=True
    )
    views, texts = views_of(model)
    made = TokenPreprocessor(model)(views, prompt="ba: ")
    assert "cu_seq_lens_q" in made
    assert made["position_ids"].min() == 2
    check(made, model.preprocess(texts, prompt="ba: "))


@pytest.mark.parametrize("prompt", ["query:", "query:  ", "query:\n", " ", "query:\t"])
def test_a_prompt_must_end_in_one_space(tmp_path: Path, prompt: str) -> None:
    model = make_model(tmp_path, word_piece())
    with pytest.raises(ConfigurationError, match="must end in one space"):
        TokenPreprocessor(model)(views_of(model)[0], prompt=prompt)


def test_tasks_are_not_for_tokens(tmp_path: Path) -> None:
    model = make_model(tmp_path, word_piece())
    with pytest.raises(ConfigurationError, match="task='query'"):
        TokenPreprocessor(model)(views_of(model)[0], task="query")


def test_a_model_that_makes_its_inputs_otherwise_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(tmp_path, word_piece())
    stock = model.preprocess
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda made: made.update(attention_mask=made["attention_mask"] + 1),
        lambda made: made.update(extra=torch.zeros(1)),
        lambda made: made.update(input_ids=made["input_ids"].int()),
        lambda made: made.pop("attention_mask"),
    ]
    for number, change in enumerate(changes):

        def preprocess(*arguments: Any, change: Any = change, **settings: Any) -> dict[str, Any]:
            made = dict(stock(*arguments, **settings))
            change(made)
            return made

        monkeypatch.setattr(model, "preprocess", preprocess)
        if number == 3:  # a model that wants no mask gets none
            assert "attention_mask" not in TokenPreprocessor(model)(views_of(model)[0])
        else:
            with pytest.raises(ModelError, match="do not reproduce"):
                TokenPreprocessor(model)
