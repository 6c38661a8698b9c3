from __future__ import annotations

from simlte_st.evaluation import FewShotResult, ProbeResult, SplitHalfResult, StructureResult
from simlte_st.evaluation.comparison import HalvesComparison, ProbeComparison, comparison_table


def test_numbers_are_percentages_with_their_spread() -> None:
    split_half = SplitHalfResult(0.5, 0.4, 0.6, 0.625, 0.5, 0.75, 100, 0.25, -3.0)
    halves = {"m": HalvesComparison(StructureResult(0.3, 0.2, 0.4, 100), split_half)}
    draws = FewShotResult((ProbeResult(0.5, 0.4), ProbeResult(0.6, 0.5)))
    table = comparison_table(halves, {"m": ProbeComparison(draws, ProbeResult(0.9, 0.875))})
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["without labels", "same neighbours [95%]", "split-half top-1"]
    assert rows[2] == ["m", "30.0 [20.0, 40.0]", "50.0"]
    assert rows[4] == ["with labels", "5-shot acc.", "5-shot F1", "full acc.", "full F1"]
    assert rows[6] == ["m", "55.0 ± 7.1", "45.0 ± 7.1", "90.0", "87.5"]
    assert "shot acc" not in comparison_table(halves)


def test_tables_fit_where_names_are_long() -> None:
    split_half = SplitHalfResult(0.5, 0.4, 0.6, 0.625, 0.5, 0.75, 100, 0.25, -3.0)
    result = HalvesComparison(StructureResult(1.0, 0.999, 1.0, 100), split_half)
    draws = FewShotResult((ProbeResult(1.0, 1.0), ProbeResult(0.1, 0.1)))
    probe = ProbeComparison(draws, ProbeResult(1.0, 1.0))
    names = ["TF-IDF", "/a/long/way/to/the/folder/of/the/models/base", "/a/long/way/to/the/folder/of/the/models/mine"]
    table = comparison_table(dict.fromkeys(names, result), dict.fromkeys(names, probe), width=80)
    lines = table.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split("|")[1].strip()[-11:] for line in lines if "models/" in line] == 2 * [
        "models/base",
        "models/mine",
    ]
    assert names[1] in comparison_table(dict.fromkeys(names, result))
