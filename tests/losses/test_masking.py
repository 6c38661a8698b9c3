from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses.masking import IGNORE, TokenMasker

PAD, UNK, CLS, SEP, MASK = range(5)


@pytest.fixture
def tokenizer(bert_path: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(bert_path)


def batch(rows: list[list[int]], side: str = "right", **more: Any) -> dict[str, Any]:
    width = max(map(len, rows))
    empty = [[0] * (width - len(row)) for row in rows]
    right = side == "right"
    return {
        "input_ids": torch.tensor([row + e if right else e + row for row, e in zip(rows, empty, strict=True)]),
        "attention_mask": torch.tensor(
            [[1] * len(row) + e if right else e + [1] * len(row) for row, e in zip(rows, empty, strict=True)]
        ),
        **more,
    }


def flat(rows: list[list[int]], **more: Any) -> dict[str, Any]:
    ends = torch.tensor([0, *map(len, rows)]).cumsum(0).to(torch.int32)
    return {
        "input_ids": torch.tensor([[index for row in rows for index in row]]),
        "cu_seq_lens_q": ends,
        "cu_seq_lens_k": ends,
        **more,
    }


ROWS = [[CLS, 10, 11, 12, 13, SEP], [CLS, 20, SEP], [CLS, 30, UNK, 31, MASK, 32, 33, SEP]]


def chosen_ids(masker: TokenMasker, features: dict[str, Any]) -> list[int]:
    _, labels = masker(features)
    return labels[labels != IGNORE].tolist()


@pytest.mark.parametrize("prompt", [None, 0, 3, torch.tensor([3]), torch.tensor([3, 3, 3])], ids=str)
@pytest.mark.parametrize("form", ["right", "left", "flat"])
def test_special_tokens_padding_and_prompts_are_never_chosen(
    tokenizer: PreTrainedTokenizerBase, form: str, prompt: Any
) -> None:
    more = {} if prompt is None else {"prompt_length": prompt}
    features = flat(ROWS, **more) if form == "flat" else batch(ROWS, form, **more)
    masker = TokenMasker(tokenizer, 1.0)  # chooses all it may
    has_prompt = prompt is not None and bool(torch.as_tensor(prompt).any())
    # With a prompt of three tokens, [CLS] among them, what is left of each row begins at the fourth.
    expected = [12, 13, 31, 32, 33] if has_prompt else [10, 11, 12, 13, 20, 30, 31, 32, 33]
    for seed in range(5):
        torch.manual_seed(seed)
        assert chosen_ids(masker, features) == expected
    masked, labels = masker(features)
    assert masked.shape == labels.shape == features["input_ids"].shape
    assert masked.dtype == labels.dtype == torch.int64
    kept = labels == IGNORE
    assert torch.equal(masked[kept], features["input_ids"][kept])
    assert torch.equal(labels[~kept], features["input_ids"][~kept])


def test_padding_that_looks_like_a_word(tokenizer: PreTrainedTokenizerBase) -> None:
    features = batch(ROWS)
    features["input_ids"][features["attention_mask"] == 0] = 77  # the mask counts, not the id
    assert 77 not in chosen_ids(TokenMasker(tokenizer, 1.0), features)


def test_a_prompt_longer_than_a_text(tokenizer: PreTrainedTokenizerBase) -> None:
    for features in (batch(ROWS, prompt_length=9), flat(ROWS, prompt_length=9)):
        assert chosen_ids(TokenMasker(tokenizer, 1.0), features) == []


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_prompt_as_the_model_tokenizes_it(model: SentenceTransformer, documents: list[str], side: str) -> None:
    model.tokenizer.padding_side = side
    prompt = "ba bei bo un: "
    texts = ["Dun dis. Det.", documents[0], "Gal"]
    features = model.preprocess(texts, prompt=prompt)
    assert (features["attention_mask"] == 0).any()
    masker = TokenMasker(model.tokenizer, 1.0)
    plain = [model.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    length = features["prompt_length"]
    room = features["input_ids"].shape[1] - length - 1  # the long text is cut
    _, labels = masker(features)
    for row, ids in zip(labels, plain, strict=True):
        assert row[row != IGNORE].tolist() == [index for index in ids[:room] if index != UNK]
    without = model.preprocess(texts)
    assert len(chosen_ids(masker, without)) > len(chosen_ids(masker, features))


@pytest.mark.parametrize("probability", [0.15, 0.4])
def test_rates(tokenizer: PreTrainedTokenizerBase, probability: float) -> None:
    torch.manual_seed(0)
    size = (400, 500)
    ids = torch.randint(8, len(tokenizer), size)
    masked, labels = TokenMasker(tokenizer, probability)({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    chosen = labels != IGNORE
    total = int(chosen.sum())

    def close(share: float, expected: float, count: int) -> bool:
        return abs(share - expected) < 5 * (expected * (1 - expected) / count) ** 0.5

    assert close(total / ids.numel(), probability, ids.numel())
    became_mask = masked[chosen] == MASK
    stayed = masked[chosen] == ids[chosen]
    other = masked[chosen][~became_mask & ~stayed]
    vocabulary = len(tokenizer)
    # A random token is the mask token or the old one by chance, one time in the vocabulary each.
    assert close(became_mask.float().mean().item(), 0.8 + 0.1 / vocabulary, total)
    assert close(stayed.float().mean().item(), 0.1 + 0.1 / vocabulary, total)
    assert close(len(other) / total, 0.1 * (1 - 2 / vocabulary), total)
    # Random tokens come from the whole vocabulary, evenly; MASK itself is counted above.
    counts = torch.bincount(other, minlength=vocabulary)
    assert len(counts) == vocabulary
    expected = len(other) / (vocabulary - 1)
    kinds = [index for index in range(vocabulary) if index != MASK]
    chi_square = ((counts[kinds] - expected).square() / expected).sum().item()
    assert abs(chi_square - len(kinds)) < 6 * (2 * len(kinds)) ** 0.5
    # Every position alike.
    by_column = chosen.float().mean(0)
    assert (by_column - probability).abs().max() < 6 * (probability * (1 - probability) / size[0]) ** 0.5
    # Positions that were not chosen are as they were.
    assert torch.equal(masked[~chosen], ids[~chosen])
    assert torch.equal(labels[chosen], ids[chosen])


def test_features_are_not_changed(tokenizer: PreTrainedTokenizerBase) -> None:
    for features in (batch(ROWS, prompt_length=2), flat(ROWS, prompt_length=2)):
        before = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in features.items()}
        masked, _ = TokenMasker(tokenizer, 1.0)(features)
        assert features.keys() == before.keys()
        assert all(torch.equal(torch.as_tensor(features[n]), torch.as_tensor(v)) for n, v in before.items())
        masked.fill_(0)  # nor shared
        assert torch.equal(features["input_ids"], before["input_ids"])


def test_seeds(tokenizer: PreTrainedTokenizerBase) -> None:
    ids = torch.randint(8, 100, (20, 50))
    features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    masker = TokenMasker(tokenizer)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(masker(features))
    assert all(torch.equal(a, b) for a, b in zip(results[0], results[1], strict=True))
    assert not torch.equal(results[0][1], results[2][1])
    assert not torch.equal(masker(features)[1], masker(features)[1])  # another mask each time


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.01, float("nan")])
def test_bad_probabilities(tokenizer: PreTrainedTokenizerBase, probability: float) -> None:
    with pytest.raises(ConfigurationError, match="mlm_probability"):
        TokenMasker(tokenizer, probability)


def test_no_mask_token(tokenizer: PreTrainedTokenizerBase) -> None:
    tokenizer.mask_token = None
    with pytest.raises(ModelError, match="no mask token"):
        TokenMasker(tokenizer)
    with pytest.raises(ModelError, match="no mask token"):
        TokenMasker(tokenizer.backend_tokenizer)  # what a StaticEmbedding has
