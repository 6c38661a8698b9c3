"""Commands that read documents and write something else: ``dedupe``, ``encode`` and ``explore``."""

from __future__ import annotations

from pathlib import Path

from cyclopts import Parameter

from simlte_st.cli.app import Options, Result, SourceArgument, command
from simlte_st.exploration.explore import explore
from simlte_st.models.encode import Engine, check_vectors, encode_documents
from simlte_st.models.names import check_model
from simlte_st.reading.documents import read_documents
from simlte_st.views.duplicates import dedupe


@command("dedupe", {"": (dedupe,)}, reads=True, names={"near": Parameter(name="--near", negative="--exact")})
def run_dedupe(options: Options, /, *source: SourceArgument, output: str) -> Result:
    """Write documents without exact and near duplicates.

    The first document of each group is kept. A second file lists the removed documents, each with the one that it
    duplicates.

    Args:
        source: {places}.
        output: JSON lines file to write.

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
        simlte encode my-model /nfs/docs --output /nfs/v.parquet --engine ray
    """
    reader = options.read(*source)
    check_vectors(reader, Path(output), **{name: bool(options.get(name)) for name in ("resume", "overwrite")})
    check_model(model)
    device = Engine(**options.of(Engine)).loading_device
    from simlte_st.models.loading import load_model  # takes seconds to import

    loaded = load_model(model, device=device).model
    report = encode_documents(loaded, reader, output, **options.of(encode_documents))
    return Result(report.summary(), {"output": output, **report.to_dict()}, reading=reader.report)


@command("explore", {"": (explore,)}, reads=True, names={"index_model": Parameter(name="--model")})
def run_explore(options: Options, model_or_index: str, /, *source: str, output: str) -> Result:
    """Write a page that shows the content of a corpus: topics, a map and near-duplicates.

    The page works in any browser, without a network. A parquet file with the same name has the position and the topic
    of each document. For a large corpus, build an index first and explore it.

    Args:
        model_or_index: Model, or folder of an index.
        source: For a model, the documents: {places}.
        output: HTML file to write (.html).

    Examples:
        simlte explore my-model my_documents --output corpus.html
        simlte explore articles.index --topics 20 --output corpus.html
    """
    options.refuse_others(run_explore, explore, *([read_documents] if source else []))  # an index is read already
    reader = options.read(*source) if source else None
    report = explore(model_or_index, reader, **options.of(explore))
    return Result(report.summary(), report.to_dict(), reading=report.reading)
