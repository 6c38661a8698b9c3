from __future__ import annotations

from benchmarks.timing import ratio, side_by_side, spread


def test_jobs_take_turns_and_the_first_turn_does_not_count() -> None:
    calls: list[str] = []
    now = 0.0

    def job(name: str, seconds: list[float]) -> None:
        nonlocal now
        calls.append(name)
        now += seconds[calls.count(name) - 1]

    jobs = {"a": lambda: job("a", [9, 4, 6, 5]), "b": lambda: job("b", [9, 1, 2, 4])}
    seconds = side_by_side(jobs, 3, clock=lambda: now)
    assert calls == ["a", "b"] * 4
    assert seconds == {"a": [4, 6, 5], "b": [1, 2, 4]}
    assert ratio(seconds["a"], seconds["b"]) == 5 / 2
    assert spread(seconds["a"], seconds["b"]) == (5 / 4, 4)
