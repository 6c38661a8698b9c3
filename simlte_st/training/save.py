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
from simlte_st.training.choose_model import Finished
from simlte_st.training.fit import Fitted
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import Loaded
from simlte_st.training.presets import ONLY_ENCODERS
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import Run, report_path


@from_main
def save(
    run: Run, loaded: Loaded, corpus: TrainingCorpus, fitted: Fitted, finished: Finished, *, report: bool = False
) -> TrainingResult:
    """Save the finished model and, if that is the base, the trained model beside it; remove the run's work folder.

    Args:
        run: The run.
        loaded: Base and preset of the model.
        corpus: The documents.
        fitted: Result of the training.
        finished: The models, and which one to keep.
        report: Whether to write the report.
    """
    output, read, documents = run.folder.output, corpus.read, corpus.report
    if corpus.stream is not None:
        taken = corpus.stream.stream.usage(fitted.steps * loaded.preset.batch_size)
        documents = replace(documents, documents=taken.documents)
    result = TrainingResult(
        output=output,
        **vars(fitted),
        preset=loaded.preset,
        read=read,
        corpus=documents,
        truncation=replace(finished.truncation, model=shortest_name(str(output))),
        kept=finished.kept,
        gain=finished.gain,
        static=loaded.static,
        lsa=finished.lsa,
        whole=corpus.whole,
        report=report_path(output) if report else None,
    )
    kept = {output: finished.trained}
    if finished.kept == "base":
        assert finished.base is not None
        kept = {run.folder.trained: finished.trained, output: finished.base}
    for path, model in kept.items():
        _save_model(model, path, run, loaded, result, is_base=model is finished.base)
    if report:
        from simlte_st.training.report import write_report  # imports much

        write_report(run, loaded, corpus, finished, result)
    run.folder.close()
    return result


def _save_model(
    model: SentenceTransformer, output: Path, run: Run, loaded: Loaded, result: TrainingResult, *, is_base: bool
) -> None:
    """Save a model with the result of its run and a card."""
    base, distilled = loaded.base.name, loaded.static and run.folder.base.exists()
    with atomic_path(output) as path:
        model.model_card_data.model_name = output.name
        model.save_pretrained(str(path))
        if is_plain(model):
            write_for_model2vec(path)
        write_json(path / RUN_FILE, {"base": base, "seed": run.seed, **result.to_dict()})
        summary = _card_summary(result, shown_base(base), distilled=distilled, is_base=is_base)
        write_model_card(path, name=output.name, base=base, summary=summary, about=_card_section(result, run.seed))


def _card_summary(result: TrainingResult, base: str, *, distilled: bool, is_base: bool) -> str:
    """Return a description of a model, and the verdict."""
    verdict = result.gain["summary"] if result.gain else "Whether training helped was not measured."
    source = f"`{base}`{' distilled to a static model' * distilled}"
    number = format_count(result.corpus.documents, "document")
    lsa = f" with a latent semantic analysis {'folded in' if result.static else 'appended'}" if result.lsa else ""
    if is_base:
        return f"This is {source}{lsa}, as it was before training on {number}. {verdict}"
    return f"This is {source}, trained without labels by simlte_st on {number}{lsa and ','}{lsa}. {verdict}"


def _card_section(result: TrainingResult, seed: int) -> str:
    """Return a description of a run in Markdown."""
    preset, reads = result.preset, result.truncation.max_seq_length
    unused = {"view", "epochs" if preset.steps else "steps", *(ONLY_ENCODERS if result.static else ())}
    values = {name: value for name, value in vars(preset).items() if name not in unused and value is not None}
    settings = ", ".join(f"{name}={value}" for name, value in {**values, "lsa": result.lsa, "seed": seed}.items())
    how = f"Training pulls two views of each document (`{preset.view}`) together, and pushes other documents away."
    facts = [*result.facts(), f"Settings: `{settings}`"]
    table = [f"\n{result.gain['table']}"] if result.gain else []
    limit = "Word order does not count. For sentences and short texts an encoder is better."
    if not result.static:
        advice = replace(result.truncation, model=result.output.name).advice
        limit = f"Only the first {reads:,} tokens of a text are read. {advice}" if reads else ""
    limits = f"Measured on the documents of this training only: evaluate it on yours. {limit}"
    heading = f"## DocSplit training\n\n{how} It uses no labels.\n"
    return "\n".join([heading, *(f"- {fact}" for fact in facts), *table, f"\n## Limits\n\n{limits.rstrip()}"])
