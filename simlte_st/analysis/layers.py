"""How far a word's representation moves from layer to layer (TA-SBERT, section IV-E; SBERT-WK, Wang and Kuo, 2020)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch.nn import functional

from simlte_st.analysis.figures import drawn_figure, finish_axes, plain
from simlte_st.analysis.reading import TokenizedText, padded_inputs, read_text
from simlte_st.compat import encoder_of
from simlte_st.data.documents import read_documents
from simlte_st.errors import ModelError
from simlte_st.evaluation.table import markdown_table, short_names
from simlte_st.models.truncation import prompt_as_read
from simlte_st.progress import with_progress_bar


@dataclass(frozen=True)
class LayerSimilarity:
    """Cosines of the tokens of a corpus between successive layers of a model.

    Attributes:
        mean: Over all tokens, special ones too, of each step: from the word embeddings to the first layer, from the
            first to the second, and so on.
        low: Of each step, what a tenth of the tokens lies below.
        high: Likewise, above.
        tokens: How many were read.
    """

    mean: list[float]
    low: list[float]
    high: list[float]
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def measure_layers(
    models: Mapping[str, SentenceTransformer], source: Any, *, batch_size: int = 8, progress: bool = False
) -> dict[str, LayerSimilarity]:
    """Measure how much representations change from layer to layer, in one model or in several.

    Args:
        models: By name. Each reads texts as its ``encode`` does.
        source: The documents; anything :func:`~simlte_st.read_documents` takes.
        batch_size: Documents read at once.
        progress: Show a progress bar.

    Raises:
        DataError: There are no documents that can be read.
        ModelError: A model whose encoder does not give its layers.
    """
    texts = [document.text for document in read_documents(source)]
    similarities = {}
    for name, model in models.items():
        parts = []
        for start in with_progress_bar(
            range(0, len(texts), batch_size), f"Reading ({name})", unit="batch", shown=progress
        ):
            parts.append(successive_cosines(model, texts[start : start + batch_size]))
        cosines = np.concatenate(parts)
        low, high = np.quantile(cosines, [0.1, 0.9], axis=0)
        similarities[name] = LayerSimilarity(cosines.mean(0).tolist(), low.tolist(), high.tolist(), len(cosines))
    return similarities


def successive_cosines(model: SentenceTransformer, texts: Iterable[str]) -> NDArray[np.float64]:
    """Compute the cosine of each token between each layer and the one before."""
    encoder = encoder_of(model)
    with padded_inputs(model):  # flattened texts have no mask, and not all encoders know where they part
        read = model.preprocess(list(texts), prompt=prompt_as_read(model))
    names = ("input_ids", "attention_mask", "token_type_ids")
    features = {name: value.to(model.device) for name, value in read.items() if name in names}
    training = encoder.training
    encoder.eval()
    try:
        with torch.inference_mode():
            states = encoder(**features, output_hidden_states=True).hidden_states
    finally:
        encoder.train(training)
    if states is None or "attention_mask" not in features:
        raise ModelError(f"{type(encoder).__name__} does not give its layers; use a BERT-like encoder.")
    real = features["attention_mask"].bool()
    steps = [
        functional.cosine_similarity(one[real].double(), two[real].double(), dim=-1)
        for one, two in itertools.pairwise(states)
    ]
    return torch.stack(steps, dim=1).cpu().numpy()


def token_layers(model: SentenceTransformer, text: str) -> tuple[TokenizedText, NDArray[np.float64]]:
    """Compute how far each token of one text moves from layer to layer (TA-SBERT, figures 7 and 8).

    Args:
        model: A model that begins with a Transformer. It reads the text as its ``encode`` does.
        text: The text.

    Returns:
        The text as the model reads it; and the cosine of each of its tokens, ``[tokens, layers]``, between each layer
        and the one before.

    Raises:
        ModelError: The encoder does not give its layers, or the tokenizer not where its tokens stand in the text.
        DataError: The model reads none of the text.
    """
    read = read_text(model, text)
    return read, successive_cosines(model, [text])[read.places]


def layers_table(similarities: Mapping[str, LayerSimilarity], width: int | None = None) -> str:
    """Lay out the cosines, a row a layer.

    Args:
        similarities: What :func:`measure_layers` gave.
        width: Columns that a line shall have at most; longer names lose their beginning. None shows them whole.
    """
    layers = max(len(values.mean) for values in similarities.values())
    rows = []
    for layer in range(layers):
        row = [str(layer + 1)]
        for values in similarities.values():
            here = layer < len(values.mean)
            row.append(f"{values.mean[layer]:.3f} [{values.low[layer]:.3f}, {values.high[layer]:.3f}]" if here else "")
        rows.append(row)
    names = {name: name for name in similarities}
    if width is not None:
        names = short_names(list(similarities), max(20, (width - len("| layer |")) // len(similarities) - len("  |")))
    return markdown_table(["layer", *names.values()], rows)


def write_layer_lines(path: str | os.PathLike[str], similarities: Mapping[str, LayerSimilarity]) -> None:
    """Draw a line for each model, with a band of what lies between a tenth and nine tenths of the tokens.

    Args:
        path: A ``.svg`` or ``.png`` file; replaced at once when it is complete.
        similarities: What :func:`measure_layers` gave.

    Raises:
        ConfigurationError: Another format.
        MissingExtraError: matplotlib is not installed.
    """
    with drawn_figure(path, (6.4, 3.6)) as figure:
        axes = figure.add_subplot()
        for number, (name, values) in enumerate(similarities.items()):
            layers = range(1, len(values.mean) + 1)
            axes.plot(layers, values.mean, marker="o", color=f"C{number}", label=plain(name))
            axes.fill_between(layers, values.low, values.high, color=f"C{number}", alpha=0.15, linewidth=0)
        axes.set_xlabel("layer")
        axes.set_ylabel("cosine of a token to the layer before")
        finish_axes(axes)


def write_token_lines(
    path: str | os.PathLike[str], cosines_of: Mapping[str, tuple[TokenizedText, NDArray[np.float64]]]
) -> None:
    """Draw a line for each token of a text, and a panel for each model.

    Args:
        path: A ``.svg`` or ``.png`` file; replaced at once when it is complete.
        cosines_of: By the models' names, what :func:`token_layers` gave.

    Raises:
        ConfigurationError: Another format.
        MissingExtraError: matplotlib is not installed.
    """
    most = max(len(cosines) for _, cosines in cosines_of.values())
    with drawn_figure(path, (5.2 * len(cosines_of), max(3.6, 0.6 + 0.2 * most))) as figure:
        panels = figure.subplots(1, len(cosines_of), sharey=True, squeeze=False)[0]
        for axes, (name, (read, cosines)) in zip(panels, cosines_of.items(), strict=True):
            for number, (token, line) in enumerate(zip(read.tokens, cosines, strict=True)):
                style = {"color": f"C{number % 10}", "linestyle": ("-", "--", ":", "-.")[number // 10 % 4]}
                # Numbered: a word may come twice, and matplotlib hides labels that begin with an underscore.
                axes.plot(range(1, len(line) + 1), line, label=f"{number + 1} {plain(token)}", **style)
            axes.set_title(plain(name), fontsize=9, parse_math=False)
            axes.set_xlabel("layer")
            axes.set_ylabel("cosine of a token to the layer before")
            finish_axes(axes, loc="center left", bbox_to_anchor=(1, 0.5))
