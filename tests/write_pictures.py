"""Take the screenshots of ``simlte explore`` and ``simlte serve`` in README and docs.

    make pictures

Requires Chromium with its driver, and the extras ``demo``, ``index``, ``explore`` and ``serve``.
"""

from __future__ import annotations

import io
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from browsers import BrowserPage, chromium
from PIL import Image

from benchmarks.datasets.bbc import packaged_corpus_path
from simlte_st.data import read_documents
from simlte_st.exploration import explore
from simlte_st.search import Index

DOCS = Path(__file__).parent.parent / "docs"
WIDE, PHONE = (1280, 850, "light"), (390, 850, "dark")
PORT = 8765
QUERY = "awards for the best film"


class Screenshots(BrowserPage):
    """Screenshots of pages in one browser."""

    def __init__(self, driver: object) -> None:
        self.driver = driver

    def save(self, size: tuple[int, int, str], address: str, ready: str, name: str) -> None:
        """Save a screenshot of a page when an expression becomes true."""
        self.resize(*size)
        self.driver.get(address)
        self.wait(ready)
        time.sleep(1)  # for the map to be drawn
        picture = Image.open(io.BytesIO(self.driver.get_screenshot_as_png()))
        picture.quantize(128).save(DOCS / name, optimize=True)


def main() -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, chromium(Path(folder) / "profile") as driver:
        screenshots, index_path = Screenshots(driver), Path(folder) / "BBC News"
        reader = read_documents(packaged_corpus_path(), encoding="latin-1")
        articles = ({"id": news.id, "text": news.text, "section": news.id.split("/")[0]} for news in reader)
        index = Index.create(index_path, "simlte-static", device="cpu")
        index.add(articles)
        page = explore(index, output=Path(folder) / "news.html").page
        screenshots.save(WIDE, Path(page).as_uri(), "document.documentElement.dataset.ready === 'true'", "explore.png")
        command = [sys.executable, "-m", "simlte_st", "serve", str(index_path), "--port", str(PORT)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                address = re.search(r"http://\S+", process.stdout.readline())
                assert address
                while socket.socket().connect_ex(("127.0.0.1", PORT)):
                    time.sleep(0.5)
                ready = "document.querySelectorAll('.hit ul').length === 10"
                screenshots.save(PHONE, f"{address[0]}/?q={QUERY.replace(' ', '+')}", ready, "serve.png")
            finally:
                process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
