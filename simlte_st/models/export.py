"""Export models for use without torch: encoders to ONNX, static models to model2vec (``simlte export``)."""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import check_installed, require
from simlte_st.files import EXPORT_FILE, MODEL_FILE, atomic_path, check_free, read_json, write_json
from simlte_st.models.names import OWN_MODELS, OWN_STATIC, find_model, shown_base
from simlte_st.models.onnx_encoder import GRAPH_FILE, OnnxEncoder, prompt_tokens
from simlte_st.models.onnx_encoder import load_onnx as load_onnx
from simlte_st.models.samples import check_vectors, sample_texts
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

logger = logging.getLogger(__name__)

OPSET = 17
"""ONNX operator set version: the first with layer normalization. Versions 18 to 21 compute the same vectors."""

TOLERANCE = 1e-4
"""Largest accepted difference between an exported encoder's vectors and the original model's, relative to their length;
rounding causes less than 1e-6."""

MIN_COSINE = 0.99
"""Lowest accepted cosine between an exported static model's vectors and the original model's; 8 bits reach 0.999."""

MIN_NORM_SHARE = 0.8
"""Fraction of a vector's length below which a warning is logged. With 128 of its 256 dimensions, simlte-static keeps
0.90 of the length, and document cosines change by at most 0.08; with 64, it keeps 0.69, and they change by up to
0.20."""


@dataclass(frozen=True)
class Exported:
    """Result of :func:`export_model`.

    Attributes:
        output: The exported folder.
        format: ``"onnx"`` or ``"model2vec"``.
        dimension: Dimension of the vectors.
        cosine: Lowest cosine between the export's vectors and the model's, in the same dimensions, on synthetic texts
            of all lengths.
        bytes: Size of the weights on disk.
    """

    output: Path
    format: str
    dimension: int
    cosine: float
    bytes: int


@check_arguments
def export_model(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    dtype: Literal["float32", "float16", "int8"] = "float32",
    dimension: Count | None = None,
    overwrite: bool = False,
) -> Exported:
    """Export a model for use without torch, check its vectors, and write a card that shows how to use it.

    An encoder becomes an ONNX graph with its tokenizer and settings. The graph includes pooling and all modules after
    it, for any batch size and length. Longformers and models that read in chunks cannot be exported: use them with
    torch. A static model becomes a folder that model2vec and stock sentence-transformers load.

    Args:
        model: Folder or name of the model; see :func:`~simlte_st.models.names.find_model`.
        output: The folder to write.
        dtype: Data type of the weights. int8 needs a quarter of the space of float32 and changes the vectors slightly.
            float16 is for static models only.
        dimension: Number of principal axes to keep; static models only (default: all dimensions). A warning is logged
            if vectors lose too much of their length.
        overwrite: Whether to overwrite an existing export.

    Returns:
        The folder, and how closely its vectors match the model's.

    Raises:
        ModelError: The model cannot be loaded, its tokenizer or modules cannot be exported, or the export computes
            different vectors.
        ConfigurationError: The output exists and is not an export, or an argument does not fit the model.
        MissingExtraError: The ``onnx`` extra (for an encoder) or the ``static`` extra (for a static model) is not
            installed.

    Example:
        ::

            from simlte_st.models.export import export_model

            export_model("my-model", "my-model-onnx", dtype="int8")
    """
    target, name = Path(output), os.fspath(model)
    static, loaded = _is_static_folder(name), None
    if static is None:
        loaded = _load(name)
        static = loaded.transformers_model is None
    for package in ("model2vec",) if static else ("onnx", "onnxruntime"):
        check_installed(package, "static" if static else "onnx", f"exporting {name!r}")
    check_free(target, overwrite, MODEL_FILE if static else EXPORT_FILE)

    from simlte_st.models.static import WEIGHTS

    loaded = _load(name) if loaded is None else loaded
    write = _write_static if static else _write_encoder
    with atomic_path(target) as path:
        path.mkdir()
        size, cosine = write(loaded, name, path, dtype, dimension)
    space = (target / (WEIGHTS if static else GRAPH_FILE)).stat().st_size
    return Exported(target, "model2vec" if static else "onnx", size, cosine, space)


def _load(name: str) -> SentenceTransformer:
    import torch

    from simlte_st.models.loading import load_model

    return load_model(name, dtype=torch.float32, device="cpu").model.eval()


def _is_static_folder(name: str) -> bool | None:
    """Check a model's files for whether it is static, without importing torch; return None for a model on the Hub."""
    if name in OWN_MODELS and not os.path.isdir(name):
        return name == OWN_STATIC
    folder = Path(find_model(name))
    if not folder.is_dir():
        return None
    if (folder / MODEL_FILE).exists():
        return "StaticEmbedding" in str(read_json(folder / MODEL_FILE)[:1])
    return (folder / "config.json").exists() and read_json(folder / "config.json").get("model_type") == "model2vec"


