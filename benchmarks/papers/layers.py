"""How far a word's representation moves from layer to layer (TA-SBERT, section IV-E; SBERT-WK, Wang and Kuo, 2020).

    python -m benchmarks.papers.layers my_documents --model my-model --lines layers.svg
    python -m benchmarks.papers.layers my_documents --model bert-base --compare my-model
    python -m benchmarks.papers.layers --text "A man feeds a snake." --model my-model

Cosine between each token in a layer and in the layer before: the mean, and the range of eight tokens in ten; with
--text, each token of one text.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch.nn import functional

from benchmarks.figures import check_figure, drawn_figure, finish_axes, plain
from benchmarks.papers.command import (
    check_files,
    columns,
    make_parser,
    model_names,
    open_documents,
    report,
    short_errors,
    token_table,
)
from benchmarks.papers.reading import TokenizedText, padded_inputs, read_text
from simlte_st.compat import encoder_of
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation.table import markdown_table, short_names
from simlte_st.files import valid_unicode
from simlte_st.models.base import load_model
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, documents="*")
    parser.add_argument("--text", metavar="TEXT", type=valid_unicode, help="one text instead of SOURCE, token by token")
    parser.add_argument("--lines", metavar="FILE.svg|png", help="draw the cosines as lines")
    options = parser.parse_args(arguments)
    with short_errors():
        if bool(options.source) == (options.text is not None):
            raise ConfigurationError("Give either documents (SOURCE) or one text (--text TEXT).")
        check_files(options)
        if options.lines:
            check_figure(options.lines)
        if options.text is not None:
            _report_tokens(options)
            return
        reader = open_documents(options)
        models = {name: load_model(name).model for name in model_names(options)}
        similarities = measure_layers(models, reader, batch_size=options.batch_size, progress=not options.quiet)
        values = {name: similarity.to_dict() for name, similarity in similarities.items()}
        report(options, layers_table(similarities, columns()), {"models": values}, reader)
        if options.lines:
            write_layer_lines(options.lines, similarities)


def _report_tokens(options: argparse.Namespace) -> None:
    by_model = {name: token_layers(load_model(name).model, options.text) for name in model_names(options)}
    tables, models = [], {}
    for name, (read, cosines) in by_model.items():
        layers = [str(layer + 1) for layer in range(cosines.shape[1])]
        tables.append(token_table(name, read, layers, [[f"{value:.2f}" for value in line] for line in cosines]))
        lines = zip(read.tokens, cosines.tolist(), strict=True)
        models[name] = [{"token": token, "cosines": line} for token, line in lines]
    cut = {name: read.cut for name, (read, _) in by_model.items()}
    report(options, "\n".join(tables), {"text": options.text, "models": models, "cut": cut})
    if options.lines:
        write_token_lines(options.lines, by_model)


def measure_layers(
    models: Mapping[str, SentenceTransformer], source: Any, *, batch_size: int = 8, progress: bool = False
) -> dict[str, LayerSimilarity]:
    """Measure how much representations change from layer to layer, in one model or in several."""
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
    """Compute how far each token of one text moves from layer to layer (TA-SBERT, figures 7 and 8)."""
    read = read_text(model, text)
    return read, successive_cosines(model, [text])[read.places]


def layers_table(similarities: Mapping[str, LayerSimilarity], width: int | None = None) -> str:
    """Lay out the cosines, a row a layer."""
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
    """Draw a line for each model, with a band of what lies between a tenth and nine tenths of the tokens."""
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
    """Draw a line for each token of a text, and a panel for each model."""
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


if __name__ == "__main__":
    main()
