from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browsers import BrowserPage, chromium
from streamlit import net_util
from streamlit.testing.v1 import AppTest

import simlte_st.page
from simlte_st.cli.main import main
from simlte_st.cli.serve import open_browser
from simlte_st.data import Document
from simlte_st.errors import ModelError
from simlte_st.index import Index
from simlte_st.page.overview import look_over
from simlte_st.page.search_page import open_index

HOSTILE = Document(
    "<img src=x onerror=\"document.title='owned'\">",
    "Ba bun bis <script>document.title='owned'</script> **ba** [ba](javascript:ba) $ba$ :red[ba].",
    metadata={"year": 1999, "kind": "<i>odd</i>"},
)


@pytest.fixture
def folder(documents: list[str], encoder_path: Path, tmp_path: Path) -> Path:
    """An index of ten documents and a hostile one."""
    index = Index.create(tmp_path / "my.index", encoder_path, parts=True)
    metadata = [{"year": 2000 + number, "kind": "even"} for number in range(10)]
    index.add([HOSTILE, *(Document(f"d{n}", documents[n], metadata=metadata[n]) for n in range(10))])
    return index.folder


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
    found = index.search(query, why=True, top=10)
    assert hits(page)[0] == "d3"
    assert len(hits(page)) == 10
    first = next(html for html in shown(page) if 'class="simlte hit' in html)
    assert f">cosine {found[0].cosine:.3f}</span>" in first
    assert "reasons are on their way" not in first
    assert f"{found[0].sentences[0][1]:.3f}</span> <b>" in first
    assert "year: 2003" in first

    page.selectbox(key="mode").select("dense")
    page.number_input(key="top").set_value(4)
    page.checkbox(key="why").uncheck()
    assert search(page, query)
    assert hits(page) == [hit.id for hit in index.search(query, mode="dense", top=4)]
    assert not any("nearest sentences" in html for html in shown(page))
    page.number_input(key="threshold").set_value(1.0)
    assert "No document was found." in search(page, query)[-1]


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
    asked = look_over(Index.open(folder)).questions[0]
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
    again.query_params.update({**page.query_params, "document": [before[1]], "mode": ["odd"], "threshold": ["x"]})
    again.run()
    assert set(before) <= set(hits(again))
    assert f'class="about">{before[1]} ·' in opened(again)
    assert again.selectbox(key="mode").value == "hybrid"
    assert {button.label for button in again.get("download_button")} == {"CSV", "JSON"}


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
    first = next(html for html in shown(page) if 'class="simlte hit' in html)
    assert '<a href="https://example.org/a?b=1&amp;c" target="_blank">' in first
    assert "title:" not in first


def opened(page: AppTest) -> str:
    return next(html for html in shown(page) if 'class="document"' in html)


def test_a_document_above_the_hits(page: AppTest, folder: Path, documents: list[str]) -> None:
    search(page, documents[3][:60])
    before = hits(page)
    page.button(key="hit 1").click().run()
    found = [hit.id for hit in Index.open(folder).link(["d3"], top=10)]
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
    assert any("has no document with the id" in html for html in shown(page))


def test_documents_are_shown_as_text(page: AppTest) -> None:
    page.text_input(key="where").input("year = 1999")
    search(page, "ba bun")
    assert hits(page) == [HOSTILE.id]
    page.button(key="hit 1").click().run()
    assert sum("owned" in html for html in shown(page)) == 2
    assert page.button(key="hit 1").label.startswith(r"**Ba bun bis \<script\>document\.title\=\'owned\'")
    for html in shown(page):
        assert not any(tag in html for tag in ("<script", "<img", "<i>"))
    assert not page.markdown, "which would take a document's text for markup"


def test_the_index_is_opened_once(folder: Path, encoder_path: Path) -> None:
    index, lock = open_index(str(folder), None)
    assert open_index(str(folder), None)[0] is index
    assert isinstance(lock, type(threading.Lock()))
    settings = json.loads((folder / "settings.json").read_text())
    (folder / "settings.json").write_text(json.dumps({**settings, "weights": "other"}))
    with pytest.raises(ModelError, match="made with another model"):
        open_index(str(folder), str(encoder_path))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_what_is_wrong_is_said_before_there_is_a_page(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def problem(*arguments: str) -> str:
        assert main(["serve", *arguments]) == 1
        return capfd.readouterr().err

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"Port {port} cannot be used (Address already in use)" in problem(str(folder), "--port", str(port))
    port = free_port()
    assert "ports go from 1 to 65535" in problem(str(folder), "--port", "70000")
    assert "There is no index" in problem(str(tmp_path / "nowhere"), "--port", str(port))
    settings = json.loads((folder / "settings.json").read_text())
    (folder / "settings.json").write_text(json.dumps({**settings, "weights": "other"}))
    assert "made with another model" in problem(str(folder), "--port", str(port))
    (folder / "settings.json").write_text(json.dumps({**settings, "format": 99}))
    assert "newer version" in problem(str(folder), "--port", str(port))


def test_the_browser_is_opened_when_something_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        thread = threading.Thread(target=open_browser, args=(port,), daemon=True)
        thread.start()
        time.sleep(0.3)
        assert opened == []
        server.listen()
        thread.join(10)
    assert opened == [f"http://127.0.0.1:{port}"]


def test_the_end_waits_for_a_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # what the command replaces is put back
    monkeypatch.setenv("STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE", "true")
    _, lock = open_index(str(folder), None)
    searching: list[threading.Timer] = []

    def serve(arguments: list[str], **options: object) -> None:
        assert arguments[-2] == "--"
        assert json.loads(arguments[-1])["folder"] == str(folder)
        assert lock.acquire(blocking=False)
        searching.append(threading.Timer(0.5, lock.release))
        searching[0].start()

    monkeypatch.setattr("streamlit.web.cli.main", serve)
    assert main(["serve", str(folder), "--port", str(free_port())]) == 0
    assert searching[0].finished.is_set()
    assert lock.locked(), "no other search may begin"
    assert open_index(str(folder), None)[1] is not lock


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A headless Chromium."""
    with chromium(tmp_path / "chromium") as driver:
        yield driver


@pytest.fixture
def outside() -> Iterator[socket.socket]:
    """What a request to anywhere else would reach: a proxy that nobody needs."""
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        proxy.settimeout(0.5)
        yield proxy


@pytest.fixture
def served(folder: Path, tmp_path: Path, outside: socket.socket) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command as a user starts it, in a home that Streamlit has never seen."""
    port, home = free_port(), tmp_path / "home"
    home.mkdir()
    proxy = f"http://127.0.0.1:{outside.getsockname()[1]}"
    proxies = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": ""}
    program = "import sys; from simlte_st.cli.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", str(folder), "--port", str(port)],
        env={**os.environ, **proxies, "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
            break
        except OSError:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.2)
    yield process, port
    process.kill()
    process.wait()