def _write_encoder(
    model: SentenceTransformer, name: str, path: Path, dtype: str, dimension: int | None
) -> tuple[int, float]:
    """Export an encoder to a folder; return the dimension of its vectors and their lowest cosine with the model's."""
    from sentence_transformers.base.modules import Transformer

    from simlte_st.models.cards import export_card

    if dtype == "float16" or dimension is not None:
        raise ConfigurationError(f"{name!r} is an encoder: use dtype='float32' or dtype='int8', without dimension=.")
    first: Any = model[0]
    kind = first.config.model_type if type(first) is Transformer else type(first).__name__
    if type(first) is not Transformer or kind in ("longformer", "simlte_longformer"):
        advice = "only stock encoders such as BERT can. Use it with sentence-transformers."
        raise ModelError(f"The model {name!r} begins with {kind}, which cannot be exported: {advice}")
    tokenizer = _save_tokenizer(model, name, path)
    settings = {
        "dimension": model.get_embedding_dimension(),
        "max_length": model.max_seq_length,
        "prompts": {name: prompt for name, prompt in model.prompts.items() if prompt},
        "default_prompt_name": model.default_prompt_name,
        "pad_id": model.tokenizer.pad_token_id,
        "split_special_tokens": bool(model.tokenizer.split_special_tokens),
    }
    check_vectors(model, name)
    texts = sample_texts(model)
    _write_graph(model, name, path / GRAPH_FILE)
    write_json(path / EXPORT_FILE, settings)
    vectors, expected = _encode_with_both(path, model, texts)
    error = float((np.linalg.norm(vectors - expected, axis=1) / np.linalg.norm(expected, axis=1)).max())
    if not error <= TOLERANCE:
        problem = f"its graph computes different vectors (relative difference {error:.1e})"
        raise ModelError(f"{name!r} cannot be exported: {problem}. One of the model's modules branches on its input.")
    if dtype == "int8":
        _quantise(path / GRAPH_FILE)
        vectors, expected = _encode_with_both(path, model, texts)
    cosine = _lowest_cosine(vectors, expected)
    prompt = document_prompt(model)
    offset, int8_cosine = prompt_tokens(tokenizer, prompt), cosine if dtype == "int8" else None
    card = export_card(path.name, name, settings, prompt=prompt, offset=offset, error=error, cosine=int8_cosine)
    (path / "README.md").write_text(card, encoding="utf-8")
    return settings["dimension"], cosine


def _write_graph(model: SentenceTransformer, name: str, path: Path) -> None:
    """Trace a model to a file, as a function of three input tensors; unused inputs are dropped."""
    import torch

    from simlte_st.compat import Features, masks_without_vmap

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder: Any = model[0].auto_model
            self.after = torch.nn.ModuleList(list(model)[1:])

        def forward(self, input_ids: Tensor, attention_mask: Tensor, content_mask: Tensor) -> Tensor:
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
            features: Features = {"input_ids": input_ids}
            features["token_embeddings"] = states if isinstance(states, torch.Tensor) else states[0]
            for module in self.after:
                with_prompt = getattr(module, "include_prompt", True)
                features["attention_mask"] = attention_mask if with_prompt else content_mask
                features = module(features)
            embedding: Tensor = features["sentence_embedding"]
            return embedding[:, : model.truncate_dim]

    inputs, outputs = ["input_ids", "attention_mask", "content_mask"], ["sentence_embedding"]
    axes = {name: {0: "batch", 1: "length"} for name in inputs} | {name: {0: "batch"} for name in outputs}
    options: dict[str, Any] = {"input_names": inputs, "output_names": outputs, "dynamic_axes": axes}
    try:
        with warnings.catch_warnings(), torch.no_grad(), masks_without_vmap():
            warnings.simplefilter("ignore")  # on data-dependent branches; the vectors are compared afterwards
            example = tuple(torch.ones(2, 32, dtype=torch.int64) for _ in inputs)
            torch.onnx.export(Graph().eval(), example, str(path), dynamo=False, opset_version=OPSET, **options)
    except Exception as error:  # torch and modules raise many types
        raise ModelError(f"The model {name!r} cannot be traced into an ONNX graph ({type(error).__name__}).") from error


