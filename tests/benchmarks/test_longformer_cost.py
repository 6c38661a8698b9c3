from __future__ import annotations

import pytest

from benchmarks.longformer_cost import attended_pairs


@pytest.mark.parametrize(("length", "window"), [(1, 8), (4, 8), (5, 8), (9, 8), (50, 8), (50, 2), (300, 512)])
def test_attended_pairs_are_those_of_the_rule(length: int, window: int) -> None:
    sees = {
        (query, key)
        for query in range(length)
        for key in range(length)
        if abs(query - key) <= window // 2 or key == 0 or query == 0
    }
    assert attended_pairs(length, window) == len(sees)
