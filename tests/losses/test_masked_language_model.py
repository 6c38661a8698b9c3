from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from chunk_mean_support import FAMILIES, make_config
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import BoW, StaticEmbedding
from support import flatten, load_encoder, rounding
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerBase

from simlte_st.compat import get_encoder
from simlte_st.errors import ModelError
from simlte_st.losses.base import IGNORE
from simlte_st.losses.masked_language_model import TokenMasker, chunked_cross_entropy, make_mlm_head

KINDS: dict[str, dict[str, Any]] = {
    **FAMILIES,
    "bert": {**FAMILIES["bert"], "hidden_act": "relu"},
    "distilbert": {**FAMILIES["distilbert"], "activation": "relu"},
    "longformer": {**FAMILIES["roberta"], "attention_window": 8},
    **dict.fromkeys(("xlm-roberta", "camembert"), FAMILIES["roberta"]),
}
TEXTS = ["Ba bei bo, cun dis.", "Let lal gor hun tis wet wal. Ba, bei."]


def save_checkpoint(path: Path, tokenizer_path: Path, kind: str, headless: bool = False, **settings: Any) -> Path:
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_path)
    config = make_config(kind, len(tokenizer), **KINDS[kind], **settings)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        masked_lm = AutoModelForMaskedLM.from_config(config)
        with torch.no_grad():
            for value in masked_lm.parameters():  # biases of 0 and norms of 1 hide errors
                value.add_(torch.randn_like(value) * 0.2)
    (masked_lm.base_model if headless else masked_lm).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def stock_logits(path: Path, features: dict[str, Any]) -> torch.Tensor:
    masked_lm = AutoModelForMaskedLM.from_pretrained(path).eval()
    return masked_lm(input_ids=features["input_ids"], attention_mask=features["attention_mask"]).logits


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("kind", KINDS)
def test_pretrained_head_gives_the_stock_logits(kind: str, tied: bool, bert_path: Path, tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / kind, bert_path, kind, tie_word_embeddings=tied)
    masked_lm = AutoModelForMaskedLM.from_pretrained(path)
    shared = torch.equal(masked_lm.get_input_embeddings().weight, masked_lm.get_output_embeddings().weight)
    assert shared is tied  # otherwise the two cases would be the same
    model = load_encoder(path).eval()
    state = torch.get_rng_state()
    head = make_mlm_head(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert head.pretrained
    assert (head.decoder is None) is tied

    features = model.preprocess(TEXTS)
    real = features["attention_mask"].bool()
    assert not real.all()
    expected = stock_logits(path, features)[real]
    words = get_encoder(model).get_input_embeddings().weight
    logits = head(model(features)["token_embeddings"][real], words)
    assert logits.shape == (int(real.sum()), len(words))
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)

    sizes = {tuple(parameter.shape) for parameter in head.parameters()}
    assert (tuple(words.shape) in sizes) is not tied
    logits.logsumexp(1).sum().backward()
    assert all(parameter.grad is not None for parameter in head.parameters())
    value = head(torch.randn(3, model[0].get_embedding_dimension()), words).square().sum()
    [gradient] = torch.autograd.grad(value, words, allow_unused=True)
    assert (gradient is not None and bool(gradient.any())) is tied


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_without_a_head_gets_a_fresh_one(
    kind: str, bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_checkpoint(tmp_path / kind, bert_path, kind, headless=True)
    model = load_encoder(path).eval()
    state = torch.get_rng_state()
    with caplog.at_level(logging.INFO, "simlte_st"):
        head = make_mlm_head(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert not head.pretrained
    assert "Using a new MLM head" in caplog.text
    with pytest.raises(ModelError, match=r"MLM head.* no '.*fresh"):
        make_mlm_head(model, "pretrained")

    features = model.preprocess(TEXTS)
    words = get_encoder(model).get_input_embeddings().weight
    logits = head(model(features)["token_embeddings"].flatten(0, 1), words)
    assert logits.shape[1] == len(words) == head.bias.numel()
    assert logits.isfinite().all()
    assert logits.std() > 0


def test_fresh_head_depends_only_on_the_seed(model: SentenceTransformer) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = make_mlm_head(model, "fresh", seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    second = make_mlm_head(model, "fresh", seed=5)
    other = make_mlm_head(model, "fresh", seed=6)
    assert first.state_dict().keys() == second.state_dict().keys()
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())
    assert not torch.equal(first.dense.weight, other.dense.weight)
    assert 0.015 < first.dense.weight.std() < 0.025  # the configuration's initializer_range is 0.02
    assert not first.dense.bias.any()
    assert not first.bias.any()
    assert (first.norm.weight == 1).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda tokenizer: StaticEmbedding(tokenizer.backend_tokenizer, embedding_dim=8),
        lambda tokenizer: BoW(vocab=["ba", "bei"]),
    ],
    ids=["static", "bag of words"],
)
def test_mlm_needs_a_transformer(make: Callable[[Any], nn.Module], bert_path: Path) -> None:
    model = SentenceTransformer(modules=[make(AutoTokenizer.from_pretrained(bert_path))], device="cpu")
    name = re.escape(type(model[0]).__name__)
    for source in ("auto", "pretrained", "fresh"):
        with pytest.raises(ModelError, match=rf"begins with {name}.*mlm_weight=0"):
            make_mlm_head(model, source)  # type: ignore[arg-type]


