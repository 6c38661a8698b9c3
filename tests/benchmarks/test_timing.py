from __future__ import annotations

import time

from benchmarks.timing import ratio, side_by_side, spread


def test_jobs_take_turns_and_the_first_turn_does_not_count() -> None:
    calls: list[str] = []

    def job(name: str, seconds: float) -> None:
        calls.append(name)
        time.sleep(seconds)

    seconds = side_by_side({"a": lambda: job("a", 0.04), "b": lambda: job("b", 0.01)}, 3)
    assert calls == ["a", "b"] * 4
    assert [len(each) for each in seconds.values()] == [3, 3]
    assert 1.5 < ratio(seconds["a"], seconds["b"]) < 6
    low, high = spread(seconds["a"], seconds["b"])
    assert low <= ratio(seconds["a"], seconds["b"]) <= high
