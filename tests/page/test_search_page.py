from __future__ import annotations

import json
import sys
from html import escape, unescape
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import simlte_st.page
from simlte_st.data import Document
from simlte_st.page.search_page import document_html, highlight, hit_html, metadata_html
from simlte_st.search import Hit, Index

SCRIPT = str(Path(simlte_st.page.__file__).with_name("__main__.py"))


@pytest.fixture
def page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(sys, "argv", ["page", json.dumps({"folder": str(folder)})])
    return AppTest.from_file(SCRIPT, default_timeout=60).run()


def shown(page: AppTest) -> list[str]:
    assert not page.exception
    bodies = [element.proto.body for element in page.get("html")]
    return [body for body in bodies if not body.startswith("<style>")]


def search(page: AppTest, text: str) -> list[str]:
    page.text_input(key="text").input(text)
    next(button for button in page.button if button.label == "Search").click().run()
    return shown(page)


def hits(page: AppTest) -> list[str]:
    found = [html for html in shown(page) if 'class="simlte hit' in html]
    return [unescape(html.split('class="id">')[1].split("</span>")[0]) for html in found]


def test_page_shows_the_hits_of_the_index(page: AppTest, folder: Path, documents: list[str]) -> None:
    assert all(part in shown(page)[0] for part in (">&lt;b&gt;my.index</a></h1>", "11 documents"))
    assert hits(page) == []
    query = documents[3][:60]
    search(page, query)
    index = Index.open(folder)
    found = index.search(query, explain=True, top_k=10)
    assert hits(page)[0] == "d3"
    assert len(hits(page)) == 10
    first = next(html for html in shown(page) if 'class="simlte hit' in html)
    assert f">cosine {found[0].cosine:.3f}</span>" in first
    assert f"{found[0].sentences[0][1]:.3f}</span> <b>" in first
    assert "year: 2003" in first

    page.selectbox(key="mode").select("dense")
    page.number_input(key="top").set_value(4)
    page.checkbox(key="explain").uncheck()
    assert search(page, query)
    assert hits(page) == [hit.id for hit in index.search(query, mode="dense", top_k=4)]
    assert not any("Nearest sentences" in html for html in shown(page))
    page.number_input(key="threshold").set_value(1.0)
    assert "No document found" in search(page, query)[-1]
    assert any("Not in any document: quagga<" in html for html in search(page, f"{query} the quagga"))


def test_page_reranks_with_the_given_model(folder: Path, encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["page", json.dumps({"folder": str(folder), "rerank": str(encoder_path)})])
    page, index = AppTest.from_file(SCRIPT, default_timeout=60).run(), Index.open(folder)
    for rerank in (str(encoder_path), None):
        search(page, "Ba bun bis.")
        assert hits(page) == [hit.id for hit in index.search("Ba bun bis.", rerank=rerank)]
        page.checkbox(key="rerank").uncheck()


