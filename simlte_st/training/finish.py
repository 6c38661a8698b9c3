"""The end of a run: adapters merged, part of the way back, the gain measured, the model saved with its card."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from simlte_st.evaluation.comparison import TFIDF, compare_split_half
from simlte_st.evaluation.split_half import SplitHalfResult
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.files import atomic_path, write_json
from simlte_st.models.registration import is_own_architecture
from simlte_st.training.fit import Fitted
from simlte_st.training.interpolation import choose_interpolation, interpolate
from simlte_st.training.lora import merge_lora
from simlte_st.training.model import Trainee
from simlte_st.training.prepare import Prepared
from simlte_st.training.result import RUN_FILE, TrainingResult, gain_summary
from simlte_st.training.run import RunFolder, RunOptions

logger = logging.getLogger(__name__)


def finish(
    trainee: Trainee, prepared: Prepared, fitted: Fitted, folder: RunFolder, options: RunOptions
) -> TrainingResult:
    """Make the finished model of a trained one, measure what was gained, and write the model's folder.

    Args:
        trainee: What was trained; its model becomes the finished one, in place.
        prepared: The documents; those held out are measured on.
        fitted: What the Trainer did.
        folder: Removed when the model is in place.
        options: What the run was told.
    """
    model, held_out = trainee.model, prepared.held_out
    if options.lora is not None:
        merge_lora(model)
    model.max_seq_length = trainee.reads  # short views make training cheap; the model reads what it did
    measuring: dict[str, Any] = {
        "segmenter": options.segmenter, "seed": options.seed, "progress": options.progress
    }  # fmt: skip
    interpolation: dict[str, Any] | None = None
    if trainee.start is not None and options.interpolate == "auto":
        # The choice has seen its documents: the gain is measured on the others.
        choice = choose_interpolation(trainee.start, model, held_out[::2], in_place=True, **measuring)
        logger.info("%s", choice.summary())
        interpolation, held_out = choice.to_dict(), held_out[1::2]
    elif trainee.start is not None and isinstance(options.interpolate, (int, float)):
        interpolate(trainee.start, model, options.interpolate, in_place=True)
        interpolation = {"weight": options.interpolate, "curve": []}
    gain = None
    if len(held_out) >= 2:
        trainee.base.model.eval()
        models = {"base": trainee.base.model, "trained": model}
        gain = gain_record(compare_split_half(models, held_out, **measuring))
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
        gain=gain,
        interpolation=interpolation,
        log=fitted.log,
    )
    save_result(model, result, trainee.base.name, options.seed)
    folder.close()
    return result


def gain_record(results: Mapping[str, SplitHalfResult]) -> dict[str, Any]:
    """Put the results of ``"base"`` and ``"trained"`` (and TF-IDF) into JSON values, with a verdict.

    The verdict compares document by document: the mean difference of reciprocal ranks, trained minus base, with its
    95% interval. ``"helped"`` if the interval lies above 0, ``"hurt"`` if below, else ``"no clear difference"``.
    """
    differences = 1.0 / results["trained"].ranks - 1.0 / results["base"].ranks
    low, high = bootstrap_interval(differences)
    verdict = "helped" if low > 0 else "hurt" if high < 0 else "no clear difference"
    return {
        "documents": results["base"].documents,
        "verdict": verdict,
        "mrr_gain": float(differences.mean()),
        "mrr_gain_low": low,
        "mrr_gain_high": high,
        **{name: results[name].metrics() for name in (TFIDF, "base", "trained")},
    }


def save_result(model: SentenceTransformer, result: TrainingResult, base: str, seed: int) -> None:
    """Write the finished model with its account and its card, in one rename."""
    with atomic_path(result.output) as path:
        model.model_card_data.model_name = result.output.name
        model.save_pretrained(str(path))
        run = {"base": base, "seed": seed, **result.to_dict()}
        write_json(path / RUN_FILE, run)
        extend_model_card(path / "README.md", run)


def extend_model_card(path: Path, run: Mapping[str, Any]) -> None:
    """Append the run's data, settings and results to the card that sentence-transformers wrote.

    Args:
        path: The ``README.md`` in the model's folder.
        run: The values of the run's ``simlte.json``.
    """
    card = path.read_text(encoding="utf-8").rstrip()
    if is_own_architecture(path.parent):
        card += "\n\n## Loading\n\nThe architecture comes with simlte_st: `import simlte_st` before loading the model."
    path.write_text(card + "\n\n" + run_section(run), encoding="utf-8")


def run_section(run: Mapping[str, Any]) -> str:
    """Describe a run in Markdown."""
    corpus, coverage, preset = run["corpus"], run["coverage"], run["preset"]
    lines = [
        "## DocSplit training",
        "",
        f"Trained without labels by simlte_st from `{run['base']}`: two views of one document should lie close, "
        "other documents far. Views: `" + str(preset["view"]) + "`.",
        "",
        f"- Documents: {corpus['documents']:,} ({corpus['tokens']:,} tokens, {corpus['sentences']:,} sentences; "
        f"the longest has {corpus['longest']:,} tokens)",
        f"- Seen in one pass: {coverage['share']:.1%} of the tokens; a part of {coverage['cut']:,} of "
        f"{coverage['documents']:,} documents looked at stays unseen in it",
    ]
    skipped = {**run["read"].get("skipped", {}), **corpus["left_out"]}
    if skipped:
        lines.append("- Left out: " + ", ".join(f"{count:,} {reason}" for reason, count in skipped.items()))
    lines += [
        f"- Steps: {run['steps']:,} in {run['seconds']:,.0f} s ({run['documents_per_second']:.2g} documents a second)",
        "- Settings: " + ", ".join(f"{name} {value}" for name, value in preset.items() if name != "view"),
        f"- Seed: {run['seed']}; computed in {run['dtype']}",
        "",
    ]
    if run["gain"]:
        lines += [gain_summary(run["gain"]), ""]
    return "\n".join(lines)
