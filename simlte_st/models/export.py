"""Encoders as ONNX graphs, which run without torch: ``simlte export``."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from simlte_st.arguments import checked
from simlte_st.errors import ModelError
from simlte_st.extras import check_installed, require
from simlte_st.files import EXPORT_FILE, atomic_path, check_free, write_json
from simlte_st.models.names import shown_base
from simlte_st.models.onnx_encoder import GRAPH_FILE, OnnxEncoder, prompt_tokens
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

OPSET = 17
"""Version of ONNX's operators: the first with layer normalization."""

TOLERANCE = 1e-4
"""Largest difference between an exported vector and the model's, as a share of its length; rounding is below 1e-6."""


@dataclass(frozen=True)
class Exported:
    """What :func:`export_onnx` wrote.

    Attributes:
        output: The folder.
        dimension: Size of a vector.
        bytes: Size of the graph on the disk.
        error: Largest difference between a vector of the float32 graph and the model's, as a share of its length, on
            made-up texts of all lengths.
        int8_cosine: Lowest cosine between a vector of the quantised graph and the model's on the same texts; None if
            nothing was quantised.
    """

    output: Path
    dimension: int
    bytes: int
    error: float
    int8_cosine: float | None


@checked
def export_onnx(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    int8: bool = False,
    overwrite: bool = False,
) -> Exported:
    """Write a model as an ONNX graph with its tokenizer, settings and a card, after comparing their vectors.

    The graph computes embeddings of token ids, for batches and lengths of any size: encoder, pooling, and all modules
    behind it. Longformers and models that read in chunks cannot be exported: use them in torch.

    Args:
        model: The model: a folder or a name; see :func:`~simlte_st.models.names.find_model`.
        output: The folder to write.
        int8: Quantise the encoder to 8 bits: a quarter of the size, and slightly different vectors.
        overwrite: Overwrite an existing export.

    Returns:
        What was written.

    Raises:
        ModelError: The model cannot be loaded, its tokenizer or modules cannot be exported, or the graph does not
            compute the same vectors.
        ConfigurationError: Something else is at the output.
        MissingExtraError: onnx and onnxruntime are not installed (extra ``onnx``).
    """
    for package in ("onnx", "onnxruntime"):
        check_installed(package, "onnx", "exporting to ONNX")
    target, name = Path(output), os.fspath(model)
    check_free(target, overwrite, EXPORT_FILE)

    import torch

    from simlte_st.models.cards import export_card
    from simlte_st.models.loading import load_model, without_queries

    loaded = without_queries(load_model(name, dtype=torch.float32, device="cpu"), "exported").model.eval()
    with atomic_path(target) as path:
        path.mkdir()
        _check_exportable(loaded, name)
        settings = _settings(loaded)
        tokenizer = _save_tokenizer(loaded, name, path)
        texts = _texts(loaded)
        _write(loaded, name, path / GRAPH_FILE)
        write_json(path / EXPORT_FILE, settings)
        vectors, expected = _compare(path, loaded, texts)
        error = float((np.linalg.norm(vectors - expected, axis=1) / np.linalg.norm(expected, axis=1)).max())
        if not error <= TOLERANCE:
            raise ModelError(
                f"The model {name!r} cannot be exported: its graph computes other vectors (they differ by {error:.1e} "
                "of their length). One of its modules makes decisions that depend on the data."
            )
        cosine = None
        if int8:
            _quantise(path / GRAPH_FILE)
            vectors, expected = _compare(path, loaded, texts)
            sizes = np.linalg.norm(vectors, axis=1) * np.linalg.norm(expected, axis=1)
            cosine = float(((vectors * expected).sum(1) / sizes).min())
        prompt = document_prompt(loaded)
        before = prompt_tokens(tokenizer, prompt)
        card = export_card(target.name, shown_base(name), settings, prompt, before, error, cosine)
        (path / "README.md").write_text(card, encoding="utf-8")
        size = (path / GRAPH_FILE).stat().st_size
    return Exported(target, settings["dimension"], size, error, cosine)


def _check_exportable(model: SentenceTransformer, name: str) -> None:
    from sentence_transformers.base.modules import Transformer

    from simlte_st.models.static import is_static

    if is_static(model):
        raise ModelError(
            f"The model {name!r} is a table of token vectors, which needs no graph: model2vec.StaticModel and "
            "sentence-transformers load its folder as it is."
        )
    first: Any = model[0]
    if type(first) is not Transformer or first.config.model_type in ("longformer", "simlte_longformer"):
        kind = first.config.model_type if type(first) is Transformer else type(first).__name__
        raise ModelError(
            f"The model {name!r} begins with {kind}, which cannot be exported: only stock encoders such as BERT can. "
            "Use it with sentence-transformers, or export simlte-bert."
        )


