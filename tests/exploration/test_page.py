from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from browsers import BrowserPage, chromium
from exploration_support import HOSTILE
from odd_texts import CELLS
from support import WORDS

from simlte_st.data import Document
from simlte_st.exploration import ExploreReport, explore


class Page(BrowserPage):
    """The page in a browser."""

    def __init__(self, driver: Any, path: str) -> None:
        self.driver, self.url = driver, Path(path).as_uri()

    def show(self, width: int, height: int, scheme: str = "light", address: str = "") -> None:
        self.look(width, height, scheme)
        self.driver.get("about:blank")
        self.driver.get(self.url + address)
        self.wait("document.documentElement.dataset.ready === 'true'")

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [each.text for each in self.driver.find_elements("css selector", selector)]

    def names(self) -> list[tuple[float, float, float]]:
        """Return the middle of each name on the map and half of its width, in pixels."""
        script = """
            const view = Object.values(Bokeh.index)[0];
            const names = view.model.renderers.find(one => one.name === 'names');
            const { x, y, text, aside, lower } = names.data_source.data;
            const pen = document.createElement('canvas').getContext('2d');
            pen.font = 'bold 12px sans-serif';
            return [...text].map((name, row) => [view.frame.x_scale.compute(x[row]) + aside[row],
                view.frame.y_scale.compute(y[row]) + lower[row], pen.measureText(name).width / 2]);"""
        return [tuple(each) for each in self.driver.execute_script(script)]

    def frame(self) -> list[float]:
        """Return the left, right, upper and lower end of the map, in pixels."""
        box = "Object.values(Bokeh.index)[0].frame.bbox"
        return list(self.run(f"(({{ left, right, top, bottom }}) => [left, right, top, bottom])({box})"))

    def pixels(self) -> int:
        """Count colours on the picture of the map: a blank one has hardly any."""
        from PIL import Image

        picture = Image.open(io.BytesIO(self.one("#plot").screenshot_as_png)).convert("RGB")
        return len(picture.getcolors(1 << 24) or [])


@pytest.fixture
def page(explored: ExploreReport, tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path / "chromium") as driver:
        yield Page(driver, explored.page)


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 900, "light"), (390, 800, "dark")])
def test_the_page_draws_and_asks_nobody_for_anything(page: Page, width: int, height: int, scheme: str) -> None:
    page.show(width, height, scheme)
    assert page.run("document.documentElement.scrollWidth") <= width, "nothing sticks out on the right"
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)")
    assert page.pixels() > 50
    assert len(page.texts("#legend li")) >= 3
    log = [entry for entry in page.driver.get_log("browser") if entry["source"] != "rendering"]  # a GPU that is missing
    assert [entry for entry in log if entry["level"] in ("SEVERE", "WARNING")] == []
    messages = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    requests = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    asked = {one["request"]["url"] for one in requests if one["documentURL"] == page.url}  # not of the browser's own
    assert {url for url in asked if not url.startswith(("data:", "blob:", "about:"))} == {page.url}
    assert page.run("performance.getEntriesByType('resource').length") == 0


def test_search_and_documents(page: Page, corpus: list[Document]) -> None:
    page.show(1280, 900)
    page.one("#search").send_keys("cyrillic")
    page.wait("document.querySelector('#count').textContent.startsWith('1 of 60')")
    assert len(page.texts("#list li")) == 1
    page.one("#list button").click()
    page.wait("location.hash.startsWith('#document=')")
    assert page.one("#document-text").text == next(one.text for one in corpus if one.id == "cyrillic")
    assert len(page.texts("#near li")) == 10
    page.one("#near button").click()
    page.wait("document.querySelector('#document-text')?.textContent.includes('Это') === false")
    page.one("#back").click()
    page.wait("document.querySelector('#document-text').textContent.includes('Это')")
    page.one("#back").click()
    page.wait("document.querySelector('#list')")

    page.one("#search").clear()
    page.one("#search").send_keys("nothing has this")
    page.wait("document.querySelector('#count').textContent.startsWith('0 of 60')")


def test_a_click_on_a_point_opens_its_document(page: Page, corpus: list[Document]) -> None:
    page.show(1280, 900)
    from selenium.webdriver import ActionChains

    row = 7
    place = page.run(
        f"""(() => {{
            const view = Object.values(Bokeh.index)[0], box = view.el.getBoundingClientRect();
            const {{ x, y }} = view.model.renderers[0].data_source.data;
            return [box.x + view.frame.x_scale.compute(x[{row}]), box.y + view.frame.y_scale.compute(y[{row}])];
        }})()"""
    )
    ActionChains(page.driver).move_by_offset(*map(round, place)).click().perform()
    page.wait("document.querySelector('#document-text')")
    shown = int(page.run("location.hash").removeprefix("#document="))
    assert page.one("#document-text").text == corpus[shown].text
    assert shown == row


def test_of_points_in_one_place_one_is_told(page: Page) -> None:
    page.show(1280, 900)
    tools = "Object.values(Bokeh.index)[0].model.toolbar.tools"
    assert page.run(f"{tools}.filter(tool => tool.type === 'HoverTool').map(tool => tool.limit)") == [1]