def _save_tokenizer(model: SentenceTransformer, name: str, path: Path) -> Tokenizer:
    """Save the tokenizer with the truncation and padding that the graph needs, and return it."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise ModelError(f"The model {name!r} has a slow tokenizer, which needs transformers: use a fast one.")
    tokenizer = Tokenizer.from_str(backend.to_str())
    if model.max_seq_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(model.max_seq_length)
    tokenizer.enable_padding(pad_id=model.tokenizer.pad_token_id, pad_token=str(model.tokenizer.pad_token))
    tokenizer.save(str(path / "tokenizer.json"))
    return tokenizer


def _encode_with_both(path: Path, model: SentenceTransformer, texts: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Encode texts with both graph and model; also encode short ones with each prompt and a random one."""
    encoder, vectors, expected = OnnxEncoder(path), [], []
    for prompt in ("", texts[1] + ": ", *encoder.settings["prompts"].values()):
        inputs = texts[:4] if prompt else texts
        vectors.append(encoder.encode(inputs, prompt=prompt))
        expected.append(np.asarray(model.encode(inputs, prompt=prompt, show_progress_bar=False)))
    return np.concatenate(vectors), np.concatenate(expected)


def _quantise(path: Path) -> None:
    """Quantise the encoder part of a graph, in place."""
    onnx = require("onnx", "onnx", "quantisation")
    quantization = require("onnxruntime.quantization", "onnx", "quantisation")
    later_modules = [node.name for node in onnx.load(str(path)).graph.node if "/after." in node.name]
    quantised = str(path.with_name(f"{path.name}.int8"))
    # Inferring shapes first does not change the vectors, but avoids a warning during quantisation.
    quantization.quant_pre_process(str(path), str(path), skip_symbolic_shape=True, skip_optimization=True)
    options = {"weight_type": quantization.QuantType.QInt8, "per_channel": True, "nodes_to_exclude": later_modules}
    quantization.quantize_dynamic(str(path), quantised, **options)
    os.replace(quantised, path)


# Static models.


def _write_static(
    model: SentenceTransformer, name: str, path: Path, dtype: str, dimension: int | None
) -> tuple[int, float]:
    """Export a static model to a folder; return the dimension and the lowest cosine with the model's vectors.

    The table is rotated to its principal axes before dimensions are dropped, because the last columns of a trained
    table are as informative as the first.
    """
    import torch
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    from simlte_st.models.cards import write_model_card
    from simlte_st.models.static import WEIGHTS, token_embedding, write_for_model2vec

    unsupported = next((type(module).__name__ for module in [*model][1:] if not isinstance(module, Normalize)), None)
    if unsupported or any(model.prompts.values()) or model.truncate_dim:
        unsupported = unsupported or ("truncate_dim" if model.truncate_dim else "prompts")
        raise ModelError(f"{name!r} has {unsupported}, which model2vec does not support: use sentence-transformers.")
    check_vectors(model, name)
    texts = sample_texts(model)[1:]
    original = np.asarray(model.encode(texts, show_progress_bar=False))
    table = token_embedding(model).weight.detach()
    axes = torch.linalg.eigh(table.T @ table)[1].flip(1)[:, :dimension] if dimension else torch.eye(table.shape[1])
    model[0] = StaticEmbedding(model.tokenizer, embedding_weights=table @ axes)
    model.save_pretrained(str(path))
    write_for_model2vec(path, dtype)
    cosine, expected = 1.0, original @ axes.numpy()
    for export in (StaticModel.from_pretrained(path), SentenceTransformer(str(path), device="cpu")):
        agreement = _lowest_cosine(np.asarray(export.encode(texts, show_progress_bar=False)), expected)
        if not agreement >= MIN_COSINE:
            raise ModelError(f"The model {name!r} cannot be exported: {type(export).__name__} gives different vectors.")
        cosine = min(cosine, agreement)
    share = float((np.linalg.norm(expected, axis=1) / np.linalg.norm(original, axis=1)).min())
    keeps = f"{axes.shape[1]} of {axes.shape[0]} dimensions, which keep at least {share:.3f} of a vector's length"
    if share < MIN_NORM_SHARE:
        advice = "Keep more dimensions, or compare both models on your documents with simlte evaluate."
        logger.warning("The export has %s, so similarities change. %s", keeps, advice)
    space = (path / WEIGHTS).stat().st_size / 2**20
    summary = (
        f"`{shown_base(name)}`, exported by simlte_st: a static model in {dtype}, {space:.1f} MiB, with {keeps}. "
        f"On synthetic texts, the lowest cosine with the model's vectors, in these dimensions, is {cosine:.5f}."
    )
    about = "## Limits\n\nmodel2vec skips unknown tokens; sentence-transformers does not."
    write_model_card(path, base=name, summary=summary, about=about)
    return axes.shape[1], cosine


def _lowest_cosine(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the lowest cosine between matching rows of two arrays; NaN if any cosine is not finite."""
    sizes = np.linalg.norm(first.astype(np.float32), axis=1) * np.linalg.norm(second, axis=1)
    return float(((first * second).sum(axis=1) / sizes).min())
