"""Last stage of a run: the model folder with its card, and the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from simlte_st.distributed import from_main
from simlte_st.files import RUN_FILE, atomic_path, write_json
from simlte_st.models.cards import write_model_card
from simlte_st.models.names import name_of, shown_base
from simlte_st.models.static import is_plain, write_for_model2vec
from simlte_st.training.evaluate import Finished
from simlte_st.training.fit import Fitted
from simlte_st.training.load_corpus import Corpus
from simlte_st.training.load_model import Loaded
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import Run, report_path


@from_main
def save(
    run: Run, loaded: Loaded, corpus: Corpus, fitted: Fitted, finished: Finished, *, report: bool = False
) -> TrainingResult:
    """Write the finished model and, if that is the base, the trained one beside it; return the result of the run.

    Args:
        run: The run, whose folder goes.
        loaded: The model's base and preset.
        corpus: The documents.
        fitted: What training did.
        finished: The models, and which of them to keep.
        report: Whether to write the report.
    """
    output, read, documents = run.folder.output, corpus.read, corpus.report
    if corpus.stream is not None:
        taken = corpus.stream.stream.taken(fitted.steps * loaded.preset.batch_size)
        documents = replace(documents, documents=taken.documents)
    result = TrainingResult(
        output=output,
        **vars(fitted),
        preset=loaded.preset,
        read=read,
        corpus=documents,
        truncation=replace(finished.truncation, model=name_of(str(output))),
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
        from simlte_st.training.report import write_report  # other runs need not wait for what it imports

        write_report(run, loaded, corpus, finished, result)
    run.folder.close()
    return result


def _save_model(
    model: SentenceTransformer, output: Path, run: Run, loaded: Loaded, result: TrainingResult, *, is_base: bool
) -> None:
    """Write a model folder with the result of a run and a card, in one rename."""
    base, distilled = loaded.base.name, loaded.static and run.folder.base.exists()
    with atomic_path(output) as path:
        model.model_card_data.model_name = output.name
        model.save_pretrained(str(path))
        if is_plain(model) and isinstance(model[-1], Normalize):
            write_for_model2vec(path)
        write_json(path / RUN_FILE, {"base": base, "seed": run.seed, **result.to_dict()})
        summary = _card_summary(result, shown_base(base), distilled=distilled, is_base=is_base)
        write_model_card(path, name=output.name, base=base, summary=summary, about=_card_section(result, run.seed))


def _card_summary(result: TrainingResult, base: str, *, distilled: bool, is_base: bool) -> str:
    """Return a few sentences on what a model is and whether training helped."""
    verdict = result.gain["summary"] if result.gain else "Whether training helped was not measured."
    source = f"`{base}`{', distilled,' if distilled else ''}"
    place = "folded in" if result.static else "appended"
    lsa = f", with a latent semantic analysis of them {place}" if result.lsa else ""
    made = "as it was before it was trained" if is_base else "trained without labels by simlte_st"
    return f"{verdict} This is {source} {made} on {result.corpus.documents:,} documents{lsa}."


def _card_section(result: TrainingResult, seed: int) -> str:
    """Return a description of a run in Markdown."""
    settings = ", ".join(f"{name} {value}" for name, value in vars(result.preset).items() if name != "view")
    facts = result.facts(replace(result.truncation, model=result.output.name))
    facts.append(f"Views: `{result.preset.view}`. Settings: lsa {result.lsa}, seed {seed}, {settings}")
    heading = "## DocSplit training\n\nTwo views of one document should lie close, other documents far.\n"
    table = [f"\n{result.gain['table']}"] if result.gain else []
    return "\n".join([heading, *(f"- {fact}" for fact in facts), *table])
