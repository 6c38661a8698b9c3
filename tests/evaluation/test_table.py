from __future__ import annotations

from simlte_st.evaluation import FewShotResult, ProbeResult, SplitHalfResult
from simlte_st.evaluation.comparison import ProbeComparison
from simlte_st.evaluation.table import comparison_table, markdown_table


def test_columns_are_aligned() -> None:
    assert markdown_table(["model", "x"], [["a", "1.0"], ["longer name", "12.5"]]) == (
        "| model       |    x |\n|-------------|-----:|\n| a           |  1.0 |\n| longer name | 12.5 |"
    )


def test_numbers_are_percentages_with_their_spread() -> None:
    split_half = {"m": SplitHalfResult(0.5, 0.4, 0.6, 0.625, 0.5, 0.75, 100, 0.25, -3.0)}
    draws = FewShotResult((ProbeResult(0.5, 0.4), ProbeResult(0.6, 0.5)))
    table = comparison_table(split_half, {"m": ProbeComparison(draws, ProbeResult(0.9, 0.875))})
    row = table.splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "m", "50.0 [40.0, 60.0]", "62.5 [50.0, 75.0]", "0.250", "-3.000", "55.0 ± 7.1", "45.0 ± 7.1", "90.0", "87.5",
    ]  # fmt: skip
    assert "probe" not in comparison_table(split_half)
