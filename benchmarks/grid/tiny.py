"""Data sets, corpus and base that fit a test: made on the spot, of sentences from a grammar of a few words."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from benchmarks.grid.sets import CLASSIFICATION, CORPUS, SHARED
from simlte_st.files import atomic_path, write_json

TOPICS = {
    "ships": ("ship harbour captain sail anchor deck", "sails docks sinks"),
    "courts": ("judge lawyer trial verdict witness law", "rules appeals argues"),
    "farms": ("farmer field tractor harvest wheat barn", "plants reaps ploughs"),
    "music": ("singer concert guitar album melody band", "sings plays records"),
}
"""Nouns and verbs of each class."""

COMMON_NOUNS = ["man", "woman", "day", "year", "city", "house", "road", "letter"]
COMMON_VERBS = ["sees", "finds", "takes", "brings"]
ADJECTIVES = ["old", "new", "small", "great", "quiet", "long"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def vocabulary() -> list[str]:
    """List all words."""
    own = [word for nouns, verbs in TOPICS.values() for word in f"{nouns} {verbs}".split()]
    return [*SPECIAL, ".", "the", "a", "and", "in", *COMMON_NOUNS, *COMMON_VERBS, *ADJECTIVES, *own]


def document(topic: str, number: int, sentences: int = 8) -> str:
    """Write a document; half of its words are its topic's."""
    draw = Random(f"{topic} {number}")
    nouns, verbs = (part.split() for part in TOPICS[topic])

    def noun() -> str:
        return draw.choice(nouns if draw.random() < 0.5 else COMMON_NOUNS)

    written = []
    for index in range(sentences):
        verb = draw.choice(verbs if draw.random() < 0.5 else COMMON_VERBS)
        sentence = (
            f"The {draw.choice(ADJECTIVES)} {noun()} {verb} the {noun()} in a {draw.choice(ADJECTIVES)} {noun()}."
        )
        written.append(sentence + ("\n\n" if index % 3 == 2 else " "))
    return "".join(written).strip()


def make(folder: Path) -> tuple[Path, Path]:
    """Make everything, once."""
    if not folder.exists():
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            _make_sets(temporary)
            _make_base(temporary / "base")
    return folder, folder / "base"


def _make_sets(folder: Path) -> None:
    topics = list(TOPICS)

    def table(name: str, rows: list[dict[str, Any]]) -> None:
        pq.write_table(pa.Table.from_pylist(rows), folder / name)

    for order, name in enumerate(CLASSIFICATION):
        used = topics[: 2 + order % 3]
        rows = [
            {"text": document(used[number % len(used)], 1000 * order + number), "label": used[number % len(used)]}
            for number in range(60)
        ]
        if name == "20news":
            rows = [{**row, "split": ("train", "test")[number // 30]} for number, row in enumerate(rows)]
        table(SHARED[name], rows)
    table(CORPUS, [{"id": str(n), "text": document(topics[n % 4], 10_000 + n, 6)} for n in range(160)])
    # Papers cite their neighbours of the same topic.
    table(SHARED["aan"], [{"id": f"P{n}", "text": document(topics[n % 4], 20_000 + n)} for n in range(48)])
    links = [(n, (n + 4 * step) % 48) for n in range(48) for step in (1, 2, 5)]
    table("aan_citations.parquet", [{"citing": f"P{a}", "cited": f"P{b}"} for a, b in links])
    table(SHARED["lee"], [{"text": document(topics[n % 4], 30_000 + n, 3)} for n in range(12)])
    judged = [
        [1.0 if a == b else 0.8 - abs(a - b) / 50 if a % 4 == b % 4 else 0.1 for b in range(12)] for a in range(12)
    ]
    write_json(folder / "lee_similarities_50x50.json", judged)
    for order, name in enumerate(("brown", "sotu")):
        table(SHARED[name], [{"text": document(topics[n % 4], 40_000 + 100 * order + n, 40)} for n in range(4)])


def _make_base(folder: Path) -> None:
    words = {word: index for index, word in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=len(words),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=64,
            )
        )
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    ).save_pretrained(folder)
