"""Tiny models in place of this package's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from support import make_tokenizer

from simlte_st.models import shipped
from simlte_st.models.loading import load_model
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, DIFFERENCE_FILE, add_difference, make_untrained
from simlte_st.models.static import TOKENIZER, save_for_model2vec

BERT, LONGFORMER, STATIC = "simlte-bert", "simlte-longformer", "simlte-static"


def cosines(first: SentenceTransformer, second: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """Return the cosines between two models' embeddings of each text."""
    return torch.cosine_similarity(*(model.encode(texts, convert_to_tensor=True) for model in (first, second)))


def untrained_model(name: str, base: Path) -> SentenceTransformer:
    """Return the model before training, to which a difference is added."""
    return make_untrained(name, load_model(base, dtype=torch.float32, device="cpu").model)


def ship(name: str, start: Path, seed: int = 0, rank: int = 2) -> SentenceTransformer:
    """Install a random difference in place of the package's, and return the resulting model."""
    model = untrained_model(name, start)
    generator = torch.Generator().manual_seed(seed)
    factors = {}
    for key, weight in shipped.linear_weights(model).items():
        shape, size = weight.shape, (float(weight.detach().std()) / rank) ** 0.5
        factors[f"{key}.left"] = (torch.randn(shape[0], rank, generator=generator) * size).half()
        factors[f"{key}.right"] = (torch.randn(rank, shape[1], generator=generator) * size).half()
    folder = shipped.FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    save_file(factors, folder / DIFFERENCE_FILE)
    add_difference(model, folder / DIFFERENCE_FILE)
    (folder / CARD_FILE).write_text(f"# {name} {seed}\n", encoding="utf-8")
    (folder / BUILD_FILE).write_text(f'{{"seed": {seed}}}\n', encoding="utf-8")
    return model


def table(folder: Path) -> np.ndarray:
    """Return the token vectors of a static model."""
    return load_model(folder).model[0].embedding.weight.detach().numpy()


def ship_static(seed: int = 0) -> Path:
    """Install a random static model in place of the package's, and return its folder."""
    folder, tokenizer = shipped.FOLDER / STATIC, make_tokenizer().backend_tokenizer
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.random.default_rng(seed).standard_normal((tokenizer.get_vocab_size(), 12), dtype=np.float32)
    vectors[tokenizer.token_to_id("[UNK]")] = 0
    save_for_model2vec(folder, vectors * np.linspace(0.01, 1, len(vectors), dtype=np.float32)[:, None], "int8")
    tokenizer.save(str(folder / TOKENIZER))
    (folder / CARD_FILE).write_text(f"# {STATIC} {seed}\n", encoding="utf-8")
    (folder / BUILD_FILE).write_text(f'{{"seed": {seed}}}\n', encoding="utf-8")
    return folder