# The library's log messages.


PAD, UNK, CLS, SEP, MASK = range(5)


@pytest.fixture
def tokenizer(bert_path: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(bert_path)


def batch(rows: list[list[int]], side: str = "right", **more: Any) -> dict[str, Any]:
    padded = [(row, [PAD] * (max(map(len, rows)) - len(row))) for row in rows]
    ids = torch.tensor([row + empty if side == "right" else empty + row for row, empty in padded])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), **more}


ROWS = [[CLS, 10, 11, 12, 13, SEP], [CLS, 20, SEP], [CLS, 30, UNK, 31, MASK, 32, 33, SEP]]


def chosen_ids(masker: TokenMasker, features: dict[str, Any], number: int = 0) -> list[int]:
    _, labels = masker(features, (number,))
    return labels[labels != IGNORE].tolist()


@pytest.mark.parametrize("prompt", [None, 0, 3, torch.tensor([3]), torch.tensor([3, 3, 3])], ids=str)
@pytest.mark.parametrize("form", ["right", "left", "flat"])
def test_special_tokens_padding_and_prompts_stay(tokenizer: PreTrainedTokenizerBase, form: str, prompt: Any) -> None:
    more = {} if prompt is None else {"prompt_length": prompt}
    features = {**flatten(batch(ROWS)), **more} if form == "flat" else batch(ROWS, form, **more)
    masker = TokenMasker(tokenizer, 1.0)  # selects all tokens that may be selected
    has_prompt = prompt is not None and bool(torch.as_tensor(prompt).any())
    # With a prompt of three tokens, including [CLS], the rest of each row begins at the fourth.
    expected = [12, 13, 31, 32, 33] if has_prompt else [10, 11, 12, 13, 20, 30, 31, 32, 33]
    for number in range(5):
        assert chosen_ids(masker, features, number) == expected
    masked, labels = masker(features, (0,))
    assert masked.shape == labels.shape == features["input_ids"].shape
    assert masked.dtype == labels.dtype == torch.int64
    kept = labels == IGNORE
    assert torch.equal(masked[kept], features["input_ids"][kept])
    assert torch.equal(labels[~kept], features["input_ids"][~kept])


@pytest.mark.parametrize("probability", [0.15, 0.4])
def test_masking_rates(tokenizer: PreTrainedTokenizerBase, probability: float) -> None:
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
    # A random token equals the mask token or the old one with probability 1 / vocabulary size.
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
    # All positions are equally likely.
    by_column = chosen.float().mean(0)
    assert (by_column - probability).abs().max() < 6 * (probability * (1 - probability) / size[0]) ** 0.5
    # Positions that were not chosen are as they were.
    assert torch.equal(masked[~chosen], ids[~chosen])
    assert torch.equal(labels[chosen], ids[chosen])


