"""Results of several models as one table: for the terminal and for model cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison


def comparison_table(
    halves: Mapping[str, HalvesComparison], probes: Mapping[str, ProbeComparison] | None = None, shots: int = 5
) -> str:
    """Make a Markdown table, a row a model.

    Args:
        halves: What the halves of documents say, by model; may be empty.
        probes: Probe results by model.
        shots: Examples a class of the few-shot probe, for its heading.

    Returns:
        The table; numbers are percentages.
    """
    header = ["model"]
    if halves:
        header += ["same neighbours [95%]", "split-half top-1"]
    if probes:
        header += [f"{shots}-shot accuracy", f"{shots}-shot macro-F1", "full accuracy", "full macro-F1"]
    rows = []
    for name in halves or probes or {}:
        row = [name]
        if halves:
            structure = halves[name].structure
            row += [
                _interval(structure.agreement, structure.low, structure.high),
                f"{100 * halves[name].split_half.top1:.1f}",
            ]
        if probes:
            metrics = probes[name].metrics()
            row += [
                _spread(metrics["few_shot_accuracy_mean"], metrics["few_shot_accuracy_deviation"]),
                _spread(metrics["few_shot_macro_f1_mean"], metrics["few_shot_macro_f1_deviation"]),
                f"{100 * metrics['full_accuracy']:.1f}",
                f"{100 * metrics['full_macro_f1']:.1f}",
            ]
        rows.append(row)
    return markdown_table(header, rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table that reads well as plain text too: columns aligned, numbers to the right."""
    widths = [max(len(str(row[column])) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = (
        "|" + "|".join("-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)) + "|"
    )
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def _interval(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _spread(mean: float, deviation: float) -> str:
    return f"{100 * mean:.1f} ± {100 * deviation:.1f}"