def _write(model: SentenceTransformer, name: str, path: Path) -> None:
    """Trace a model into a file, as a function of three tensors; unused ones are left out."""
    import torch

    from simlte_st.compat import masks_without_vmap
    from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder: Any = model[0].auto_model
            self.after = torch.nn.ModuleList(list(model)[1:])

        def forward(self, input_ids: Tensor, attention_mask: Tensor, content_mask: Tensor) -> Tensor:
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
            features: dict[str, Any] = {"input_ids": input_ids}
            features["token_embeddings"] = states if isinstance(states, torch.Tensor) else states[0]
            for module in self.after:
                without_prompt = isinstance(module, LatentSemanticAnalysis)
                without_prompt = without_prompt or not getattr(module, "include_prompt", True)
                features["attention_mask"] = content_mask if without_prompt else attention_mask
                features = module(features)
            embedding: Tensor = features["sentence_embedding"]
            return embedding[:, : model.truncate_dim]

    ids, inputs = torch.ones(2, 32, dtype=torch.int64), ["input_ids", "attention_mask", "content_mask"]
    axes = {each: {0: "batch", 1: "length"} for each in inputs}
    try:
        with warnings.catch_warnings(), torch.no_grad(), masks_without_vmap():
            warnings.simplefilter("ignore")  # of decisions while tracing; the vectors are compared afterwards
            torch.onnx.export(
                Graph().eval(),
                (ids, torch.ones_like(ids), torch.ones_like(ids)),
                str(path),
                dynamo=False,
                opset_version=OPSET,
                input_names=inputs,
                output_names=["sentence_embedding"],
                dynamic_axes={**axes, "sentence_embedding": {0: "batch"}},
            )
    except Exception as error:  # torch raises many kinds, and modules their own
        raise ModelError(f"The model {name!r} cannot be written as a graph: {str(error).splitlines()[0]}") from error


def _save_tokenizer(model: SentenceTransformer, name: str, path: Path) -> Tokenizer:
    """Save the tokenizer with the truncation and padding that the graph needs, and return it."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"The model {name!r} has a tokenizer in Python, which needs transformers: use a fast one.")
    tokenizer = Tokenizer.from_str(backend.to_str())
    if model.max_seq_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(model.max_seq_length)
    tokenizer.enable_padding(pad_id=model.tokenizer.pad_token_id, pad_token=str(model.tokenizer.pad_token))
    tokenizer.save(str(path / "tokenizer.json"))
    return tokenizer


def _settings(model: SentenceTransformer) -> dict[str, Any]:
    """Return what ``export.json`` holds."""
    return {
        "dimension": model.get_embedding_dimension(),
        "max_length": model.max_seq_length,
        "prompts": {name: prompt for name, prompt in model.prompts.items() if prompt},
        "default_prompt_name": model.default_prompt_name,
        "pad_id": model.tokenizer.pad_token_id,
        "split_special_tokens": bool(model.tokenizer.split_special_tokens),
    }


def _texts(model: SentenceTransformer) -> list[str]:
    """Return random texts of all lengths that the model reads."""
    vocabulary = sorted(word.strip("\u2581\u0120") for word in model.tokenizer.get_vocab())
    words = [word for word in vocabulary if word.isascii() and word.isalpha()] or ["a"]
    draw = Random(0)
    longest = 700 if model.max_seq_length is None else int(0.8 * model.max_seq_length)
    lengths = [length for length in (0, 1, 7, 40, 150, 700) if length < longest]
    return [" ".join(draw.choices(words, k=length)) for length in (*lengths, longest)]


def _compare(path: Path, model: SentenceTransformer, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Encode texts with the graphs and with the model; short ones also with each prompt and with a made-up one."""
    encoder, mine, theirs = OnnxEncoder(path), [], []
    for prompt in ("", texts[1] + ": ", *encoder.settings["prompts"].values()):
        chosen = texts[:4] if prompt else texts
        mine.append(encoder.encode(chosen, prompt=prompt))
        theirs.append(np.asarray(model.encode(chosen, prompt=prompt, show_progress_bar=False)))
    return np.concatenate(mine), np.concatenate(theirs)


def _quantise(path: Path) -> None:
    """Quantise the encoder's part of a graph in its file."""
    onnx: Any = require("onnx", "onnx", "quantisation")
    quantization: Any = require("onnxruntime.quantization", "onnx", "quantisation")
    others = [node.name for node in onnx.load(str(path)).graph.node if "/after." in node.name]
    small = str(path.with_name(f"{path.name}.int8"))
    quantization.quantize_dynamic(
        str(path), small, weight_type=quantization.QuantType.QInt8, per_channel=True, nodes_to_exclude=others
    )
    os.replace(small, path)
