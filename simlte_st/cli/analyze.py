"""``simlte analyze``: the papers' looks into corpora and models."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.cli.arguments import add_arguments, check_result_files, print_result, reading_options
from simlte_st.cli.messages import note
from simlte_st.cli.numbers import count, whole_number
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.cli.terminal import terminal_width
from simlte_st.files import valid_unicode

if TYPE_CHECKING:
    from simlte_st.analysis import TokenizedText


def add_parser(subparsers: Any) -> None:
    """Add the subcommand and its own ones."""
    parser = subparsers.add_parser(
        "analyze",
        help="the papers' analyses: redundancy of documents, attention, layers, weights of tokens",
        description="The papers' analyses, of any documents and models. redundancy and attention need spaCy and one of "
        'its pipelines: pip install "simlte-st[pos]".',
        examples=(
            "simlte analyze redundancy my_documents",
            "simlte analyze attention my_documents --model bert-base --compare my-model",
        ),
    )
    commands = parser.add_subparsers(required=True, metavar="ANALYSIS")

    redundancy = commands.add_parser(
        "redundancy",
        help="how often documents repeat their nouns and verbs",
        description="How many nouns and verbs there are for each distinct one, by the length of the documents (SimLTE, "
        "equation 2 and table 3).",
        examples=(
            "simlte analyze redundancy my_documents",
            "simlte analyze redundancy posts.csv --limit 1000 --output nouns.json",
        ),
    )
    add_arguments(redundancy, "source")
    _add_tagging(redundancy)
    redundancy.set_defaults(run=run_redundancy)

    attention = commands.add_parser(
        "attention",
        help="what [CLS] attends to, by part of speech",
        description="Attention from [CLS] to nouns, verbs, adjectives and other words (SimLTE, figure 3 and appendix "
        "C), in one model or before and after training.",
        examples=(
            "simlte analyze attention my_documents --model my-model --bars attention.svg",
            "simlte analyze attention my_documents --model bert-base --compare my-model",
            "simlte analyze attention my_documents --model my-model --heatmap words.html",
        ),
    )
    add_arguments(attention, "source")
    _add_models(attention)
    attention.add_argument(
        "--layer", type=whole_number, default=-1, metavar="N", help="layer from 0 (default: -1, the last)"
    )
    attention.add_argument(
        "--max-seq-length", type=count, metavar="N", help="tokens to read of a document (default: what all models read)"
    )
    attention.add_argument("--batch-size", type=count, default=8, metavar="N", help="default: %(default)s")
    attention.add_argument("--bars", metavar="FILE.svg|png", help="draw the weights of a word as bars")
    attention.add_argument("--heatmap", metavar="FILE.html", help="draw one document's words")
    attention.add_argument("--document", metavar="ID", help="id of the document to draw (default: the first)")
    _add_tagging(attention)
    attention.set_defaults(run=run_attention)

    layers = commands.add_parser(
        "layers",
        help="how far representations move from layer to layer",
        description="Cosine between each token in a layer and in the layer before (TA-SBERT, figures 7 and 8): the "
        "mean, and the range of eight tokens in ten; with --text, each token of one text. In one model or before and "
        "after training.",
        examples=(
            "simlte analyze layers my_documents --model my-model --lines layers.svg",
            "simlte analyze layers my_documents --model bert-base --compare my-model",
            'simlte analyze layers --text "A man feeds a snake." --model my-model',
        ),
    )
    layers.add_argument("source", metavar="SOURCE", nargs="*", action=Sources, help=SOURCE_HELP)
    layers.add_argument("--text", metavar="TEXT", type=valid_unicode, help="one text instead of SOURCE, token by token")
    _add_models(layers)
    layers.add_argument("--batch-size", type=count, default=8, metavar="N", help="default: %(default)s")
    layers.add_argument("--lines", metavar="FILE.svg|png", help="draw the cosines as lines")
    _add_reading(layers)
    layers.set_defaults(run=run_layers)

    weights = commands.add_parser(
        "weights",
        help="which words make up the embedding of a text",
        description="A heat map of the weight of each token in the embedding of a text, in models with token attention "
        "(TA-SBERT, tables 1 and 2).",
        examples=(
            'simlte analyze weights "The storm flooded the town." --model my-model',
            'simlte analyze weights "The storm flooded the town." --model my-model --json',
        ),
    )
    weights.add_argument("text", metavar="TEXT", type=valid_unicode, help="the text itself")
    _add_models(weights)
    weights.add_argument("--heatmap", metavar="FILE.html", help="draw it; else the tokens and weights are printed")
    add_arguments(weights, "--overwrite", "--json", "--quiet", "common")
    weights.set_defaults(run=run_weights)


def _add_tagging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pipeline",
        default="en_core_web_sm",
        metavar="NAME",
        help="an installed spaCy pipeline (default: %(default)s)",
    )
    add_arguments(parser, "--seed")
    _add_reading(parser)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE.json", help="write the results there too")
    add_arguments(parser, "--overwrite", "--json", "reading", "--quiet", "common")


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="MODEL", help="folder or name of a model")
    parser.add_argument("--compare", metavar="MODEL", help="another one, such as what training made of it")


def _model_names(arguments: argparse.Namespace) -> list[str]:
    """Name the models that were asked for, each once."""
    return list(dict.fromkeys(name for name in (arguments.model, arguments.compare) if name))


def _report(arguments: argparse.Namespace, text: str, values: Mapping[str, Any]) -> None:
    """Print the results, and write them to the file of results."""
    from simlte_st.files import write_json

    print_result(arguments, text, values)
    if arguments.output:
        write_json(arguments.output, values)


def run_redundancy(arguments: argparse.Namespace) -> int:
    """Measure redundancy."""
    from simlte_st.analysis import SpacyTagger, measure_redundancy
    from simlte_st.data.documents import read_documents

    check_result_files(arguments, arguments.source)
    tagger = SpacyTagger(arguments.pipeline)
    reader = read_documents(arguments.source, **reading_options(arguments))
    result = measure_redundancy(reader, tagger, seed=arguments.seed, progress=not arguments.quiet)
    note(reader.report.summary(), arguments)
    _report(arguments, f"{result.table()}\n{result.summary()}", {"data": arguments.source, **result.to_dict()})
    return 0


def run_attention(arguments: argparse.Namespace) -> int:
    """Measure attention."""
    from simlte_st.analysis import SpacyTagger, document_attention, measure_attention, write_attention_map, write_bars
    from simlte_st.analysis.figures import HEAT_MAP_FORMATS, check_figure
    from simlte_st.analysis.reading import as_read
    from simlte_st.data.documents import read_documents
    from simlte_st.errors import ConfigurationError, DataError
    from simlte_st.models.base import load_model

    check_result_files(arguments, arguments.source)
    if arguments.document and not arguments.heatmap:
        raise ConfigurationError("--document chooses what --heatmap draws: give that too.")
    if arguments.bars:
        check_figure(arguments.bars)
    if arguments.heatmap:
        check_figure(arguments.heatmap, HEAT_MAP_FORMATS)
    tagger = SpacyTagger(arguments.pipeline, lemmas=False)
    reader = read_documents(arguments.source, **reading_options(arguments))
    drawn = None
    if arguments.heatmap:  # looked for before all are measured: a wrong id shall cost no hours
        drawn = next((document for document in reader if arguments.document in (None, document.id)), None)
        if drawn is None:
            raise DataError(f"No document among those read has the id {arguments.document!r}: there is no heat map.")
    models = {name: load_model(name).model for name in _model_names(arguments)}
    how = {"layer": arguments.layer, "max_seq_length": arguments.max_seq_length}
    result = measure_attention(
        models,
        reader,
        tagger,
        **how,
        batch_size=arguments.batch_size,
        seed=arguments.seed,
        progress=not arguments.quiet,
    )
    note(reader.report.summary(), arguments)
    text = f"{result.table(terminal_width())}\n{result.summary()}"
    _report(arguments, text, {"data": arguments.source, **result.to_dict()})
    if arguments.bars:
        write_bars(arguments.bars, result)
    if drawn:
        [shown] = as_read(list(models.values()), [drawn.text])
        words = document_attention(models, shown, tagger, **how)
        write_attention_map(arguments.heatmap, shown, words, f"Attention from [CLS]: {drawn.id}")
    return 0


def run_layers(arguments: argparse.Namespace) -> int:
    """Measure how far representations move from layer to layer."""
    from simlte_st.analysis import layers_table, measure_layers, write_layer_lines
    from simlte_st.analysis.figures import check_figure
    from simlte_st.data.documents import read_documents
    from simlte_st.errors import ConfigurationError
    from simlte_st.models.base import load_model

    if bool(arguments.source) == (arguments.text is not None):
        raise ConfigurationError("Give either documents (SOURCE) or one text itself (--text TEXT).")
    check_result_files(arguments, arguments.source)
    if arguments.lines:
        check_figure(arguments.lines)
    if arguments.text is not None:
        return _run_token_layers(arguments)
    reader = read_documents(arguments.source, **reading_options(arguments))
    models = {name: load_model(name).model for name in _model_names(arguments)}
    similarities = measure_layers(models, reader, batch_size=arguments.batch_size, progress=not arguments.quiet)
    note(reader.report.summary(), arguments)
    values = {name: similarity.to_dict() for name, similarity in similarities.items()}
    text = layers_table(similarities, terminal_width())
    _report(arguments, text, {"data": arguments.source, "models": values})
    if arguments.lines:
        write_layer_lines(arguments.lines, similarities)
    return 0


def _run_token_layers(arguments: argparse.Namespace) -> int:
    from simlte_st.analysis import token_layers, write_token_lines
    from simlte_st.models.base import load_model

    by_model = {name: token_layers(load_model(name).model, arguments.text) for name in _model_names(arguments)}
    tables, models = [], {}
    for name, (read, cosines) in by_model.items():
        layers = [str(layer + 1) for layer in range(cosines.shape[1])]
        tables.append(
            _token_table(arguments, name, read, layers, [[f"{value:.2f}" for value in line] for line in cosines])
        )
        lines = zip(read.tokens, cosines.tolist(), strict=True)
        models[name] = [{"token": token, "cosines": line} for token, line in lines]
    cut = {name: read.cut for name, (read, _) in by_model.items()}
    _report(arguments, "\n".join(tables), {"text": arguments.text, "models": models, "cut": cut})
    if arguments.lines:
        write_token_lines(arguments.lines, by_model)
    return 0


def _token_table(
    arguments: argparse.Namespace, name: str, read: TokenizedText, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Lay out the numbers of each token of a text in a model, and say what the model does not read."""
    from simlte_st.evaluation.table import markdown_table

    for line in read.notes(name):
        note(line, arguments)
    cells = [[token, *row] for token, row in zip(read.tokens, rows, strict=True)]
    return f"{name}\n{markdown_table(['token', *header], cells)}"


