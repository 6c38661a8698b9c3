"""Show the weights of a text's tokens in a model with token attention (TA-SBERT, tables 1 and 2).

python -m benchmarks.papers.weights "The storm flooded the town." --model my-model
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from benchmarks.papers.command import make_parser, open_models, report
from benchmarks.papers.reading import ReadText, read_text
from simlte_st.errors import ModelError
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.limits import prompt_as_read
from simlte_st.modules import TokenAttention


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, documents=False)
    parser.add_argument("text", metavar="TEXT", help="text to weigh")
    options = parser.parse_args(arguments)
    tables, values = [], {}
    for name, model in open_models(options).items():
        reading, weights = token_weights(model, options.text)
        pairs = list(zip(reading.tokens, weights, strict=True))
        values[name] = [{"token": token, "weight": weight} for token, weight in pairs]
        rows = [[token, f"{weight:.1f}%"] for token, weight in pairs]
        tables.append(f"{name}\n\n{markdown_table(['token', 'weight'], rows)}")
    report(options, "\n\n".join(tables), values)


def token_weights(model: SentenceTransformer, text: str) -> tuple[ReadText, list[float]]:
    """Return each token's weight in the embedding, in percent; the remainder belongs to special tokens."""
    if not any(isinstance(module, TokenAttention) for module in model):
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelError(f"The model has no token weights: it consists of {kinds}, without TokenAttention.")
    reading, training = read_text(model, text), model.training
    model.eval()
    with torch.inference_mode():
        features = batch_to_device(model.preprocess([text], prompt=prompt_as_read(model)), model.device)
        weights = model(features)["token_attention"][0].float().tolist()
    model.train(training)
    return reading, [100 * weights[position] for position in reading.positions]


if __name__ == "__main__":
    main()