def test_page_is_refused_under_a_foreign_name(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    for host, answers in (("localhost:8501", True), ("127.0.0.1", True), ("website.example:8501", False)):
        monkeypatch.setattr(type(st.context), "headers", {"Host": host})
        assert any("11 documents" in html for html in shown(page.run())) is answers
    assert "cannot be opened as website.example" in shown(page)[-1]


def test_filter(page: AppTest, documents: list[str]) -> None:
    page.text_input(key="where").input("year > 2007")
    search(page, documents[3][:60])
    assert sorted(hits(page)) == ["d8", "d9"]
    page.text_input(key="where").input("yeer > '<b>'")
    problem = search(page, "ba")[-1]
    assert 'role="alert">The filter' in problem
    assert "yeer" in problem
    assert "columns are: id, year, kind" in problem
    assert "<b>" not in problem
    assert hits(page) == []
    page.text_input(key="where").input("")
    assert "Columns: year, kind" in search(page, " ")[-1], "an empty query shows the start page"


def test_url_holds_the_query(page: AppTest, documents: list[str]) -> None:
    search(page, documents[3][:60])
    assert documents[3][:60] in page.query_params["q"]
    again = AppTest.from_file(SCRIPT, default_timeout=60)
    again.query_params["q"] = documents[3][:60]
    assert hits(again.run()) == hits(page)
    again.query_params["q"] = "ba bun"
    assert hits(again.run()) != hits(page), "as the browser's Back button does"


def test_titles_and_links(folder: Path, page: AppTest, documents: list[str]) -> None:
    index = Index.open(folder)
    index.add([Document("t", documents[0], metadata={"title": "A *title*", "url": "https://example.org/a?b=1&c"})])
    page.run()
    page.text_input(key="where").input("id = 't'")
    search(page, "ba")
    assert page.button(key="hit 1").label == r"**A \*title\***"
    first = next(html for html in shown(page) if 'class="simlte hit' in html)
    assert '<a href="https://example.org/a?b=1&amp;c" target="_blank">' in first
    assert "title:" not in first


def opened(page: AppTest) -> str:
    return next(html for html in shown(page) if 'class="document"' in html)


def test_opened_document_is_shown_above_the_hits(page: AppTest, folder: Path, documents: list[str]) -> None:
    search(page, documents[3][:60])
    before = hits(page)
    page.button(key="hit 1").click().run()
    found = [hit.id for hit in Index.open(folder).link(["d3"], top_k=10)]
    assert sorted(hits(page)) == sorted([*before, *found])
    assert f"<h2>{documents[3][:20]}" in opened(page)
    assert 'class="about">d3 · <span>year: 2003' in opened(page)
    assert "<mark>" in opened(page)
    words = opened(page).split('class="document">')[1].replace("<b>", "").replace("</b>", "").replace("mark>", "")
    assert " ".join(documents[3].split()[-5:]) in words
    page.button(key="neighbour 1 2").click().run()
    assert f'class="about">{found[1]} ·' in opened(page)
    page.button(key="back").click().run()
    assert 'class="about">d3 ·' in opened(page)
    page.button(key="back").click().run()
    assert hits(page) == before

    page.button(key="hit 1").click().run()
    Index.open(folder).delete(["d3"])
    page.run()
    assert any("no document with" in html for html in shown(page))


def test_documents_are_escaped(page: AppTest, hostile: Document) -> None:
    page.text_input(key="where").input("year = 1999")
    search(page, "ba bun <i>quagga</i> <script>")
    assert hits(page) == [hostile.id]
    page.button(key="hit 1").click().run()
    assert sum("owned" in html for html in shown(page)) == 2
    assert page.button(key="hit 1").label.startswith(r"**Ba bun bis \<script\>document\.title\=\'owned\'")
    for html in shown(page):
        assert not any(tag in html for tag in ("<script", "<img", "<i>", 'href="javascript'))
    assert not page.markdown, "which would take a document's text for markup"


def test_text_is_escaped() -> None:
    assert highlight("<b>a & \"b\"</b> 'c'") == "&lt;b&gt;a &amp; &quot;b&quot;&lt;/b&gt; &#x27;c&#x27;"
    assert highlight("amp & lt", words=["amp"]) == "<b>amp</b> &amp; lt"


def test_sentences_match_across_lines_without_overlap() -> None:
    text = "One two.\r\n Three\nfour. Five."
    assert highlight(text, ["Three four."]) == "One two.\r\n <mark>Three\nfour.</mark> Five."
    assert highlight("a b c d", ["b c", "a b"]) == "<mark>a b</mark> c d"
    assert highlight("x (a.b) x", ["(a.b)", "absent", " "]) == "x <mark>(a.b)</mark> x"
    assert highlight("<i> <i>", ["<i>"], ["i"]) == " ".join(["<mark>&lt;<b>i</b>&gt;</mark>"] * 2)


def test_whole_words_are_marked_in_any_case() -> None:
    assert highlight("Ba bab BA-été", words=["ba", "été"]) == "<b>Ba</b> bab <b>BA</b>-<b>été</b>"
    html = highlight("A b: https://b.org/x/a?b c", words=["a", "b"])
    assert html == "<b>A</b> <b>b</b>: https://<b>b.org/x/a?b</b> c", "a URL has one mark"


def test_metadata_is_escaped_and_shortened() -> None:
    values = {"year": 2010, "none": None, "empty": "", "<k>": "<v>", "long": "word " * 100, "spaces": " " * 500}
    html = metadata_html(values)
    assert "<span>year: 2010</span> · <span>&lt;k&gt;: &lt;v&gt;</span> · <span>long: word word" in html
    assert not any(name in html for name in ("none", "empty"))
    assert len(html) < 400


def test_hit_shows_scores_metadata_and_passage() -> None:
    hit = Hit("<id>", 1.0, 0.5, 2.0, "beginning", "The <passage>.", "", {"k": "<v>"}, (("The <passage>.", 0.25),))
    html = hit_html(hit, 3)
    for part in (">3<", "&lt;id&gt;", "cosine 0.500", "BM25 2.0", "k: &lt;v&gt;", "<mark>The &lt;passage&gt;.</mark>"):
        assert part in html
    assert "0.250</span> The &lt;passage&gt;." in html
    assert not any(part in html for part in ("beginning", "Shared words"))
    assert "cosine" not in hit_html(Hit("a", 1.0, None, None, "beginning"), 1)


@pytest.mark.parametrize("end", ["\n", "\n\n", " "])
def test_long_document_opens_at_the_passage(end: str) -> None:
    lines = [f"Line <{number}>" for number in range(200)]
    hit, text = Hit("a", 1.0, None, None, "", lines[150]), end.join(lines)
    before, after = document_html(Document("a", text), hit).split("</details>")
    assert f"characters before</summary>{escape(lines[0])}{end}" in before
    assert f"<mark>{escape(lines[150])}</mark>" in after
    assert f"{before.split('</summary>')[1]}{after}".count("Line") == 200
    assert "details" not in document_html(Document("a", text), Hit("a", 1.0, None, None, "", lines[9]))
