"""What [CLS] attends to, by part of speech, in one model or before and after training (SimLTE, figure 3, appendix C).

    python -m benchmarks.papers.attention my_documents --model my-model --bars attention.svg
    python -m benchmarks.papers.attention my_documents --model bert-base --compare my-model
    python -m benchmarks.papers.attention my_documents --model my-model --heatmap words.html

Needs spaCy and one of its pipelines: pip install "simlte-st[pos]".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.figures import check_figure, drawn_figure, finish_axes, plain
from benchmarks.papers.command import (
    add_tagger,
    check_files,
    columns,
    make_parser,
    model_names,
    open_documents,
    report,
    short_errors,
)
from benchmarks.papers.heat_map import HEAT_MAP_FORMATS, Span, write_heat_map
from benchmarks.papers.parts_of_speech import (
    PUNCTUATION,
    WORD_CLASSES,
    AttentionResult,
    DocumentAttention,
    document_attention,
    measure_attention,
)
from benchmarks.papers.reading import as_read, cut_notes
from benchmarks.papers.tagging import SpacyTagger
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.models.base import load_model


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    add_tagger(parser)
    parser.add_argument("--layer", type=int, default=-1, metavar="N", help="layer from 0 (default: -1, the last)")
    parser.add_argument(
        "--max-seq-length", type=int, metavar="N", help="tokens to read (default: what all models read)"
    )
    parser.add_argument("--bars", metavar="FILE.svg|png", help="draw the weights of a word as bars")
    parser.add_argument("--heatmap", metavar="FILE.html", help="draw one document's words")
    parser.add_argument("--document", metavar="ID", help="id of the document to draw (default: the first)")
    options = parser.parse_args(arguments)
    with short_errors():
        check_files(options)
        if options.document and not options.heatmap:
            raise ConfigurationError("--document names the document that --heatmap draws: add --heatmap FILE.html.")
        if options.bars:
            check_figure(options.bars)
        if options.heatmap:
            check_figure(options.heatmap, HEAT_MAP_FORMATS)
        tagger, reader = SpacyTagger(options.pipeline, lemmas=False), open_documents(options)
        drawn = None
        if options.heatmap:  # looked for before all are measured: a wrong id shall cost no hours
            drawn = next((document for document in reader if options.document in (None, document.id)), None)
            if drawn is None:
                raise DataError(f"No document has the id {options.document!r}: there is nothing to draw.")
        models = {name: load_model(name).model for name in model_names(options)}
        how: dict[str, Any] = {"layer": options.layer, "max_seq_length": options.max_seq_length}
        settings = {"batch_size": options.batch_size, "seed": options.seed, "progress": not options.quiet}
        result = measure_attention(models, reader, tagger, **how, **settings)
        report(options, f"{result.table(columns())}\n{result.summary()}", result.to_dict(), reader)
        if options.bars:
            write_bars(options.bars, result)
        if drawn:
            [shown] = as_read(list(models.values()), [drawn.text])
            words = document_attention(models, shown, tagger, **how)
            write_attention_map(options.heatmap, shown, words, f"Attention from [CLS]: {drawn.id}")


def write_bars(path: str | os.PathLike[str], result: AttentionResult) -> None:
    """Draw the attention to a noun, verb, adjective and other word: a group of bars for each, a bar for each model."""
    with drawn_figure(path, (6.4, 3.6)) as figure:
        axes = figure.add_subplot()
        width = 0.8 / len(result.models)
        for number, (name, model) in enumerate(result.models.items()):
            for place, kind in enumerate(WORD_CLASSES):
                weight = model.classes[kind].weight
                if weight.mean is None:
                    continue
                at = place + (number - (len(result.models) - 1) / 2) * width
                height = 100 * weight.mean
                axes.bar(at, height, 0.92 * width, color=f"C{number}", label=plain(name) if not place else None)
                if weight.low is not None and weight.high is not None:
                    low, high = height - 100 * weight.low, 100 * weight.high - height
                    axes.errorbar(at, height, [[max(0.0, low)], [max(0.0, high)]], color="black", capsize=2, lw=0.8)
        axes.set_xticks(range(len(WORD_CLASSES)), WORD_CLASSES)
        axes.set_ylabel("attention from [CLS] to a word, %")
        axes.set_ylim(bottom=0)
        finish_axes(axes)


def write_attention_map(
    path: str | os.PathLike[str], text: str, attention: Mapping[str, DocumentAttention], title: str
) -> None:
    """Draw a heat map of what ``[CLS]`` attends to in a document, a panel for each model.

    Punctuation, which often takes most, has no colour: it would pale everything else.
    """
    panels = {
        name: [
            Span(word.start, word.stop, 100 * word.weight, word.kind, coloured=word.kind != PUNCTUATION)
            for word in of_model.words
        ]
        for name, of_model in attention.items()
    }
    notes = ["Attention from [CLS] to each word; punctuation is not coloured."]
    for name, of_model in attention.items():
        notes += cut_notes(name, of_model.tokens, of_model.cut)
    write_heat_map(path, text, panels, title, unit="%", note=" ".join(notes))


if __name__ == "__main__":
    main()
