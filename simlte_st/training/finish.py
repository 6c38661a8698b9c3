"""Last stages of a run: finish the trained model, compare it with its base, and save one of them with a model card."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sentence_transformers import SentenceTransformer

from simlte_st.distributed import from_main, on_main
from simlte_st.errors import DataError, format_count
from simlte_st.evaluation.comparison import HALF_LENGTH, TFIDF, compare_halves, compare_probes
from simlte_st.evaluation.splits import split_by_label
from simlte_st.evaluation.verdict import give_verdict
from simlte_st.files import RUN_FILE, atomic_path, write_json
from simlte_st.models.cards import write_model_card
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.limits import Truncation
from simlte_st.models.lsa import DIMENSION, end_with_lsa
from simlte_st.models.names import shortest_name, shown_base
from simlte_st.models.static import is_plain, write_for_model2vec
from simlte_st.modules import TokenTable
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.training.callbacks import check_converged
from simlte_st.training.fit import TrainingStats
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import TrainingSetup
from simlte_st.training.presets import ONLY_ENCODERS
from simlte_st.training.result import ModelChoice, TrainingResult
from simlte_st.training.run import Run, report_path

logger = logging.getLogger(__name__)


@on_main
def choose_model(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, stats: TrainingStats, *, measure: bool = True,
    probe: bool = False, lsa: int | None = None, keep: Literal["verdict", "trained"] = "verdict",
) -> ModelChoice:  # fmt: skip
    """Finish the trained model and its base, compare them on held-out documents, and choose one.

    If the run calls for it, both models get a latent semantic analysis (LSA) and read documents in chunks. The verdict
    compares the models with LSA, on top of which training gains less, but without chunks, because it was calibrated
    without them.

    Args:
        run: The run.
        setup: The trained model and its base.
        corpus: The documents.
        stats: Number of steps and log of the training.
        measure: Whether documents were held out to compare the models.
        probe: Whether a probe on the labels of the held-out documents counts towards the verdict.
        lsa: Number of LSA dimensions to append or fold in; 0 for none, None for the default.
        keep: ``"verdict"`` to let the verdict choose the model, ``"trained"`` to always keep the trained model.
    """
    model, tokens = setup.model, corpus.token_views
    if not setup.static:
        model.max_seq_length = setup.reads  # training views may have been shorter
    check_converged(model, corpus.examples, "at the end")
    models = {"trained": model}
    if measure:
        models["base"] = setup.base.model.eval()
    final = dict(models)
    if corpus.in_chunks:
        final = {name: to_chunk_mean(candidate, WHOLE_DOCUMENTS) for name, candidate in models.items()}
    if lsa is None and setup.static and corpus.stream is None:
        lsa = DIMENSION
    if lsa:
        texts = (" ".join(row["sentences"]) for row in corpus.sentences)
        counts = None if tokens is None else tokens.counts(model.tokenizer)
        # The final models come first, because LSA counts the tokens that the first model reads.
        all_models = [*final.values(), *(models.values() if corpus.in_chunks else ())]
        lsa = end_with_lsa(all_models, texts if counts is None else counts, lsa, run.seed, run.progress)
        check_converged(final["trained"], corpus.examples, "with the latent semantic analysis")
    gain = measure_gain(run, setup, corpus, stats, models, probe=probe) if measure else None
    helped = gain is not None and gain["verdict"] == "helped"
    trained = final["trained"]
    table = trained[-1]  # an encoder may already have ended with LSA
    truncation = Truncation.of(trained)
    for lengths in corpus.lengths():
        truncation.add(lengths)
    return ModelChoice(
        trained=trained, base=final.get("base"), gain=gain,
        winner="base" if measure and keep == "verdict" and not helped else "trained",
        lsa=table.dimension if isinstance(table, TokenTable) else lsa or None, truncation=truncation,
    )  # fmt: skip


def measure_gain(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, stats: TrainingStats,
    models: Mapping[str, SentenceTransformer], *, probe: bool,
) -> dict[str, Any] | None:  # fmt: skip
    """Return the verdict on the held-out documents, with its measures, or None if there are too few documents."""
    models = {name: models[name] for name in ("base", "trained")}
    scores = None
    try:
        halves = compare_halves(
            models, corpus.held_out, half_length=None if setup.static else HALF_LENGTH,
            segmenter=corpus.segmenter if setup.static else setup.views.segmenter,  # avoids training Punkt again
            seed=run.seed, progress=run.progress,
        )  # fmt: skip
        if probe:
            train, test = split_by_label(corpus.labelled, 0.5, run.seed)
            probes = compare_probes(models, train, test, draws=20, seed=run.seed, progress=run.progress)
            scores = probes["base"].few_shot, probes["trained"].few_shot
        tfidf = halves[TFIDF], probes[TFIDF].few_shot if probe else None
        verdict = give_verdict(halves["base"], halves["trained"], scores, run.seed, tfidf=tfidf)
    except DataError as error:
        logger.warning("Cannot measure the gain: %s", error)
        return None
    metrics = {name: comparison.metrics() for name, comparison in halves.items()}
    return {**verdict.to_dict(), "summary": verdict.summary(), "table": verdict.table(), "halves": metrics}


@from_main
def save(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, stats: TrainingStats, choice: ModelChoice, *,
    report: bool = False,
) -> TrainingResult:  # fmt: skip
    """Save the model to keep and, if that is the base, also the trained model; then remove the work folder.

    Args:
        run: The run.
        setup: The base and the preset.
        corpus: The documents.
        stats: Number of steps, time and log of the training.
        choice: The finished models, and which one to keep.
        report: Whether to write the HTML report.
    """
    output, corpus_report = run.folder.output, corpus.report
    if corpus.stream is not None:
        usage = corpus.stream.stream.usage(stats.steps * setup.preset.batch_size)
        corpus_report = replace(corpus_report, documents=usage.documents)
    result = TrainingResult(
        output=output, steps=stats.steps, seconds=stats.seconds, preset=setup.preset, dtype=stats.dtype,
        read=corpus.reader_report, corpus=corpus_report,
        truncation=replace(choice.truncation, model=shortest_name(str(output))), kept=choice.winner, gain=choice.gain,
        static=setup.static, lsa=choice.lsa, whole=corpus.in_chunks, log=stats.log,
        report=report_path(output) if report else None,
    )  # fmt: skip
    models = {output: choice.trained}
    if choice.winner == "base":
        assert choice.base is not None
        models = {run.folder.trained: choice.trained, output: choice.base}
    for path, model in models.items():
        _save_model(model, path, run, setup, result, is_base=model is choice.base)
    if report:
        from simlte_st.training.report import write_report  # imports bokeh

        write_report(run, setup, corpus, choice, result)
    run.folder.close()
    return result


def _save_model(
    model: SentenceTransformer, output: Path, run: Run, setup: TrainingSetup, result: TrainingResult, *, is_base: bool
) -> None:
    """Save a model with its model card and the result of the run."""
    base, distilled = setup.base.name, setup.static and run.folder.base.exists()
    with atomic_path(output) as path:
        model.model_card_data.model_name = output.name
        model.save_pretrained(str(path))
        if is_plain(model):
            write_for_model2vec(path)
        write_json(path / RUN_FILE, {"base": base, "seed": run.seed, **result.to_dict()})
        summary = _card_summary(result, shown_base(base), distilled=distilled, is_base=is_base)
        write_model_card(path, base=base, summary=summary, about=_card_section(result, run.seed))


def _card_summary(result: TrainingResult, base: str, *, distilled: bool, is_base: bool) -> str:
    """Return a summary for the model card, with the verdict."""
    verdict = result.gain["summary"] if result.gain else "The effect of training was not measured."
    source = f"`{base}`{' distilled to a static model' * distilled}"
    number = format_count(result.corpus.documents, "document")
    lsa = f" with a latent semantic analysis {'folded in' if result.static else 'appended'}" if result.lsa else ""
    if is_base:
        return f"This is {source}{lsa}, as it was before training on {number}. {verdict}"
    return f"This is {source}, trained without labels by simlte_st on {number}{lsa and ','}{lsa}. {verdict}"


def _card_section(result: TrainingResult, seed: int) -> str:
    """Return a description of the run for the model card, in Markdown."""
    preset, max_length = result.preset, result.truncation.max_seq_length
    unused = {"view", "epochs" if preset.steps else "steps", *(ONLY_ENCODERS if result.static else ())}
    settings = {name: value for name, value in vars(preset).items() if name not in unused and value is not None}
    settings |= {"lsa": result.lsa, "seed": seed}
    method = f"Training pulls two views of each document (`{preset.view}`) together and pushes other documents away."
    facts = [*result.facts(), f"Settings: `{', '.join(f'{name}={value}' for name, value in settings.items())}`"]
    table = [f"\n{result.gain['table']}"] if result.gain else []
    limit = "The model ignores word order. For sentences and short texts, an encoder is better."
    if not result.static:
        advice = replace(result.truncation, model=result.output.name).advice
        limit = f"The model reads only the first {max_length:,} tokens of a text. {advice}" if max_length else ""
    limits = f"The model was measured only on the documents of this run; evaluate it on your own. {limit}"
    heading = f"## DocSplit training\n\n{method} No labels are used.\n"
    return "\n".join([heading, *(f"- {fact}" for fact in facts), *table, f"\n## Limits\n\n{limits.rstrip()}"])