def test_masks_depend_only_on_seed_and_numbers(tokenizer: PreTrainedTokenizerBase) -> None:
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
def test_masks_do_not_depend_on_other_rows(tokenizer: PreTrainedTokenizerBase, form: str) -> None:
    masker = TokenMasker(tokenizer, 0.5)
    rows = [[CLS, *range(start, start + length), SEP] for start, length in ((8, 30), (40, 5), (50, 17))]

    def masked(rows: list[list[int]]) -> list[list[int]]:
        features = flatten(batch(rows)) if form == "flat" else batch(rows, form)
        real = torch.ones_like(features["input_ids"]) if form == "flat" else features["attention_mask"]
        ids, _ = masker(features, (0,))
        return [part.tolist() for part in ids[real.bool()].split([len(row) for row in rows])]

    together = masked(rows)
    assert together != rows
    assert together == [masked([row])[0] for row in rows]
    assert together == masked(rows[::-1])[::-1]


TOKENS, SIZE, VOCABULARY = 37, 12, 50


def inputs(dtype: torch.dtype = torch.float32, tokens: int = TOKENS) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return (torch.randn(*shape, generator=generator) * 2).to(dtype).requires_grad_()

    targets = torch.randint(VOCABULARY, (tokens,), generator=generator)
    return draw(tokens, SIZE), draw(VOCABULARY, SIZE), draw(VOCABULARY), targets


def plain(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    logits = functional.linear(hidden, weight, bias)
    return functional.cross_entropy(logits.float() if logits.dtype.itemsize < 4 else logits, targets, reduction="sum")


def assert_close(first: Tensor, second: Tensor) -> None:
    """Compare up to rounding: the longest sums run over the vocabulary."""
    torch.testing.assert_close(first, second, rtol=0, atol=rounding(VOCABULARY, second))


@pytest.mark.parametrize("chunk_size", [1, 8, 37, 1000])
@pytest.mark.parametrize("with_bias", [True, False])
def test_chunked_cross_entropy_matches_full_logits(chunk_size: int, with_bias: bool) -> None:
    hidden, weight, bias, targets = inputs()
    leaves = [hidden, weight, bias] if with_bias else [hidden, weight]
    optional = bias if with_bias else None
    expected = plain(hidden, weight, optional, targets)
    found = chunked_cross_entropy(hidden, weight, optional, targets, chunk_size)
    assert_close(found, expected)
    # Part of a larger sum, so that its incoming gradient is not 1.
    pair = (torch.autograd.grad(0.3 * value, leaves) for value in (found, expected))
    for ours, theirs in zip(*pair, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("grad", [True, False])
def test_chunked_cross_entropy_under_autocast(grad: bool) -> None:
    hidden, weight, bias, targets = inputs()
    with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype=torch.bfloat16):
        found = chunked_cross_entropy(hidden, weight, bias, targets, 8)
        expected = plain(hidden, weight, bias, targets)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=1e-3)
    exact = plain(hidden, weight, bias, targets)
    assert found.item() != exact.item()
    if grad:
        ours = torch.autograd.grad(found, [hidden, weight, bias])
        theirs = torch.autograd.grad(exact, [hidden, weight, bias])
        for first, second in zip(ours, theirs, strict=True):
            assert first.dtype == torch.float32
            assert (first - second).norm() < 0.02 * second.norm()


class Sizes(TorchDispatchMode):
    """Records the number of rows of each matrix as wide as the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.ndim == 2 and result.shape[1] == VOCABULARY:
            self.rows.add(result.shape[0])
        return result


def test_only_one_chunk_of_logits_is_computed_at_once() -> None:
    hidden, weight, bias, targets = inputs()
    with Sizes() as sizes:
        chunked_cross_entropy(hidden, weight, bias, targets, 8).backward()
    assert sizes.rows <= {8, TOKENS % 8, 1, SIZE}  # the last two are the bias and the weight, transposed
    assert 8 in sizes.rows
    with Sizes() as sizes:
        plain(hidden, weight, bias, targets).backward()
    assert TOKENS in sizes.rows
