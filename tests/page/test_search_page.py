from __future__ import annotations

import json
import sys
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import simlte_st.page
from simlte_st.data import Document
from simlte_st.errors import ModelError
from simlte_st.page import search_page
from simlte_st.page.overview import look_over
from simlte_st.page.search_page import open_index
from simlte_st.search import Index


@pytest.fixture
def page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(sys, "argv", ["page", json.dumps({"folder": str(folder)})])
    script = Path(simlte_st.page.__file__).with_name("__main__.py")
    return AppTest.from_file(str(script), default_timeout=60).run()


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


def test_search_shows_what_the_index_finds(page: AppTest, folder: Path, documents: list[str]) -> None:
    assert ">my.index</a></h1>" in shown(page)[0]
    assert "11 documents" in shown(page)[0]
    assert hits(page) == []
    query = documents[3][:60]
    search(page, query)
    index = Index.open(folder)
    found = index.search(query, explain=True, top_k=10)
    assert hits(page)[0] == "d3"
    assert len(hits(page)) == 10
    first = next(html for html in shown(page) if 'class="simlte hit' in html)
    assert f">cosine {found[0].cosine:.3f}</span>" in first
    assert "on their way" not in first
    assert f"{found[0].sentences[0][1]:.3f}</span> <b>" in first
    assert "year: 2003" in first

    page.selectbox(key="mode").select("dense")
    page.number_input(key="top").set_value(4)
    page.checkbox(key="why").uncheck()
    assert search(page, query)
    assert hits(page) == [hit.id for hit in index.search(query, mode="dense", top_k=4)]
    assert not any("nearest sentences" in html for html in shown(page))
    page.number_input(key="threshold").set_value(1.0)
    assert "No document" in search(page, query)[-1]


def test_what_the_form_holds_is_sent_again_with_the_first_answer(page: AppTest, documents: list[str]) -> None:
    """A browser may have drawn nothing of it when the question is sent: it would take the widgets' own values."""
    keys = [("number_input", "top"), ("checkbox", "why"), ("selectbox", "mode"), ("text_input", "where")]

    def sent() -> list[bool]:
        return [getattr(page, kind)(key=key).proto.set_value for kind, key in keys]

    assert sent() == [True] * 4
    search(page, documents[3][:60])
    assert sent() == [True] * 4
    assert len(hits(page)) == 10
    search(page, documents[4][:60])
    assert sent() == [False] * 4, "what a person is typing there stays"