def test_a_selection_is_listed_and_saved(page: Page, corpus: list[Document]) -> None:
    page.show(1280, 900)
    rows = [3, 4, 54]
    page.run(
        "(() => { const view = Object.values(Bokeh.index)[0];"
        f" view.model.renderers[0].data_source.selected.indices = {rows}; }})()"
    )
    page.wait("document.querySelectorAll('#list li').length === 3")
    page.run("(() => { URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }; })()")
    page.run("document.querySelector('#export').click()")
    text = page.driver.execute_async_script("window.saved.text().then(arguments[0])")
    saved = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in saved] == [corpus[row].id for row in rows]
    assert saved[0]["kind"] == "a"
    assert len(text.splitlines()[0].split(",")) == len(saved[0]), "no two columns of one name"
    assert saved[2]["title"].startswith(HOSTILE[:20])


def test_no_saved_cell_is_a_formula(encoder_path: Path, tmp_path: Path) -> None:
    texts = [f"{WORDS[number]} {WORDS[number + 1]}. {WORDS[number + 2]}." for number in range(len(CELLS))]
    rows = [{"id": cell, "text": text, "note": cell, "=n": -0.25} for cell, text in zip(CELLS, texts, strict=True)]
    explored = explore(encoder_path, rows, output=tmp_path / "corpus.html", topics=2, device="cpu")
    with chromium(tmp_path / "chromium") as driver:
        page = Page(driver, explored.page)
        page.show(1280, 900)
        page.run(
            "(() => { const view = Object.values(Bokeh.index)[0];"
            f" view.model.renderers[0].data_source.selected.indices = {list(range(len(rows)))}; }})()"
        )
        page.wait(f"document.querySelectorAll('#list li').length === {len(rows)}")
        page.run("(() => { URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }; })()")
        page.run("document.querySelector('#export').click()")
        text = page.driver.execute_async_script("window.saved.text().then(arguments[0])")
    saved = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["id"] for row in saved] == list(CELLS.values())
    assert [row["note"] for row in saved] == list(CELLS.values())
    assert {row["'=n"] for row in saved} == {"-0.25"}
    assert pq.read_table(tmp_path / "corpus.parquet")["id"].to_pylist() == list(CELLS), "as they are"


def test_colours_and_topics(page: Page) -> None:
    from selenium.webdriver.support.ui import Select

    page.show(1280, 900)
    menu = Select(page.one("#colour"))
    assert [option.text for option in menu.options] == ["topic", "kind", "year", "day"]
    menu.select_by_visible_text("kind")
    assert [text.split()[0] for text in page.texts("#legend li")] == ["a", "b", "c", "none"]
    menu.select_by_visible_text("day")
    assert page.texts(".ends span") == ["2020-01-01", "2020-01-28"]
    page.one("#topics [data-topic='1']").click()
    page.wait("document.querySelector('#count').textContent.includes(' of 60')")
    assert f"{len(page.texts('#list li'))} of 60" == page.one("#count").text, "its documents are listed"
    assert page.one("#legend [aria-pressed='true']").text == page.one("#topics [data-topic='1']").text


def test_nothing_covers_anything_or_sticks_out(page: Page, explored: ExploreReport, tmp_path: Path) -> None:
    written = Path(explored.page).read_text(encoding="utf-8")
    before, packed = written.split('<script id="data" type="application/octet-stream">')
    packed, after = packed.split("<", 1)
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    data["places"] = [data["places"][0]] * 3
    data["titles"] = ["w" * 120] * len(data["titles"])
    packed = base64.b64encode(gzip.compress(json.dumps(data).encode())).decode()
    odd = tmp_path / "odd.html"
    odd.write_text(f'{before}<script id="data" type="application/octet-stream">{packed}<{after}', encoding="utf-8")
    page.url = odd.as_uri()
    page.show(390, 800, address="#document=3")
    for width in (390, 300, 480):
        page.look(width, 800, "light")
        page.wait(f"Math.abs({width} - Object.values(Bokeh.index)[0].frame.bbox.width) < 60")
        time.sleep(0.3)  # an animation frame
        boxes, (left, right, top, bottom) = page.names(), page.frame()
        assert len(boxes) == 3
        for place, (across, down, half) in enumerate(boxes):
            assert left <= across - half
            assert across + half <= right
            assert top <= down <= bottom
            assert all(abs(across - x) >= half + other or abs(down - y) >= 19 for x, y, other in boxes[:place])
    assert page.run("panel.scrollWidth <= panel.clientWidth")


def test_names_hide_no_topic(page: Page, explored: ExploreReport) -> None:
    """Each name is near its topic, and most points of every topic are seen beside all names."""
    page.show(1280, 900)
    places = page.run(
        """(() => { const { frame, model } = Object.values(Bokeh.index)[0];
        const { x, y } = model.renderers[0].data_source.data;
        return [...x].map((value, row) => [frame.x_scale.compute(value), frame.y_scale.compute(y[row])]); })()"""
    )
    topics = pq.read_table(explored.table)["topic"].to_pylist()
    hidden = {
        row
        for row, (across, down) in enumerate(places)
        for x, y, half in page.names()
        if abs(across - x) < half and abs(down - y) < 8
    }
    for topic in set(topics):
        own = [row for row, each in enumerate(topics) if each == topic]
        assert len(hidden.intersection(own)) <= len(own) / 2


def test_hostile_documents_are_shown_as_text(page: Page, corpus: list[Document]) -> None:
    row = next(row for row, one in enumerate(corpus) if one.id == "hostile")
    page.show(1280, 900, address=f"#document={row}")
    assert page.one("#document-title").text == HOSTILE
    assert page.one("#document-text").text == corpus[row].text
    assert page.run("document.querySelectorAll('img, #panel b, #panel script').length") == 0
    assert page.driver.title == "corpus.jsonl"
