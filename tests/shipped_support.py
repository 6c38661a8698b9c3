"""Tiny models in the place of those that ship."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.models import shipped
from simlte_st.models.difference import DIFFERENCE_FILE, take_difference, write_difference
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, untrained
from simlte_st.training.lora import add_lora, merge_lora

BERT, LONGFORMER = "simlte-bert", "simlte-longformer"


def cosines(first: SentenceTransformer, second: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """Compare what two models make of the same texts, one by one."""
    return torch.cosine_similarity(*(model.encode(texts, convert_to_tensor=True) for model in (first, second)))


def trained(model: SentenceTransformer, rank: int, seed: int = 0) -> SentenceTransformer:
    """Train LoRA of a rank for some steps: two texts shall lie far from each other."""
    pytest.importorskip("peft")
    add_lora(model, rank, seed=seed)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=0.01)
    for _ in range(4):
        vectors = model(model.preprocess(["Ba bei bo.", "Dun dal dor."]))["sentence_embedding"]
        torch.cosine_similarity(*vectors, dim=0).backward()
        optimizer.step()
        optimizer.zero_grad()
    merge_lora(model)
    return model


def ship(name: str, start: Path, seed: int = 0, rank: int = 2) -> SentenceTransformer:
    """Put a difference where those of the package are; give the model that it was taken from."""
    model = trained(untrained(name, start), rank, seed)
    folder = shipped.FOLDER / name
    write_difference(folder / DIFFERENCE_FILE, take_difference(untrained(name, start), model, rank), {"rank": rank})
    (folder / CARD_FILE).write_text(f"# {name} {seed}\n", encoding="utf-8")
    (folder / BUILD_FILE).write_text(f'{{"seed": {seed}}}\n', encoding="utf-8")
    return model
