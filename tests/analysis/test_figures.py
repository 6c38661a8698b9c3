from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from simlte_st.analysis.alignment import CLASSES, WordWeight
from simlte_st.analysis.attention import AttentionResult, ClassAttention, Estimate, ModelAttention
from simlte_st.analysis.figures import HeatMapPanel, _layout, check_figure, write_bars, write_heat_map
from simlte_st.errors import ConfigurationError, MissingExtraError

NASTY = 'A <script>alert("x & y")</script> costs $5 and $6_a^$,\nisn\'t it? \x1b[31m 長い <b>&amp;</b>'


def words_of(text: str) -> list[WordWeight]:
    found, start = [], 0
    for number, word in enumerate(text.split()):
        start = text.index(word, start)
        found.append(WordWeight(start, start + len(word), "nouns", 0.01 * (number + 1)))
        start += len(word)
    return found


PANELS = [HeatMapPanel("<before> & $x_", words_of(NASTY)), HeatMapPanel("after", words_of(NASTY)[:5])]


class Reader(HTMLParser):
    """Collects the text of the paragraphs, and all tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.grounds: list[str] = []
        self.paragraphs: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "p":
            self.inside = True
            self.paragraphs.append("")
        if tag == "span":
            self.grounds.append(dict(attrs)["style"] or "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "p"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.paragraphs[-1] += data


def test_html_shows_the_text_and_runs_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    write_heat_map(path, NASTY, PANELS, "<title> & more", "12 of 20 tokens were read.")
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert set(reader.tags) <= {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "span", "small"}
    assert reader.paragraphs[0] == NASTY.replace("\x1b", "\ufffd")
    assert reader.paragraphs[1] == NASTY[: PANELS[1].words[-1].stop]
    page = path.read_text(encoding="utf-8")
    for shown in ("&lt;title&gt; &amp; more", "12 of 20 tokens were read.", "&lt;before&gt; &amp; $x_"):
        assert shown in page
    darkness = [float(ground.rstrip(")").rsplit(",", 1)[1]) for ground in reader.grounds]
    first = darkness[: len(PANELS[0].words)]
    assert first == sorted(first)
    assert first[-1] == 0.85
    assert darkness[len(first) :] == first[:5], "the panels have one scale"


def test_punctuation_is_not_coloured(tmp_path: Path) -> None:
    words = [WordWeight(0, 1, "nouns", 0.1), WordWeight(1, 2, "punctuation", 0.9)]
    write_heat_map(tmp_path / "map.html", "a.", [HeatMapPanel("m", words)], "t")
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "0.850)" in page
    assert '0.000)" title="punctuation: 90%">.</span>' in page
    assert "The darkest word has 10% of the attention" in page


def test_words_are_laid_out_in_lines() -> None:
    text = "one two\nthree " + "x" * 230 + " end"
    places = list(_layout(text, words_of(text)))
    assert [(line, column, len(shown)) for line, column, shown, _ in places] == [
        (0, 0, 3),
        (0, 4, 3),
        (1, 0, 5),
        (2, 0, 100),
        (3, 0, 100),
        (4, 0, 30),
        (4, 31, 3),
    ]


def result() -> AttentionResult:
    def model(factor: float) -> ModelAttention:
        classes = {
            kind: ClassAttention(
                3, 9, Estimate(factor * place, factor * place / 2, factor * place * 2), Estimate(0.1, None, None)
            )
            for place, kind in enumerate(CLASSES, start=1)
        }
        classes["verbs"] = ClassAttention(0, 0, Estimate(None, None, None), Estimate(0.0, 0.0, 0.0))
        classes["others"] = ClassAttention(1, 1, Estimate(0.01, None, None), Estimate(0.1, None, None))
        return ModelAttention(3, 10, 0, 0, None, classes)

    return AttentionResult({"a $b_ <c>": model(0.001), "after": model(0.002)}, {}, -1, {}, 0)


WRITERS: dict[str, Callable[[Path], None]] = {
    "bars": lambda path: write_bars(path, result()),
    "heat map": lambda path: write_heat_map(path, NASTY, PANELS, "<title> $", "note"),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_drawn_figures_are_complete_and_the_same_each_time(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra figures)")
    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
        for path in paths:
            WRITERS[name](path)
        first, second = (path.read_bytes() for path in paths)
        assert first.startswith(start)
        assert first == second
        if suffix == ".svg":
            ElementTree.fromstring(first.decode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.png", "0.svg", "1.png", "1.svg"]


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ends in \.svg, \.png, not in '\.html'"):
        write_bars(tmp_path / "bars.html", result())
    with pytest.raises(ConfigurationError, match=r"\.html, not in '\.jpg'"):
        write_heat_map(tmp_path / "map.jpg", "", [], "")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named_and_html_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for suffix in (".svg", ".png"):
        with pytest.raises(MissingExtraError, match=r"'matplotlib' is needed.*simlte-st\[figures\]"):
            check_figure(tmp_path / f"map{suffix}", (".svg", ".png"))
    write_heat_map(tmp_path / "map.html", NASTY, PANELS, "title")
    assert (tmp_path / "map.html").exists()
