"""The model card: sentence-transformers' own, with what a DocSplit run adds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simlte_st.models.registration import is_own_architecture
from simlte_st.training.gains import gain_summary


def extend_model_card(path: Path, run: Mapping[str, Any]) -> None:
    """Append the run's data, settings and results to a model card.

    Args:
        path: The ``README.md`` that sentence-transformers wrote.
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
        f"- Seed: {run['seed']}",
        "",
    ]
    if run["gain"]:
        lines += [gain_summary(run["gain"]), ""]
    return "\n".join(lines)
