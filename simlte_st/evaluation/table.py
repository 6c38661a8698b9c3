"""Results of several models as one table: for the terminal and for model cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison


def comparison_table(
    halves: Mapping[str, HalvesComparison],
    probes: Mapping[str, ProbeComparison] | None = None,
    shots: int = 5,
    width: int | None = None,
) -> str:
    """Make Markdown tables, a row a model: one of what documents say without labels, one of the probes with labels.

    Args:
        halves: What the halves of documents say, by model; may be empty.
        probes: Probe results by model.
        shots: Examples a class of the few-shot probe, for its heading.
        width: Columns that a line shall have at most; longer names lose their beginning. None shows them whole.

    Returns:
        The tables, with an empty line between them; numbers are percentages, F1 is macro-F1.
    """
    tables = []
    if halves:
        rows = [
            [
                name,
                _interval(result.structure.agreement, result.structure.low, result.structure.high),
                f"{100 * result.split_half.top1:.1f}",
            ]
            for name, result in halves.items()
        ]
        tables.append(named_table(["without labels", "same neighbours [95%]", "split-half top-1"], rows, width))
    if probes:
        rows = []
        for name, probe in probes.items():
            metrics = probe.metrics()
            row = [
                _spread(metrics["few_shot_accuracy_mean"], metrics["few_shot_accuracy_deviation"]),
                _spread(metrics["few_shot_macro_f1_mean"], metrics["few_shot_macro_f1_deviation"]),
                f"{100 * metrics['full_accuracy']:.1f}",
                f"{100 * metrics['full_macro_f1']:.1f}",
            ]
            rows.append([name, *row])
        header = ["with labels", f"{shots}-shot acc.", f"{shots}-shot F1", "full acc.", "full F1"]
        tables.append(named_table(header, rows, width))
    return "\n\n".join(tables)


def named_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Lay out a Markdown table whose rows begin with names, which are shortened where it would be too wide."""
    table = markdown_table(header, rows)
    over = 0 if width is None else len(table.partition("\n")[0]) - width
    if over <= 0:
        return table
    longest = max(len(row[0]) for row in rows) - over
    names = short_names([row[0] for row in rows], max(longest, len(header[0])))
    return markdown_table(header, [[names[row[0]], *row[1:]] for row in rows])


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Shorten names, such as paths, to their ends, where these tell them apart."""
    shown = {name: name if len(name) <= width else f"…{name[len(name) - width + 1 :]}" for name in names}
    return shown if len(set(shown.values())) == len(shown) else {name: name for name in names}


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
