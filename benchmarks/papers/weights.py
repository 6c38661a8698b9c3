"""Which tokens of a text make up its embedding, in a model with token attention (TA-SBERT, tables 1 and 2).

python -m benchmarks.papers.weights "The storm flooded the town." --model my-model --heatmap storm.html
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from benchmarks.figures import check_figure
from benchmarks.papers.command import check_files, make_parser, model_names, report, short_errors, token_table
from benchmarks.papers.heat_map import HEAT_MAP_FORMATS, Span, whole_characters, write_heat_map
from benchmarks.papers.reading import TokenizedText, read_text
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import valid_unicode
from simlte_st.models.sentence_transformer import SentenceTransformer as AnySentenceTransformer
from simlte_st.modules import TokenAttention


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, documents=None)
    parser.add_argument("text", metavar="TEXT", type=valid_unicode, help="the text itself")
    parser.add_argument("--heatmap", metavar="FILE.html", help="draw it")
    options = parser.parse_args(arguments)
    with short_errors():
        check_files(options)
        if options.heatmap:
            check_figure(options.heatmap, HEAT_MAP_FORMATS)
        by_model = {name: token_weights(AnySentenceTransformer(name), options.text) for name in model_names(options)}
        texts = {read.text for read, _ in by_model.values()}
        if options.heatmap and len(texts) > 1:
            raise ConfigurationError("One model writes contractions out and the other does not: draw them one by one.")
        tables, models = [], {}
        for name, (read, spans) in by_model.items():
            tables.append(token_table(name, read, ["weight"], [[f"{span.weight:.1f}%"] for span in spans]))
            weighed = zip(read.tokens, spans, strict=True)
            models[name] = [{"token": token, "weight": span.weight} for token, span in weighed]
        cut = {name: read.cut for name, (read, _) in by_model.items()}
        report(options, "\n".join(tables), {"text": options.text, "models": models, "cut": cut})
        if options.heatmap:
            about = "Share of each token in the embedding, the lowest uncoloured; special tokens have the rest."
            notes = [about, *(line for name, (read, _) in by_model.items() for line in read.notes(name))]
            panels = {name: whole_characters(spans) for name, (_, spans) in by_model.items()}
            write_heat_map(
                options.heatmap, texts.pop(), panels, "Token attention", unit="%", note=" ".join(notes), from_zero=False
            )


def token_weights(model: SentenceTransformer, text: str) -> tuple[TokenizedText, list[Span]]:
    """Return the weight of each token of a text, in percent of the whole embedding."""
    if not any(isinstance(module, TokenAttention) for module in model):
        kinds = ", ".join(type(module).__name__ for module in model)
        raise ModelError(f"The model does not weigh tokens: it has no TokenAttention, but {kinds}.")
    read = read_text(model, text)
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            features = batch_to_device(model.preprocess([text], prompt=read.prompt), model.device)
            weights = model(features)["token_attention"][0].float().cpu().tolist()
    finally:
        model.train(training)
    return read, [
        Span(start, stop, 100 * weights[place]) for (start, stop), place in zip(read.spans, read.places, strict=True)
    ]


if __name__ == "__main__":
    main()
