"""The end of a run: the gain measured, and the model saved with its card."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from simlte_st.data.corpus import document_lengths
from simlte_st.data.document import Document
from simlte_st.errors import DataError
from simlte_st.evaluation.comparison import compare_halves, compare_probes
from simlte_st.evaluation.few_shot import FewShotResult
from simlte_st.evaluation.splits import split_by_label
from simlte_st.evaluation.verdict import give_verdict, is_longer
from simlte_st.files import RUN_FILE, atomic_path, write_json
from simlte_st.models.cards import write_model_card
from simlte_st.models.lsa import end_with_lsa
from simlte_st.models.names import name_of, shown_base
from simlte_st.models.truncation import Truncation
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.training.divergence import check_embeddings, check_weights
from simlte_st.training.fit import Fitted
from simlte_st.training.model import Trainee
from simlte_st.training.prepare import Prepared, probe_documents
from simlte_st.training.result import TrainingResult, report_path
from simlte_st.training.run import RunFolder, RunOptions
from simlte_st.training.whole import WholeDocuments

logger = logging.getLogger(__name__)

CHECKED = 32
"""Documents that the finished model encodes before it is saved."""


def finish(
    trainee: Trainee,
    prepared: Prepared,
    whole: WholeDocuments | None,
    fitted: Fitted,
    folder: RunFolder,
    options: RunOptions,
) -> TrainingResult:
    """Make the finished model of a trained one, measure what was gained, and write the model's folder.

    Keeps the base, with its own weights and pooling, when the verdict on the documents held out is not "helped"; the
    trained model is written beside it then. A latent semantic analysis that was asked for is appended to both: the
    verdict is on training. So are both made to read whole documents where the run shall end so; the verdict compares
    them as they read without that, as it was calibrated.
    """
    model = trainee.model
    model.max_seq_length = trainee.reads  # views may have been shorter than what the model reads
    base = trainee.untrained() if options.held_out > 0 else None
    rows = prepared.dataset.with_format(None).select_columns("sentences")
    check_weights(model, "at the end")
    check_embeddings(model, [" ".join(row["sentences"]) for row in rows.select(range(min(CHECKED, len(rows))))])
    models = [model] if base is None else [model, base]
    readers = models if whole is None else [whole.reader(each) for each in models]
    if options.lsa is not None:
        texts = (" ".join(row["sentences"]) for row in rows)
        # The readers first: the analysis counts as much of a document as they read.
        ending = readers if whole is None else [*readers, *models]
        end_with_lsa(ending, texts, options.lsa, options.seed, options.progress)
    gain = None if base is None else measure_gain(base, trainee, fitted, prepared.held_out, options)
    helped = gain is not None and gain["verdict"] == "helped"
    trained, kept = readers[0], readers[0] if base is None or helped or options.keep == "trained" else readers[1]
    truncation = Truncation.of(trained)
    truncation.model = name_of(str(folder.output))
    for lengths in document_lengths(prepared.dataset):
        truncation.add(lengths)
    prepared, passes = prepared.counted(fitted.steps * trainee.preset.batch_size)
    result = TrainingResult(
        output=folder.output,
        steps=fitted.steps,
        seconds=fitted.seconds,
        documents_per_second=fitted.documents_per_second,
        preset=trainee.preset,
        dtype=options.dtype,
        read=prepared.read,
        corpus=prepared.corpus,
        coverage=prepared.coverage,
        passes=passes,
        kept="trained" if kept is trained else "base",
        gain=gain,
        lsa=trained[-1].dimension if isinstance(trained[-1], LatentSemanticAnalysis) else None,
        whole=whole,
        truncation=truncation,
        log=fitted.log,
        report=report_path(folder.output) if options.report else None,
    )
    if kept is not trained:
        save_result(trained, result, folder.trained, trainee.base.name, options.seed)
    save_result(kept, result, folder.output, trainee.base.name, options.seed)
    if result.report is not None:
        from simlte_st.training.report import write_report  # what it imports, other runs need not wait for

        pair, preset = (readers[1], trained), trainee.preset
        loss = f"{type(trainee.loss).__name__} with scale={preset.scale:g} and mlm_weight={preset.mlm_weight:g}"
        held_out, progress = prepared.held_out, options.progress
        write_report(result.report, result, trainee.base.name, pair, held_out, loss, progress=progress)
    folder.close()
    return result


def measure_gain(
    base: SentenceTransformer, trainee: Trainee, fitted: Fitted, held_out: Sequence[Document], options: RunOptions
) -> dict[str, Any] | None:
    """Compare base and trained model on documents held out, with a probe where the run has a column of labels."""
    models = {"base": base, "trained": trainee.model}
    try:
        halves = compare_halves(
            models, held_out, segmenter=options.segmenter, seed=options.seed, progress=options.progress
        )
        probes = None if options.probe is None else probe_held_out(models, held_out, options)
        verdict = give_verdict(halves["base"], halves["trained"], probes, options.seed)
    except DataError as error:
        logger.warning("The gain cannot be measured: %s", error)
        return None
    numbers = {name: result.metrics() for name, result in halves.items()}
    longer = is_longer(fitted.steps, trainee.preset.max_view_length)
    return {**verdict.to_dict(), "summary": verdict.summary(longer), "halves": numbers}


def probe_held_out(
    models: Mapping[str, SentenceTransformer], held_out: Sequence[Document], options: RunOptions
) -> tuple[FewShotResult, FewShotResult]:
    """Probe base and trained model with half of the labelled documents held out, scored on the other half."""
    train, test = split_by_label(probe_documents(held_out), 0.5, options.seed)
    scores = compare_probes(
        models, train, test, draws=20, head="logistic", seed=options.seed, progress=options.progress
    )
    return scores["base"].few_shot, scores["trained"].few_shot


def save_result(model: SentenceTransformer, result: TrainingResult, output: Path, base: str, seed: int) -> None:
    """Write a model with the run's account and a card, in one rename."""
    with atomic_path(output) as path:
        model.model_card_data.model_name = output.name
        model.save_pretrained(str(path))
        run = {"base": base, "seed": seed, **result.to_dict()}
        write_json(path / RUN_FILE, run)
        is_base = result.kept == "base" and output == result.output
        summary = card_summary(run, is_base)
        write_model_card(path, name=output.name, base=base, summary=summary, about=run_section(run))


