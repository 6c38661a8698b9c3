from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks.figures import check_figure
from benchmarks.papers.attention import write_attention_map, write_bars
from benchmarks.papers.heat_map import Span, write_heat_map
from benchmarks.papers.parts_of_speech import (
    CLASSES,
    AttentionResult,
    ClassAttention,
    DocumentAttention,
    Estimate,
    ModelAttention,
    WordWeight,
)
from simlte_st.errors import ConfigurationError, DataError, MissingExtraError
from simlte_st.models.truncation import Truncation

NASTY = 'A <script>alert("x & y")</script> costs $5 and $6_a^$,\nisn\'t it? \x1b[31m 長い <b>&amp;</b>'


def words_of(text: str) -> list[Span]:
    found, start = [], 0
    for number, word in enumerate(text.split()):
        start = text.index(word, start)
        found.append(Span(start, start + len(word), 0.01 * (number + 1), "<noun>"))
        start += len(word)
    return found


PANELS = {"<before> & $x_": words_of(NASTY), "after": words_of(NASTY)[:5]}


class Reader(HTMLParser):
    """Collects the text of the paragraphs, and all tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.heats: list[float] = []
        self.hints: list[str] = []
        self.paragraphs: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "p":
            self.inside = True
            self.paragraphs.append("")
        if tag == "mark":
            self.heats.append(float((dict(attrs)["style"] or "").removeprefix("--heat:")))
            self.hints.append(dict(attrs)["title"] or "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "p"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.paragraphs[-1] += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_html_shows_the_text_and_runs_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    write_heat_map(path, NASTY, PANELS, "<title> & more", unit=" <u>", note="12 of 20 tokens were read.")
    reader, page = read(path), path.read_text(encoding="utf-8")
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "mark", "small", "i"}
    assert set(reader.tags) <= allowed
    first, second = PANELS.values()
    assert reader.paragraphs == [NASTY.replace("\x1b", "\ufffd"), NASTY[: second[-1].stop]]
    for shown in ("&lt;title&gt; &amp; more", "12 of 20 tokens were read.", "&lt;before&gt; &amp; $x_"):
        assert shown in page
    assert f"<small>0 &lt;u&gt;<i></i>{0.01 * len(first):.3g} &lt;u&gt;</small>" in page, "the legend"
    assert reader.hints[:2] == ["<noun>: 0.01 <u>", "<noun>: 0.02 <u>"]
    heats = reader.heats[: len(first)]
    assert heats == sorted(heats)
    assert heats[-1] == 0.85
    assert reader.heats[len(first) :] == heats[:5], "the panels have one scale"


def test_html_is_readable_in_dark_and_in_light(tmp_path: Path) -> None:
    write_heat_map(tmp_path / "map.html", NASTY, PANELS, "t")
    assert "color-scheme: light dark" in (tmp_path / "map.html").read_text(encoding="utf-8")

    def luminance(colour: list[float]) -> float:
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
        return sum(part * share for part, share in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    for text, ground in ((0.0, 1.0), (1.0, 0.07)):  # browsers' black on white, and white on nearly black
        mixed = [0.85 * part / 255 + 0.15 * ground for part in (214, 48, 31)]
        low, high = sorted((luminance([text] * 3), luminance(mixed)))
        assert (high + 0.05) / (low + 0.05) > 4.5, "WCAG's contrast of text, on the heaviest word"


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([Span(0, 2, 0.1), Span(1, 3, 0.1)], "follow one another"),
        ([Span(2, 9, 0.1)], "of 4 characters"),
        ([Span(0, 1, -0.1)], "from 0 up"),
        ([Span(0, 1, float("nan"))], "from 0 up"),
    ],
)
def test_parts_and_weights_that_cannot_be_shown(spans: list[Span], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        write_heat_map(tmp_path / "map.html", "text", {"m": spans}, "t")
    assert not list(tmp_path.iterdir())


def test_nothing_has_weight(tmp_path: Path) -> None:
    write_heat_map(tmp_path / "map.html", "ab", {"m": [Span(0, 1, 0.0), Span(1, 2, 0.0)], "n": []}, "t")
    assert read(tmp_path / "map.html").heats == [0.0, 0.0]


def test_a_scale_that_begins_at_the_lowest_weight_tells_like_weights_apart(tmp_path: Path) -> None:
    spans = [Span(0, 1, 8.2), Span(1, 2, 8.3), Span(2, 3, 8.4), Span(3, 4, 99.0, coloured=False)]
    write_heat_map(tmp_path / "map.html", "abcd", {"m": spans}, "t", unit="%", from_zero=False)
    assert read(tmp_path / "map.html").heats == [0.0, 0.425, 0.85, 0.0]
    assert "<small>8.2%<i></i>8.4%</small>" in (tmp_path / "map.html").read_text(encoding="utf-8")
    narrow = [Span(0, 1, 8.2312), Span(1, 2, 8.2314)]
    write_heat_map(tmp_path / "map.html", "ab", {"m": narrow}, "t", from_zero=False)
    assert "<small>8.2312<i></i>8.2314</small>" in (tmp_path / "map.html").read_text(encoding="utf-8")
    write_heat_map(tmp_path / "map.html", "ab", {"m": [Span(0, 1, 50.0), Span(1, 2, 50.0)]}, "t", from_zero=False)
    assert read(tmp_path / "map.html").heats == [0.0, 0.0]


def test_attention_to_punctuation_is_not_coloured_and_what_was_cut_is_said(tmp_path: Path) -> None:
    words = (WordWeight(0, 1, "nouns", 0.1), WordWeight(1, 2, "punctuation", 0.9))
    attention = DocumentAttention(words, between=0.0, special=0.0, special_tokens=0, tokens=5, cut=3)
    write_attention_map(tmp_path / "map.html", "a. cd e", {"m": attention}, "t")
    reader, page = read(tmp_path / "map.html"), (tmp_path / "map.html").read_text(encoding="utf-8")
    assert reader.heats == [0.85, 0]
    assert reader.hints == ["nouns: 10%", "punctuation: 90%"]
    assert "0%<i></i>10%" in page
    assert "m read 2 of 5 tokens" in page
    assert reader.paragraphs == ["a."]


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
        return ModelAttention(3, Truncation().add([10]), classes)

    return AttentionResult({"a $b_ <c>": model(0.001), "after": model(0.002)}, {}, -1, {}, 0)


def test_bars_are_complete_and_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra figures)")
    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
        for path in paths:
            write_bars(path, result())
        first, second = (path.read_bytes() for path in paths)
        assert first.startswith(start)
        assert first == second
        if suffix == ".svg":
            ElementTree.fromstring(first.decode())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.png", "0.svg", "1.png", "1.svg"]


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\.svg or \.png .*'\.html'"):
        write_bars(tmp_path / "bars.html", result())
    with pytest.raises(ConfigurationError, match=r"\.html .*'\.svg'"):
        write_heat_map(tmp_path / "map.svg", "", {}, "")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named_and_html_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for suffix in (".svg", ".png"):
        with pytest.raises(MissingExtraError, match=r"'matplotlib'.*\[figures\]"):
            check_figure(tmp_path / f"map{suffix}")
    write_heat_map(tmp_path / "map.html", NASTY, PANELS, "title")
    assert (tmp_path / "map.html").exists()
