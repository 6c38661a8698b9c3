from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import BrowserPage, chromium
from exploration_support import HOSTILE

from simlte_st.data import Document
from simlte_st.exploration import ExploreReport


class Page(BrowserPage):
    """The page in a browser."""

    def __init__(self, driver: Any, path: str) -> None:
        self.driver, self.url = driver, Path(path).as_uri()

    def show(self, width: int, height: int, scheme: str = "light", address: str = "") -> None:
        self.resize(width, height, scheme)
        self.driver.get("about:blank")
        self.driver.get(self.url + address)
        self.wait("document.documentElement.dataset.ready === 'true'")

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [each.text for each in self.driver.find_elements("css selector", selector)]

    def pixels(self) -> int:
        """Count the colours in the picture of the map; a blank one has hardly any."""
        from PIL import Image

        picture = Image.open(io.BytesIO(self.one("#plot").screenshot_as_png)).convert("RGB")
        return len(picture.getcolors(1 << 24) or [])


@pytest.fixture
def page(explored: ExploreReport, tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path / "chromium") as driver:
        yield Page(driver, explored.page)


@pytest.mark.parametrize(("width", "height", "scheme"), [(1280, 900, "light"), (390, 800, "dark")])
def test_page_draws_without_network_requests(page: Page, width: int, height: int, scheme: str) -> None:
    page.show(width, height, scheme)
    assert page.run("document.documentElement.scrollWidth") <= width, "nothing sticks out on the right"
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 28)")
    assert page.pixels() > 50
    assert len(page.texts("#legend li")) >= 3
    log = [entry for entry in page.driver.get_log("browser") if entry["source"] != "rendering"]  # a missing GPU
    assert [entry for entry in log if entry["level"] in ("SEVERE", "WARNING")] == []
    messages = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    requests = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    # Without the browser's own requests.
    asked = {one["request"]["url"] for one in requests if one["documentURL"] == page.url}
    assert {url for url in asked if not url.startswith(("data:", "blob:", "about:"))} == {page.url}


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


def test_hostile_documents_are_shown_as_text(page: Page, corpus: list[Document]) -> None:
    row = next(row for row, one in enumerate(corpus) if one.id == "hostile")
    page.show(1280, 900, address=f"#document={row}")
    assert page.one("#document-title").text == HOSTILE
    assert page.one("#document-text").text == corpus[row].text
    assert page.run("document.querySelectorAll('img, #panel b, #panel script, [href^=javascript]').length") == 0
    assert page.driver.title == "corpus.jsonl"