def listening(port: int) -> list[str]:
    """Read from Linux's tables where something listens: IPv4 addresses as they are there, and any of IPv6."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]


def knock(port: int, origin: str) -> int:
    """Ask for the page's connection as another site's page would; give the status."""
    headers = {"Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/_stcore/stream", headers={**headers, "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="})
    status = connection.getresponse().status
    connection.close()
    return status


class Browser(BrowserPage):
    """The page in a browser."""

    def __init__(self, driver: Any, port: int) -> None:
        self.driver, self.url = driver, f"http://127.0.0.1:{port}/"

    def show(self, width: int, height: int, scheme: str, address: str = "") -> None:
        self.look(width, height, scheme)
        self.driver.get(self.url + address)

    def text(self, selector: str) -> str:
        self.wait(f"document.querySelector({selector!r})?.innerText")
        return str(self.run(f"document.querySelector({selector!r}).innerText"))

    def click(self, selector: str) -> None:
        self.wait(f"document.querySelector({selector!r})")
        self.run(f"document.querySelector({selector!r}).click()")

    def press(self, keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(keys)


def test_in_a_browser(browser: Any, served: tuple[subprocess.Popen[str], int], outside: socket.socket) -> None:
    from selenium.webdriver.common.keys import Keys

    process, port = served
    page = Browser(browser, port)
    page.show(1280, 900, "light")
    page.wait("document.querySelector(\"input[aria-label='Search']\")")
    page.run("document.querySelector(\"input[aria-label='Search']\").focus()")
    page.press(HOSTILE.text + Keys.ENTER)
    page.wait("document.querySelectorAll('.hit ul').length === 10")
    assert page.text(".hit .id") == HOSTILE.id
    assert page.text(".st-key-hit-1 button") == HOSTILE.text
    assert page.run("new URLSearchParams(location.search).get('text')") == HOSTILE.text
    assert page.run("document.querySelector('.cosine').title").startswith("How near the meaning is")

    idle = "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
    page.wait(idle)
    page.run("document.querySelector('.st-key-hit-9 button').scrollIntoView()")
    page.run("(window.hits = document.querySelector('[data-testid=stMain]'), window.least = hits.scrollTop)")
    page.run("hits.onscroll = () => window.least = Math.min(least, hits.scrollTop)")
    place = page.run("hits.scrollTop")
    assert place > 0
    page.click(".st-key-hit-1 button")
    assert page.text("p.document") == HOSTILE.text
    page.wait("new URLSearchParams(location.search).get('document')?.startsWith('<img')")
    page.wait("document.querySelectorAll('[role=dialog] .hit').length === 10")
    # A key that is pressed while the page is drawn anew can be lost on a busy machine; a person presses it again.
    until = time.monotonic() + 60
    while page.run("!!document.querySelector('[role=dialog]') || location.search.includes('document=')"):
        assert time.monotonic() < until, "the document does not close"
        page.run("document.querySelector('[role=dialog]')?.focus()")
        page.press(Keys.ESCAPE)
        time.sleep(1)
    page.wait(idle)
    assert page.run("[least, hits.scrollTop]") == pytest.approx([place, place], abs=100), "the hits moved meanwhile"
    browser.back()
    assert page.text("p.document") == HOSTILE.text
    assert browser.title == "simlte: my.index"
    assert not page.run("document.querySelector('.simlte script, .simlte img, .simlte i, p a')")

    page.show(390, 800, "dark", "?text=ba&with.kind=even&with.year=2003..2005&why=no")
    page.wait("document.querySelectorAll('.hit').length === 3")
    assert page.text(".simlte.about") == "3 hits · year: 2003..2005 · kind: even"
    assert page.run("document.documentElement.scrollWidth") <= 390
    ground = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    assert sum(map(int, page.run(ground).strip("rgb()").split(","))) < 150
    top = page.run("document.querySelector('.hit').getBoundingClientRect().top")
    assert top < 500, "the controls are folded"
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    foreign = "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))"
    assert page.run(foreign) == []

    assert listening(port) == ["0100007F"]
    assert knock(port, f"http://127.0.0.1:{port}") == 101
    assert knock(port, "http://elsewhere.example") == 403
    with pytest.raises(TimeoutError):
        outside.accept()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.startswith(f"11 documents at http://127.0.0.1:{port} (Ctrl-C ends it)\n")
    assert "Traceback" not in output