def test_a_run_that_is_interrupted_before_its_form_counts_for_nothing(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(search_page.Page, "form", lambda self: search_page.st.stop())
        page.run()
    page.run()
    assert page.number_input(key="top").proto.set_value
    assert page.number_input(key="top").value == 10
    assert not page.run().number_input(key="top").proto.set_value


def test_a_filter(page: AppTest, documents: list[str]) -> None:
    page.text_input(key="where").input("year > 2007")
    search(page, documents[3][:60])
    assert sorted(hits(page)) == ["d8", "d9"]
    page.text_input(key="where").input("yeer > '<b>'")
    problem = search(page, "ba")[-1]
    assert 'role="alert">The filter' in problem
    assert "yeer" in problem
    assert "columns: id, year, kind" in problem
    assert "<b>" not in problem
    assert hits(page) == []
    page.text_input(key="where").input("")
    assert "columns: year, kind" in search(page, " ")[-1], "without a question there is the start"


def test_the_start_shows_what_is_there_and_what_to_ask(page: AppTest, folder: Path) -> None:
    assert "columns: year, kind" in shown(page)[-1]
    assert page.button(key="ask 2").label
    asked = look_over(Index.open(folder)).queries[0]
    page.button(key="ask 0").click().run()
    assert page.text_input(key="text").value == asked
    assert hits(page)[0] == Index.open(folder).search(asked)[0].id


def test_menus_filter_and_the_address_holds_everything(page: AppTest) -> None:
    page.slider(key="with.year").set_value((2002, 2006))
    page.multiselect(key="with.kind").set_value(["even"])
    page.number_input(key="top").set_value(4)
    search(page, "ba")
    before = hits(page)
    assert len(before) == 4
    assert {"d2", "d3", "d4", "d5", "d6"} >= {*before}
    assert any("4 hits · year: 2002..2006 · kind: even" in html for html in shown(page))
    assert page.query_params == {
        "text": "ba", "top": "4", "with.year": "2002..2006", "with.kind": "even",
    }  # fmt: skip

    again = AppTest.from_file(str(Path(simlte_st.page.__file__).with_name("__main__.py")), default_timeout=60)
    odd = {"mode": ["odd"], "threshold": ["7"], "with.kind": ["even", "<i>"], "with.colour": ["red"]}
    again.query_params.update({**page.query_params, "document": [before[1]], **odd})
    again.run()
    left_out = "with.colour=red, with.kind=&lt;i&gt;, mode=odd, threshold=7</div>"
    assert any(left_out in html for html in shown(again)), "what an address asks in vain is said"
    assert again.query_params == {**page.query_params, "document": before[1]}
    assert set(before) <= set(hits(again))
    assert f'class="about">{before[1]} ·' in opened(again)
    assert again.selectbox(key="mode").value == "hybrid"
    assert {button.label for button in again.get("download_button")} == {"CSV", "JSON"}
    search(again, "ba")
    assert not any("left out" in html for html in shown(again)), "and not again after the next search"


def test_titles_links_and_chosen_columns(folder: Path, monkeypatch: pytest.MonkeyPatch, documents: list[str]) -> None:
    index = Index.open(folder)
    index.add([Document("t", documents[0], metadata={"title": "A *title*", "url": "https://example.org/a?b=1&c"})])
    arguments = {"folder": str(folder), "show": ["url"]}
    monkeypatch.setattr(sys, "argv", ["page", json.dumps(arguments)])
    script = str(Path(simlte_st.page.__file__).with_name("__main__.py"))
    page = AppTest.from_file(script, default_timeout=60).run()
    page.text_input(key="where").input("id = 't'")
    search(page, "ba")
    assert page.button(key="hit 1").label == r"**A \*title\***"
    assert any(">1 hit · " in html for html in shown(page))
    first = next(html for html in shown(page) if 'class="simlte hit' in html)
    assert '<a href="https://example.org/a?b=1&amp;c" target="_blank">' in first
    assert "title:" not in first


def opened(page: AppTest) -> str:
    return next(html for html in shown(page) if 'class="document"' in html)


def test_a_document_above_the_hits(page: AppTest, folder: Path, documents: list[str]) -> None:
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


def test_documents_are_shown_as_text(page: AppTest, hostile: Document) -> None:
    page.text_input(key="where").input("year = 1999")
    search(page, "ba bun")
    assert hits(page) == [hostile.id]
    page.button(key="hit 1").click().run()
    assert sum("owned" in html for html in shown(page)) == 2
    assert page.button(key="hit 1").label.startswith(r"**Ba bun bis \<script\>document\.title\=\'owned\'")
    own = search_page._TO_THE_TOP.format(1)
    assert shown(page).count(own) == 1
    for html in shown(page):
        assert html == own or not any(tag in html for tag in ("<script", "<img", "<i>"))
    assert not page.markdown, "which would take a document's text for markup"


def test_the_index_is_opened_once(folder: Path, encoder_path: Path) -> None:
    index, turns = open_index(str(folder), None)
    assert open_index(str(folder), None)[0] is index
    assert open_index(str(folder), None)[1] is turns
    settings = json.loads((folder / "settings.json").read_text())
    (folder / "settings.json").write_text(json.dumps({**settings, "weights": "other"}))
    with pytest.raises(ModelError, match="another model"):
        open_index(str(folder), str(encoder_path))
