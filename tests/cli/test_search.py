from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from simlte_st.cli.search import reason_lines, table_lines

LONG = "transcripts/2019/spring/linear-algebra/lecture-17-orthogonal-matrices-and-gram-schmidt.txt"


def hit(name: str) -> Any:
    return SimpleNamespace(id=name, cosine=0.5, bm25=None, reranked=None, sentences=[("A sentence.", 0.5)], words=[])


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("names", [["a1", LONG], [LONG, LONG[:-4] + ".srt"], ["a1", "b2"], ["数学" * 20, "a1"]])
def test_an_id_is_whole_whatever_its_length(names: list[str], width: int) -> None:
    hits: Any = [hit(name) for name in names]
    lines = list(table_lines(hits, ["Head"] * len(hits), [["Below"]] * len(hits), width))
    for rank, name in enumerate(names, start=1):
        [line] = [line for line in lines if line.startswith(f"{rank:>4}  ")]
        assert line.removeprefix(f"{rank:>4}  ").split("  ")[0] == name
    assert sum("0.500" in line for line in lines) == len(names)
    assert len({line.index("0.500") for line in lines if "0.500" in line}) == 1, "numbers stand below each other"
    assert f"   1  {names[0]}" in list(reason_lines(1, hits[0], width))


def test_short_ids_have_one_line_each() -> None:
    hits: Any = [hit("a1"), hit("article-17")]
    assert len(list(table_lines(hits, ["Head"] * 2, [[]] * 2, 80))) == 3
