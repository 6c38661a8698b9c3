from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from simlte_st.losses.masked_language_model import IGNORE, TokenMasker

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


def chosen_ids(masker: TokenMasker, features: dict[str, Any], number: int = 0) -> list[int]:
    _, labels = masker(features, (number,))
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
    for number in range(5):
        assert chosen_ids(masker, features, number) == expected
    masked, labels = masker(features, (0,))
    assert masked.shape == labels.shape == features["input_ids"].shape
    assert masked.dtype == labels.dtype == torch.int64
    kept = labels == IGNORE
    assert torch.equal(masked[kept], features["input_ids"][kept])
    assert torch.equal(labels[~kept], features["input_ids"][~kept])


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
    _, labels = masker(features, (0,))
    for row, ids in zip(labels, plain, strict=True):
        assert row[row != IGNORE].tolist() == [index for index in ids[:room] if index != UNK]
    without = model.preprocess(texts)
    assert len(chosen_ids(masker, without)) > len(chosen_ids(masker, features))


@pytest.mark.parametrize("probability", [0.15, 0.4])
def test_rates(tokenizer: PreTrainedTokenizerBase, probability: float) -> None:
    torch.manual_seed(0)
    size = (400, 500)
    ids = torch.randint(8, len(tokenizer), size)
    features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    masked, labels = TokenMasker(tokenizer, probability)(features, (0,))
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


def test_what_is_drawn_depends_on_the_seed_and_the_numbers(tokenizer: PreTrainedTokenizerBase) -> None:
    ids = torch.randint(8, 100, (20, 50))
    features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    state = torch.get_rng_state()
    first = TokenMasker(tokenizer, seed=1)(features, (3, 0))
    assert torch.equal(torch.get_rng_state(), state)
    again = TokenMasker(tokenizer, seed=1)(features, (3, 0))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    for seed, draw in ((2, (3, 0)), (1, (4, 0)), (1, (3, 1))):
        assert not torch.equal(first[1], TokenMasker(tokenizer, seed=seed)(features, draw)[1])


@pytest.mark.parametrize("form", ["right", "left", "flat"])
def test_a_row_is_masked_alike_whatever_is_beside_it(tokenizer: PreTrainedTokenizerBase, form: str) -> None:
    masker = TokenMasker(tokenizer, 0.5)
    rows = [[CLS, *range(start, start + length), SEP] for start, length in ((8, 30), (40, 5), (50, 17))]

    def masked(rows: list[list[int]]) -> list[list[int]]:
        features = flat(rows) if form == "flat" else batch(rows, form)
        real = torch.ones_like(features["input_ids"]) if form == "flat" else features["attention_mask"]
        ids, _ = masker(features, (0,))
        return [part.tolist() for part in ids[real.bool()].split([len(row) for row in rows])]

    together = masked(rows)
    assert together != rows
    assert together == [masked([row])[0] for row in rows]
    assert together == masked(rows[::-1])[::-1]
