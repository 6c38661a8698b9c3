"""Last stage of a run: save the model with its card, and write the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sentence_transformers import SentenceTransformer

from simlte_st.distributed import from_main
from simlte_st.errors import format_count
from simlte_st.files import RUN_FILE, atomic_path, write_json
from simlte_st.models.cards import write_model_card
from simlte_st.models.names import shortest_name, shown_base
from simlte_st.models.static import is_plain, write_for_model2vec
from simlte_st.training.choose_model import ModelChoice
from simlte_st.training.fit import TrainingStats
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import TrainingSetup
from simlte_st.training.presets import ONLY_ENCODERS
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import Run, report_path


@from_main
def save(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, stats: TrainingStats, choice: ModelChoice, *,
    report: bool = False,
) -> TrainingResult:  # fmt: skip
    """Save the finished model and, if that is the base, the trained model beside it; remove the work folder.

    Args:
        run: The run.
        setup: Base and preset of the model.
        corpus: The documents.
        stats: Steps, time and log of the training.
        choice: The models, and which one to keep.
        report: Whether to write the report.
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
    """Save a model with its card and the result of the run."""
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
    """Return a description of a model with the verdict."""
    verdict = result.gain["summary"] if result.gain else "Whether training helped was not measured."
    source = f"`{base}`{' distilled to a static model' * distilled}"
    number = format_count(result.corpus.documents, "document")
    lsa = f" with a latent semantic analysis {'folded in' if result.static else 'appended'}" if result.lsa else ""
    if is_base:
        return f"This is {source}{lsa}, as it was before training on {number}. {verdict}"
    return f"This is {source}, trained without labels by simlte_st on {number}{lsa and ','}{lsa}. {verdict}"


def _card_section(result: TrainingResult, seed: int) -> str:
    """Return a description of a run in Markdown."""
    preset, max_length = result.preset, result.truncation.max_seq_length
    unused = {"view", "epochs" if preset.steps else "steps", *(ONLY_ENCODERS if result.static else ())}
    settings = {name: value for name, value in vars(preset).items() if name not in unused and value is not None}
    settings |= {"lsa": result.lsa, "seed": seed}
    method = f"Training pulls two views of each document (`{preset.view}`) together, and pushes other documents away."
    facts = [*result.facts(), f"Settings: `{', '.join(f'{name}={value}' for name, value in settings.items())}`"]
    table = [f"\n{result.gain['table']}"] if result.gain else []
    limit = "Word order does not count. For sentences and short texts an encoder is better."
    if not result.static:
        advice = replace(result.truncation, model=result.output.name).advice
        limit = f"Only the first {max_length:,} tokens of a text are read. {advice}" if max_length else ""
    limits = f"Measured on the documents of this training only: evaluate it on yours. {limit}"
    heading = f"## DocSplit training\n\n{method} It uses no labels.\n"
    return "\n".join([heading, *(f"- {fact}" for fact in facts), *table, f"\n## Limits\n\n{limits.rstrip()}"])
