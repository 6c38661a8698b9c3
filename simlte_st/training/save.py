"""Last stage of a run: the model folder with its card, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from simlte_st.data.report import counted
from simlte_st.distributed import on_main
from simlte_st.files import RUN_FILE, atomic_path, write_json
from simlte_st.models.cards import write_model_card
from simlte_st.models.names import name_of, shown_base
from simlte_st.models.static import write_for_model2vec
from simlte_st.training.result import TrainingResult
from simlte_st.training.run import TrainingRun


@on_main
def save(run: TrainingRun) -> TrainingRun:
    """Write the finished model; if that is the base, the trained one beside it."""
    run.truncation.model = name_of(str(run.output))
    if run.stream is not None:
        taken = run.stream.stream.taken(run.steps * run.preset.batch_size)
        run.read["skipped"], run.passes = taken.skipped, taken.passes
        run.corpus = replace(run.corpus, documents=taken.documents, left_out=taken.left_out)
        run.coverage = replace(run.coverage, total=taken.documents)
    result = TrainingResult(**{item.name: getattr(run, item.name) for item in fields(TrainingResult)})
    trained, *base = run.finished
    if run.kept == "base":
        save_model(run, result, trained, run.folder.trained)
    save_model(run, result, trained if run.kept == "trained" else base[0], run.output)
    if run.report is not None:
        from simlte_st.training.report import write_report  # other runs need not wait for what it imports

        write_report(run, result, run.report)
    run.folder.close()
    run.result = result
    return run


def save_model(run: TrainingRun, result: TrainingResult, model: SentenceTransformer, output: Path) -> None:
    """Write a model folder with the result of a run and a card, in one rename."""
    with atomic_path(output) as path:
        model.model_card_data.model_name = output.name
        model.save_pretrained(str(path))
        if run.static and isinstance(model[-1], Normalize):
            write_for_model2vec(path)
        distilled = run.static and run.folder.base.exists()
        about = {"base": run.base.name, "distilled": distilled, "seed": run.config.seed, **result.to_dict()}
        write_json(path / RUN_FILE, about)
        summary = card_summary(about, is_base=run.kept == "base" and output == run.output)
        write_model_card(path, name=output.name, base=run.base.name, summary=summary, about=run_section(about))


def card_summary(run: Mapping[str, Any], is_base: bool) -> str:
    """Return a few sentences on what a model is and whether training helped."""
    base, documents = shown_base(run["base"]), f"{run['corpus']['documents']:,} documents"
    verdict = run["gain"]["summary"] if run["gain"] else "Whether training helped was not measured."
    analysis = ", with a latent semantic analysis of them appended" if run["lsa"] else ""
    static = " It is a static model: a vector for each token, of which a text's is the mean." * run["static"]
    before = ", distilled," * run["distilled"]
    if is_base:
        return (
            f"{verdict} So this is `{base}`{before} as it was before it was trained on {documents}{analysis}.{static}"
        )
    return f"{verdict} This is `{base}`{before} trained without labels by simlte_st on {documents}{analysis}.{static}"


def run_section(run: Mapping[str, Any]) -> str:
    """Return a description of a run in Markdown."""
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
        *(["- Left out: " + ", ".join(counted(count, reason) for reason, count in skipped.items())] if skipped else []),
        f"- Seen in one pass: {coverage['share']:.1%} of the tokens; a part of {coverage['cut']:,} of "
        f"{coverage['documents']:,} documents looked at stays unseen in it",
        f"- Steps: {run['steps']:,} in {run['seconds']:,.0f} s ({run['documents_per_second']:.2g} documents a second)",
        "- Settings: " + ", ".join(f"{name} {value}" for name, value in preset.items() if name != "view"),
        *([f"- Appended: latent semantic analysis, {run['lsa']} dimensions"] if run["lsa"] else []),
        f"- Seed: {run['seed']}; computed in {run['dtype']}",
        *(["", run["gain"]["table"]] if run["gain"] else []),
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
