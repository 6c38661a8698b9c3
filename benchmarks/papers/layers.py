"""Measure how representations change between layers (TA-SBERT, section IV-E; SBERT-WK, Wang and Kuo, 2020).

    python -m benchmarks.papers.layers my_documents --model my-model
    python -m benchmarks.papers.layers my_documents --model bert-base --compare my-model

Reports each token's cosine between adjacent layers: the mean, and the range of the middle 80% of tokens. ``--tokens``
instead shows each token of the first document (TA-SBERT, figures 7 and 8).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch.nn import functional

from benchmarks.papers.command import make_parser, open_documents, open_models, report
from benchmarks.papers.reading import ReadText, hidden_states, read_text
from simlte_st.evaluation.table import markdown_table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--tokens", action="store_true", help="show each token of the first document")
    options = parser.parse_args(arguments)
    reader, tables, values = open_documents(options), [], {}
    for name, model in open_models(options).items():
        texts = (read_text(model, document.text) for document in reader)
        if options.tokens:
            text = next(texts)
            cosines = successive_cosines(model, text)[text.positions]
            pairs = zip(text.tokens, cosines, strict=True)
            rows = [[token, *(f"{cosine:.2f}" for cosine in row)] for token, row in pairs]
            header = ["token", *(str(layer + 1) for layer in range(cosines.shape[1]))]
        else:
            cosines = np.concatenate([successive_cosines(model, text) for text in texts])
            ranges = zip(cosines.mean(0), *np.quantile(cosines, [0.1, 0.9], axis=0), strict=True)
            cells = [f"{mean:.3f} [{low:.3f}, {high:.3f}]" for mean, low, high in ranges]
            rows = [[f"{layer}", cell] for layer, cell in enumerate(cells, start=1)]
            header = ["layer", "cosine to the layer before"]
        tables.append(f"{name}\n\n{markdown_table(header, rows)}")
        values[name] = [dict(zip(header, row, strict=True)) for row in rows]
    report(options, "\n\n".join(tables), values, reader)


def successive_cosines(model: SentenceTransformer, text: ReadText) -> NDArray[np.float64]:
    """Return each token's cosine between adjacent layers, ``[tokens, layers]``, with special tokens."""
    states = hidden_states(model, text)
    steps = [functional.cosine_similarity(layer, following, dim=-1) for layer, following in itertools.pairwise(states)]
    return torch.stack(steps, dim=1).cpu().numpy()


if __name__ == "__main__":
    main()
