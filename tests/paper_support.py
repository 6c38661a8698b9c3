"""Toy data sets, a random model and a tiny scale for the papers' experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from longformer_support import randomise
from sentence_transformers import SentenceTransformer
from support import load_encoder, make_document
from toy_sets_support import write_set, write_toy_sets

from benchmarks.grid.systems import SCALES

TINY = replace(
    SCALES["cpu"], seeds=(0,), corpus_documents=40, steps=2, batch_size=8, tokens=32, learning_rate=1e-3, read=48,
    train_documents=30, test_documents=30, head="logistic", draws=2, ablation_data=("20news",), redundancy_documents=4,
    attention_documents=3,
)  # fmt: skip


def load_random(folder: Path, seed: int = 0) -> SentenceTransformer:
    """Load a checkpoint as an encoder with [CLS] pooling and random weights, whose attention is far from uniform."""
    model = load_encoder(folder, pooling="cls").eval()
    randomise(model, seed)
    return model


def write_papers_sets(folder: Path) -> None:
    """Write two data sets with classes, papers, long documents and a corpus."""
    write_toy_sets(folder, sentences=12)
    texts: list[object] = [make_document(row % 3, sentences=5) + " " + make_document(row) for row in range(60)]
    labels: list[object] = ["abc"[row % 3] for row in range(60)]
    write_set(folder, "20newsgroups", text=texts, label=labels, split=["train", "test"] * 30)
    write_set(folder, "bbc", text=texts[::-1], label=labels[::-1])
    articles = [make_document(number, sentences=6) for number in range(60)]
    write_set(folder, "enwiki2014", id=[*map(str, range(60))], text=[*articles])
