from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.grid.figures import gain_intervals, learning_curves, redundancy_bars, score_bars

ODD = "DocSplit <b> & co"
NAN = float("nan")
TITLES = {"title": "<title>", "y_label": "macro-F1, %"}

CURVES = {ODD: {1: (10.0, 2.0), 8: (30.0, 1.0)}, "SimCSE": {1: (9.0, 2.0), 2: (15.0, 0.0), 8: (35.0, 1.0)}}
GROUPS = {"20News": {"SimCSE": (50.0, 2.0)}, "arXiv": {"SimCSE": (40.0, 1.0), ODD: (60.0, 0.0)}}
ROWS = {ODD: (12.0, 8.0, 16.5), "full": (-3.9, -5.0, 1.0), "no interval": (2.0, NAN, NAN)}
LENGTHS = {
    "fakenews": {"0-50": 1.06, "more than 300": 1.52, "all": 1.37},
    ODD: {"0-50": 1.0, "51-100": 1.25, "all": 1.3},
}

FIGURES: dict[str, tuple[Callable[..., None], Any, dict[str, str], list[str]]] = {
    "curves": (learning_curves, CURVES, TITLES, [*CURVES, "1", "2", "8", "labelled examples a class"]),
    "bars": (score_bars, GROUPS, TITLES, [*GROUPS, "SimCSE", ODD]),
    "gains": (
        gain_intervals,
        ROWS,
        {"title": "gains", "x_label": "gain, %"},
        [*ROWS, "+12.0  [+8.0, +16.5]", "−3.9  [−5.0, +1.0]", "+2.0"],
    ),
    "redundancies": (
        redundancy_bars,
        LENGTHS,
        {"title": "<title>"},
        [*LENGTHS, "0-50", "51-100", "more than 300", "all", "words of a document", "1.06", "1.00", "1.52"],
    ),
}


@pytest.fixture
def matplotlib() -> Any:
    return pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra figures)")


def written(path: Path) -> list[str]:
    """Return the texts of a figure whose texts were not made into shapes."""
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", FIGURES)
def test_names_and_numbers_are_drawn(name: str, tmp_path: Path, matplotlib: Any) -> None:
    draw, values, words, expected = FIGURES[name]
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # else letters are shapes
        draw(tmp_path / "figure.svg", values, **words)
    texts = written(tmp_path / "figure.svg")
    for text in (*expected, *words.values()):
        assert text in texts


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_numbers_give_the_same_bytes(name: str, tmp_path: Path, matplotlib: Any) -> None:
    before = dict(matplotlib.rcParams)
    draw, values, words, _ = FIGURES[name]
    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
        for path in paths:
            draw(path, values, **words)
        first, second = (path.read_bytes() for path in paths)
        assert first.startswith(start)
        assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.png", "0.svg", "1.png", "1.svg"]
    assert dict(matplotlib.rcParams) == before


LACKING = {"a": {"1": 1.1, "3": 1.3, "all": 1.2}, "b": {"1": 1.1, "2": 1.2, "3": 1.3, "all": 1.2}}


@pytest.mark.parametrize(
    ("draw", "values", "words", "expected"),
    [
        (learning_curves, CURVES, TITLES, ["SimCSE", ODD]),  # as curves end
        (redundancy_bars, LACKING, {"title": ""}, ["1", "2", "3", "all"]),  # where one is missing
    ],
)
def test_labels_keep_their_order(
    draw: Any, values: Any, words: dict[str, str], expected: list[str], tmp_path: Path, matplotlib: Any
) -> None:
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw(tmp_path / "figure.svg", values, **words)
    assert [text for text in written(tmp_path / "figure.svg") if text in expected] == expected


@pytest.mark.usefixtures("matplotlib")
def test_many_systems(tmp_path: Path) -> None:
    names = [f"system {number}" for number in range(23)]
    learning_curves(tmp_path / "curves.svg", {name: {5: (50.0, 0.0)} for name in names}, **TITLES)
    score_bars(tmp_path / "bars.svg", {"a": dict.fromkeys(names, (50.0, 1.0))}, **TITLES)
    assert all((tmp_path / name).stat().st_size for name in ("curves.svg", "bars.svg"))