def card_summary(run: Mapping[str, Any], is_base: bool) -> str:
    """Say in a few sentences what a model is, and whether training helped."""
    base, documents = shown_base(run["base"]), f"{run['corpus']['documents']:,} documents"
    verdict = run["gain"]["summary"] if run["gain"] else "Whether training helped was not measured."
    analysis = ", with a latent semantic analysis of them appended" if run["lsa"] else ""
    if is_base:
        return f"{verdict} So this is `{base}` as it was before it was trained on {documents}{analysis}."
    return f"{verdict} This is `{base}` trained without labels by simlte_st on {documents}{analysis}."


def run_section(run: Mapping[str, Any]) -> str:
    """Describe a run in Markdown."""
    corpus, coverage, preset, truncation = (run[name] for name in ("corpus", "coverage", "preset", "truncation"))
    skipped = {**run["read"].get("skipped", {}), **corpus["left_out"]}
    lines = [
        "## DocSplit training",
        "",
        "Two views of one document should lie close, other documents far.",
        "",
        f"- Views: `{preset['view']}`",
        f"- Documents: {corpus['documents']:,} ({_sizes(run)})",
        f"- {truncation['summary']} {truncation['advice']}".rstrip(),
        *([f"- {run['whole']['summary']}"] if run["whole"] else []),
        *(["- Left out: " + ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())] if skipped else []),
        f"- Seen in one pass: {coverage['share']:.1%} of the tokens; a part of {coverage['cut']:,} of "
        f"{coverage['documents']:,} documents looked at stays unseen in it",
        f"- Steps: {run['steps']:,} in {run['seconds']:,.0f} s ({run['documents_per_second']:.2g} documents a second)",
        "- Settings: " + ", ".join(f"{name} {value}" for name, value in preset.items() if name != "view"),
        *([f"- Appended: latent semantic analysis, {run['lsa']} dimensions"] if run["lsa"] else []),
        f"- Seed: {run['seed']}; computed in {run['dtype']}",
    ]
    return "\n".join(lines)


def _sizes(run: Mapping[str, Any]) -> str:
    corpus, passes = run["corpus"], run["passes"]
    sizes = (
        f"{corpus['tokens']:,} tokens, {corpus['sentences']:,} sentences; the longest has {corpus['longest']:,} tokens"
    )
    if passes is None:
        return sizes
    return f"of a stream, each taken {passes:.3g} times; the first {run['truncation']['texts']:,}: {sizes}"
