"""HTML files: the text that is read, encodings, and counts of unreadable files."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_support import page, texts

from simlte_st.data import read_documents
from simlte_st.errors import EmptyCorpusError
from simlte_st.reading.formats.html import html_text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>The <b>c</b>at\n   <i>sat</i>&nbsp;&amp; ate.</p>", "The cat sat\xa0& ate."),
        ("<h1>A</h1>\n<p>b<br>c</p><ul><li>d</li><li>e</li></ul>f", "A\n\nb\nc\n\nd\n\ne\n\nf"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a  b\n\nc"),
        ("<nav>Home</nav><p>a</p><script>var b</script><style>c</style><!-- d -->f", "a\n\nf"),
        ("<pre>one\n  two</pre>three\nfour", "one\ntwo\n\nthree four"),
        ("<p>not closed <b>at <i>all", "not closed at all"),
        ("a < b &unknown; <foo>c</foo>", "a < b &unknown; c"),
        ("soft&shy;ware", "software"),
        ("<button>Buy</button><object data=x>fallback</object>", "Buy  fallback"),
        ("<svg><title>no</title><g><text>axis</text><path/></g></svg>f", "f"),
        ("<math><mi>E</mi><mo>=</mo><mi>m</mi><annotation>E=m</annotation></math>", "E=m"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "漢kan"),
        ("<details><summary>More</summary>inside</details>", "More\n\ninside"),
    ],
)
def test_html_gives_visible_text(tmp_path: Path, body: str, expected: str) -> None:
    (tmp_path / "a.html").write_text(page(body))
    assert texts(tmp_path / "a.html") == [expected]
    (tmp_path / "a.html").write_text(body)
    assert texts(tmp_path / "a.html") == [expected], "without a frame around it"


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>no</p>", "<p HIDDEN=''>no</p>", "<div style='color: red; DISPLAY : none'><p>no</p></div>",
        "<template><p>no</p></template>", "<noscript>no</noscript>", "<title>no</title>", "<iframe>no</iframe>",
        "<select><option>no</select>", "<nav>no</nav>", "<menu><li>no</menu>", "<footer>no</footer>",
        "<template>no<template>no</template></template>", "<script><!-- no </script>",
        "<div role=navigation><p>no</p></div>", "<ul role='Menu'><li>no</ul>", "<div role=contentinfo>no</div>",
    ],
)  # fmt: skip
def test_hidden_elements_are_dropped(hidden: str) -> None:
    assert html_text(f"<p>One.</p>{hidden}<p>Two.</p>") == "One.\n\nTwo."


@pytest.mark.parametrize("shown", ["<p style='display:block'>yes</p>", "<aside>yes</aside>", "<p role=note>yes</p>"])
def test_visible_elements_are_kept(shown: str) -> None:
    assert html_text(f"<body style='display:none'><p>One.</p>{shown}").split() == ["One.", "yes"]


def test_xhtml_tags_can_be_self_closing(tmp_path: Path) -> None:
    head = '<?xml version="1.0" encoding="iso-8859-1"?><html><head><title/><script src="x"/></head>'
    body = head + "<body><p/>\xe9t\xe9<br/></body></html>"
    (tmp_path / "a.xhtml").write_bytes(body.encode("latin-1"))
    assert texts(tmp_path / "a.xhtml") == ["été"]


def test_html_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for declared, used in (("utf-8", "utf-8"), ("ISO-8859-1", "cp1252"), ("koi8-r", "koi8-r"), ("nonsense", "utf-8")):
        text = "дом" if used == "koi8-r" else "“café”"
        for head in (f'<meta charset="{declared}">', f"<META http-equiv=x content='text/html; charset={declared}'>"):
            path.write_bytes(page(text, head).encode(used))
            assert texts(path) == [text]
    path.write_bytes(page("café").encode("latin-1"))
    assert texts(path, encoding="latin-1") == ["café"]
    with pytest.raises(EmptyCorpusError, match=r"wrong encoding .*\n.*encoding="):
        texts(path)


# Exactly the visible elements of a page must be in the text, in order.
SEEN = ("p", "div", "b", "span", "section", "li", "button", "object", "h2", "article", "td", "pre", "a", "label", "foo")
UNSEEN = ("script", "style", "noscript", "nav", "title", "iframe", "p hidden", "div style=display:none")


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> list[Any]:
    """A tag and its content: words or more trees."""
    inside = st.one_of(st.just("word"), trees(depth - 1)) if depth else st.just("word")
    return [draw(st.sampled_from(SEEN + UNSEEN)), *draw(st.lists(inside, max_size=3))]


@settings(max_examples=300)
@given(trees=st.lists(trees(), min_size=1, max_size=5), ends=st.randoms(use_true_random=False))
def test_text_matches_what_a_browser_shows(trees: list[Any], ends: random.Random) -> None:
    """html5lib builds the tree by the same rules, except for templates; its visible text must be read."""
    numbers = itertools.count()

    def markup(tree: Any) -> str:
        if tree == "word":
            return f" w{next(numbers)} "
        tag = tree[0].split()[0]
        # Raw text ends at its first end tag, so close these.
        end = f"</{tag}>" if tree[0] in UNSEEN[:6] or ends.random() < 0.8 else ""
        return f"<{tree[0]}>{''.join(map(markup, tree[1:]))}{end}"

    source = "".join(map(markup, trees))
    parser = html5lib.HTMLParser(html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    assert html_text(source).split() == list(shown(parser.parse(source, scripting=True))), source


def shown(node: Any) -> Iterator[str]:
    names = [name.split()[0] for name in UNSEEN[:6]]
    hidden = node.tag in ("head", *names) or "hidden" in node.attrib or "display:none" in node.get("style", "")
    if not hidden:
        yield from (node.text or "").split()
        for child in node:
            yield from shown(child)
            yield from (child.tail or "").split()


@pytest.mark.parametrize(
    "pattern",
    [
        "<div>x ", "<b><p>x", "<p><font id={}>x", "<span>x</foo>", "<html a{}>x", "<a><div>x", "<li>x",
        "<tr><td><font size={}>x", "<!--x", "<", '<a ="', "<ul><li>x", "<table><td>x",
        "<svg><style><div>x", "<template>x", "<section><div></section>x",
    ],
)  # fmt: skip
def test_hostile_pages_take_linear_time(pattern: str) -> None:
    def seconds(times: int) -> float:
        source = "<table>" * ("<td>" in pattern) + "".join(pattern.replace("{}", str(n)) for n in range(times))
        start = time.process_time()
        assert html_text(source).count("x") in (0, times)
        return time.process_time() - start

    once = seconds(20_000)
    assert seconds(40_000) < 3 * once + 0.5 < 10


def test_too_deep_pages_are_read_without_structure() -> None:
    deep = "<ul><li>" * 50_000 + "<script>no</script>deep &amp; <b>found"
    assert html_text(deep).split() == ["deep", "&", "found"]


def test_html_in_texts_is_removed_on_request(tmp_path: Path) -> None:
    written = ["<p>A <b>tick</b>et &amp; more</p><script>x</script><p>Last", "2 < 3 and <T> or a<b>c", "<br>" * 3]
    rows = [{"id": str(number), "text": text} for number, text in enumerate(written)]
    assert texts(rows) == written
    reader = read_documents(rows, html=True)
    assert [document.text for document in reader] == ["A ticket & more\n\nLast", written[1]]
    assert sum(reader.report.skipped.values()) == 1, "nothing is left of the third"
    (tmp_path / "a.txt").write_text(written[0], encoding="utf-8")
    assert [document.text for document in read_documents(tmp_path, html=True)] == ["A ticket & more\n\nLast"]
