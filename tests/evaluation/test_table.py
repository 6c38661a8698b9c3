from __future__ import annotations

from simlte_st.evaluation import FewShotResult, ProbeResult, SplitHalfResult, StructureResult
from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison
from simlte_st.evaluation.table import comparison_table, markdown_table


def test_columns_are_aligned() -> None:
    assert markdown_table(["model", "x"], [["a", "1.0"], ["longer name", "12.5"]]) == (
        "| model       |    x |\n|-------------|-----:|\n| a           |  1.0 |\n| longer name | 12.5 |"
    )


def test_numbers_are_percentages_with_their_spread() -> None:
    split_half = SplitHalfResult(0.5, 0.4, 0.6, 0.625, 0.5, 0.75, 100, 0.25, -3.0)
    halves = {"m": HalvesComparison(StructureResult(0.3, 0.2, 0.4, 100), split_half)}
    draws = FewShotResult((ProbeResult(0.5, 0.4), ProbeResult(0.6, 0.5)))
    table = comparison_table(halves, {"m": ProbeComparison(draws, ProbeResult(0.9, 0.875))})
    row = table.splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "m", "30.0 [20.0, 40.0]", "50.0", "55.0 ± 7.1", "45.0 ± 7.1", "90.0", "87.5",
    ]  # fmt: skip
    assert "shot" not in comparison_table(halves)
