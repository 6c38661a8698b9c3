"""The command that serves the page, and the page in a browser."""

from __future__ import annotations

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
from pathlib import Path
from typing import Any

import pytest
from browsers import BrowserPage, chromium
from streamlit import net_util

from simlte_st.cli.main import main
from simlte_st.data import Document
from simlte_st.page.search_page import open_index


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_errors_are_reported_before_serving(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "nowhere"), "--port", str(free_port())]) == 1
    assert "no index" in capfd.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["serve", str(folder), "--port", str(other.getsockname()[1])]) == 1
    out, err = capfd.readouterr()
    assert (out, "is not available" in err) == ("", True)


def test_shutdown_waits_for_a_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # the command's replacements are undone
    monkeypatch.setenv("STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE", "true")
    _, turn = open_index(str(folder), None, None)
    searching: list[threading.Timer] = []

    def serve(arguments: list[str], **options: object) -> None:
        assert arguments[-2] == "--"
        assert json.loads(arguments[-1])["folder"] == str(folder)
        turn.acquire()
        searching.append(threading.Timer(0.5, turn.release))
        searching[0].start()

    monkeypatch.setattr("streamlit.web.cli.main", serve)
    assert main(["serve", str(folder), "--port", str(free_port())]) == 0
    assert searching[0].finished.is_set()
    assert turn.locked(), "no other search may begin"
    assert open_index(str(folder), None, None)[1] is not turn


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A headless Chromium."""
    with chromium(tmp_path / "chromium") as driver:
        yield driver


@pytest.fixture
def outside() -> Iterator[socket.socket]:
    """The target of all outside requests: a proxy that must stay unused."""
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        proxy.settimeout(0.5)
        yield proxy


@pytest.fixture
def served(folder: Path, tmp_path: Path, outside: socket.socket) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command as a user starts it, in a home without Streamlit files."""
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
    """Read the listening addresses from Linux's tables: IPv4 as given there, and any IPv6."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]


class Browser(BrowserPage):
    """The page in a browser."""

    def __init__(self, driver: Any, port: int) -> None:
        self.driver, self.url = driver, f"http://127.0.0.1:{port}/"

    def show(self, width: int, height: int, scheme: str, address: str = "") -> None:
        self.resize(width, height, scheme)
        self.driver.get(self.url + address)

    def text(self, selector: str) -> str:
        self.wait(f"document.querySelector({selector!r})?.innerText")
        return str(self.run(f"document.querySelector({selector!r}).innerText"))

    def click(self, selector: str) -> None:
        self.wait(f"document.querySelector({selector!r})")
        self.run(f"document.querySelector({selector!r}).click()")

    def press(self, keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(keys)


def test_in_a_browser(
    browser: Any, served: tuple[subprocess.Popen[str], int], outside: socket.socket, hostile: Document
) -> None:
    from selenium.webdriver.common.keys import Keys

    process, port = served
    page = Browser(browser, port)
    page.show(1280, 900, "light")
    page.wait("document.querySelector(\"input[aria-label='Search']\")")
    page.run("document.querySelector(\"input[aria-label='Search']\").focus()")
    page.press(hostile.text + Keys.ENTER)
    page.wait("document.querySelectorAll('.hit ul').length === 10")
    assert page.text(".hit .id") == hostile.id
    title = hostile.text.replace("[ba](javascript:ba)", "ba")  # a title has the texts of links
    assert page.text(".st-key-hit-1 button").replace("\u2060", "") == title
    idle = "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
    page.wait(idle)
    page.click(".st-key-hit-1 button")
    assert page.text(".document") == hostile.text
    page.wait("document.querySelectorAll('[role=dialog] .hit').length === 10")
    page.wait(idle)
    page.click(".st-key-neighbour-1-9 button")
    page.wait("document.querySelector('.st-key-neighbour-2-1')")
    page.click(".st-key-back button")
    page.wait(f"document.querySelector('.document').innerText === {json.dumps(hostile.text)}")
    # A key pressed while the page is redrawn can be lost on a busy machine; a person would press it again.
    until = time.monotonic() + 60
    while page.run("!!document.querySelector('[role=dialog]')"):
        assert time.monotonic() < until, "the document does not close"
        page.run("document.querySelector('[role=dialog]')?.focus()")
        page.press(Keys.ESCAPE)
        time.sleep(1)
    page.wait(idle)
    assert browser.title == "simlte: <b>my.index"
    assert not page.run("document.querySelector('.simlte script, .simlte img, .simlte i, p a')")

    page.show(390, 800, "dark", "?q=ba")
    page.wait("document.querySelectorAll('.hit').length === 10")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    foreign = "performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))"
    assert page.run(foreign) == []

    assert listening(port) == ["0100007F"]
    with pytest.raises(TimeoutError):
        outside.accept()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.startswith(f"11 documents at http://127.0.0.1:{port} (Ctrl-C to stop)\n")
    assert "Traceback" not in output
