"""Helpers that build tiny documents and models."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import PreTrainedTokenizerFast

WORDS = [f"{start}{end}" for start in "bcdfghklmnprstvw" for end in ("a", "ei", "o", "un", "is", "et", "al", "or")]
"""A made-up vocabulary of 128 words."""


def rounding(terms: int, values: torch.Tensor) -> float:
    """Return the largest difference between float32 sums that add the same numbers in different orders.

    The bound is for sequential sums on both sides of the comparison: each of ``terms`` additions rounds by half a unit
    in the last place of a partial sum, which is about as large as the largest of ``values``.
    """
    return terms * torch.finfo(torch.float32).eps * float(values.detach().abs().max())


def make_document(number: int, sentences: int = 12, words: int = 8) -> str:
    """Make a document with its own topic: half of its words come from a few frequent ones."""
    draw = random.Random(number)
    topic = draw.sample(WORDS, 6)
    texts = []
    for _ in range(sentences):
        chosen = [draw.choice(topic) if draw.random() < 0.5 else draw.choice(WORDS) for _ in range(words)]
        texts.append(" ".join(chosen).capitalize() + ".")
    return " ".join(texts)


def stock_model(folder: Path) -> SentenceTransformer:
    """Load a model as the stock class."""
    return SentenceTransformer(str(folder), device="cpu")


def watch(model: Any) -> list[tuple[int, int, int]]:
    """Record the texts, width and tokens of each pass."""
    notes: list[tuple[int, int, int]] = []

    def note(module: Any, inputs: Any) -> None:
        mask = inputs[0]["attention_mask"]
        notes.append((*mask.shape, int(mask.sum())))

    model[0].register_forward_pre_hook(note)
    return notes


def record_texts(model: Any) -> list[str]:
    """Record the texts that ``encode_document`` gets."""
    encoded: list[str] = []
    original = model.encode_document
    model.encode_document = lambda texts, **options: encoded.extend(texts) or original(texts, **options)
    return encoded


def flatten(features: dict[str, Any]) -> dict[str, Any]:
    """Return features without padding, with all texts in one row, as Transformer makes them for flash attention."""
    mask = features["attention_mask"].bool()
    lengths = mask.sum(dim=1)
    rows = {name: features[name][mask][None] for name in ("input_ids", "token_embeddings") if name in features}
    ends = torch.cat([torch.zeros(1, dtype=torch.int32), lengths.cumsum(0).int()])
    return {**rows, "cu_seq_lens_q": ends, "max_length_q": int(lengths.max())}


def load_encoder(folder: Path, *after: nn.Module, pooling: str = "mean", **options: Any) -> SentenceTransformer:
    """Load a checkpoint of 32 dimensions as a sentence encoder on the CPU."""
    modules = [Transformer(str(folder)), Pooling(32, pooling), *after]
    return SentenceTransformer(modules=modules, device="cpu", **options)


def write_texts(folder: Path, texts: Iterable[str]) -> Path:
    """Write each text to a file of a new folder: ``00.txt``, ``01.txt``, ..."""
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    return folder


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@contextmanager
def interrupt_at_rename(rename: int) -> Iterator[None]:
    """Interrupt the block with Ctrl-C before a rename, given by its number from 0."""
    replace, renamed = os.replace, []

    def replace_or_break(*paths: Any) -> None:
        if len(renamed) == rename:
            raise KeyboardInterrupt
        renamed.append(replace(*paths))

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        patch.setattr(os, "replace", replace_or_break)
        yield


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


def make_static_model(dimension: int = 32) -> SentenceTransformer:
    """Make a static model of the made-up words like model2vec's: a table, mean pooling, normalisation."""
    tokenizer = make_tokenizer().backend_tokenizer
    tokenizer.enable_truncation(8)  # as model2vec writes it, with 512 tokens
    table = torch.randn(tokenizer.get_vocab_size(), dimension, generator=torch.Generator().manual_seed(0))
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, table), Normalize()], device="cpu")


def write_model2vec(path: Path, model: SentenceTransformer, kind: str, modules: bool = True) -> np.ndarray:
    """Write a static model in model2vec's format and return the table that a loader should return.

    ``kind`` is the table's dtype, or ``"mapped"`` for a table with shared rows and a weight for each token.
    """
    path.mkdir(parents=True)
    table = model[0].embedding.weight.detach().numpy()
    tensors, loaded = {"embeddings": table.astype(np.float32 if kind == "mapped" else kind)}, table
    if kind == "int8":
        tensors = {"embeddings": np.round(table / np.abs(table).max() * 127).astype(np.int8)}
    loaded = tensors["embeddings"].astype(np.float32)
    if kind == "mapped":
        rows, weights = np.arange(len(table)) // 2, np.linspace(0.5, 2, len(table), dtype=np.float32)
        tensors |= {"mapping": rows, "weights": weights}
        loaded = table[rows] * weights[:, None]
    save_file(tensors, path / "model.safetensors")
    model.tokenizer.save(str(path / "tokenizer.json"))
    (path / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True, "max_length": 8}))
    if modules:
        kinds = {"StaticEmbedding": ".", "Normalize": "1_Normalize"}
        entries = [
            {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{name}"}
            for number, (name, place) in enumerate(kinds.items())
        ]
        (path / "modules.json").write_text(json.dumps(entries))
    return loaded


def as_fast(tokenizer: Tokenizer, max_length: int = 64) -> PreTrainedTokenizerFast:
    """Wrap a tokenizer with BERT's special tokens for transformers."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )


class Runs:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)
