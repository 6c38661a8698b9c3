"""What tests build their tiny documents and models from."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

WORDS = [f"{start}{end}" for start in "bcdfghklmnprstvw" for end in ("a", "ei", "o", "un", "is", "et", "al", "or")]
"""A made-up vocabulary of 128 words."""


def rounding(terms: int, values: torch.Tensor) -> float:
    """Return how far sums of float32 numbers may differ where another processor adds them in another order.

    The bound is that of a sum one by one: each of ``terms`` additions rounds by half a unit in the last place, on both
    sides of the comparison, of partial sums about as large as the largest of ``values``.
    """
    return terms * torch.finfo(torch.float32).eps * float(values.detach().abs().max())


def make_document(number: int, sentences: int = 12, words: int = 8) -> str:
    """Make a document about a topic of its own: half of its words come from a few that are frequent in it."""
    draw = random.Random(number)
    topic = draw.sample(WORDS, 6)
    texts = []
    for _ in range(sentences):
        chosen = [draw.choice(topic) if draw.random() < 0.5 else draw.choice(WORDS) for _ in range(words)]
        texts.append(" ".join(chosen).capitalize() + ".")
    return " ".join(texts)


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_tokenizer(words: list[str] = WORDS, max_length: int = 64) -> PreTrainedTokenizerFast:
    """Make a word-level BERT tokenizer."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: index for index, word in enumerate([*special, ".", ",", ":", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return as_fast(tokenizer, max_length)


class Runs:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def as_fast(tokenizer: Tokenizer, max_length: int = 64) -> PreTrainedTokenizerFast:
    """Wrap a tokenizer that has BERT's special tokens for transformers."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )
