"""Small encoders of several families, and the mean of chunk embeddings computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from support import make_tokenizer
from torch import Tensor
from torch.nn import functional
from transformers import AutoConfig, AutoModel, PretrainedConfig

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
# RoBERTa-like models number positions from the padding id, 0 here, plus one.
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": SIZES,
    "roberta": {**SIZES, "max_position_embeddings": 65},
    "mpnet": {**SIZES, "max_position_embeddings": 65},
    "electra": {**SIZES, "embedding_size": 20},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "modernbert": {**SIZES, "global_attn_every_n_layers": 2, "local_attention": 16},
}


def make_config(family: str, vocabulary: int, **settings: Any) -> PretrainedConfig:
    """Configure a small model of a family, with 64 positions by default and the ids of ``make_tokenizer``."""
    ids = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
    fields = {"max_position_embeddings": 64, "vocab_size": vocabulary, **FAMILIES.get(family, SIZES), **ids}
    return AutoConfig.for_model(family, **{**fields, **settings})


def make_model(
    folder: Path,
    family: str = "bert",
    pooling: str = "mean",
    normalize: bool = True,
    length: int = 24,
    include_prompt: bool = True,
    **settings: Any,
) -> SentenceTransformer:
    """Make a sentence encoder in eval mode on the CPU, with weights large enough to reveal a wrong token."""
    tokenizer = make_tokenizer()
    with torch.random.fork_rng():
        encoder = AutoModel.from_config(make_config(family, len(tokenizer), **settings))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in encoder.parameters():  # biases of 0 and norms of 1 would hide errors
            weight.add_(torch.randn(weight.shape, generator=generator) * (0.3 if weight.dim() > 1 else 0.1))
    encoder.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    transformer = Transformer(str(folder))
    transformer.max_seq_length = length
    modules: list[torch.nn.Module] = [transformer, Pooling(32, pooling, include_prompt=include_prompt)]
    if normalize:
        modules.append(Normalize())
    return SentenceTransformer(modules=modules, device="cpu").eval()


def by_hand(model: SentenceTransformer, text: str, chunk: int = 24, max_length: int = 4096, prompt: str = "") -> Tensor:
    """Encode each chunk separately with the original model and average the embeddings."""
    tokenizer = model.tokenizer
    prompt_ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    body = tokenizer(text, add_special_tokens=False)["input_ids"][: max_length - 2 - len(prompt_ids)]
    room = chunk - 2 - len(prompt_ids)
    pieces = [body[start : start + room] for start in range(0, max(1, len(body)), room)]
    vectors = []
    for piece in pieces:
        ids = torch.tensor([[tokenizer.cls_token_id, *prompt_ids, *piece, tokenizer.sep_token_id]])
        features: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if prompt:
            features["prompt_length"] = 1 + len(prompt_ids)
        vectors.append(model(features)["sentence_embedding"][0])
    shares = torch.tensor([float(max(1, len(piece))) for piece in pieces])
    mean = (torch.stack(vectors) * shares[:, None]).sum(0) / shares.sum()
    return functional.normalize(mean, dim=0) if isinstance(model[-1], Normalize) else mean