def run_weights(arguments: argparse.Namespace) -> int:
    """Show which words make up the embedding of a text."""
    from simlte_st.analysis import token_weights, write_heat_map
    from simlte_st.analysis.figures import HEAT_MAP_FORMATS, check_figure, whole_characters
    from simlte_st.errors import ConfigurationError
    from simlte_st.models.sentence_transformer import SentenceTransformer

    check_result_files(arguments)
    if arguments.heatmap:
        check_figure(arguments.heatmap, HEAT_MAP_FORMATS)
    by_model = {name: token_weights(SentenceTransformer(name), arguments.text) for name in _model_names(arguments)}
    texts = {read.text for read, _ in by_model.values()}
    if arguments.heatmap and len(texts) > 1:
        raise ConfigurationError("One model writes contractions out, the other does not: draw them one by one.")
    tables, models = [], {}
    for name, (read, spans) in by_model.items():
        tables.append(_token_table(arguments, name, read, ["weight"], [[f"{span.weight:.1f}%"] for span in spans]))
        weighed = zip(read.tokens, spans, strict=True)
        models[name] = [{"token": token, "weight": span.weight} for token, span in weighed]
    cut = {name: read.cut for name, (read, _) in by_model.items()}
    print_result(arguments, "\n".join(tables), {"text": arguments.text, "models": models, "cut": cut})
    if arguments.heatmap:
        panels = {name: whole_characters(spans) for name, (_, spans) in by_model.items()}
        about = [
            "Share of each token in the embedding, the lowest uncoloured; special tokens and a prompt have the rest."
        ]
        about += [line for name, (read, _) in by_model.items() for line in read.notes(name)]
        write_heat_map(
            arguments.heatmap, texts.pop(), panels, "Token attention", unit="%", note=" ".join(about), from_zero=False
        )
    return 0
