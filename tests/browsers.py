"""A headless Chromium for tests of pages."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Start a headless Chromium, or skip the test where selenium, Chromium or its driver are missing."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binaries = shutil.which("chromium"), shutil.which("chromedriver")
    if None in binaries:
        pytest.skip("there is no chromium with its chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = binaries[0]
    for flag in (*FLAGS, f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(binaries[1]))
    yield driver
    driver.quit()


class BrowserPage:
    """A page in a browser.

    Attributes:
        driver: Selenium's driver.
    """

    driver: Any

    def look(self, width: int, height: int, scheme: str) -> None:
        """Show pages in a window of that size from now on, light or dark."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        return self.driver.execute_script(f"return {script}")

    def broken_words(self, selector: str) -> list[str]:
        """List the words, of letters and up to fifteen of them, that do not stand on one line."""
        script = """
            const broken = [];
            for (const element of document.querySelectorAll(arguments[0])) {
                const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
                while (texts.nextNode()) {
                    for (const word of texts.currentNode.data.matchAll(/(?<!\\p{L})\\p{L}{2,15}(?!\\p{L})/gu)) {
                        const range = document.createRange();
                        range.setStart(texts.currentNode, word.index);
                        range.setEnd(texts.currentNode, word.index + word[0].length);
                        const tops = [...range.getClientRects()].map(box => Math.round(box.top));
                        if (new Set(tops).size > 1) broken.push(word[0]);
                    }
                }
            }
            return broken;"""
        return list(self.driver.execute_script(script, selector))

    def faint_texts(self, selector: str, least: float = 4.5) -> list[str]:
        """List the texts of elements whose contrast with what is behind them is lower, with it (WCAG 2.2, 1.4.3)."""
        script = """
            const brush = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
            const paint = (color, opacity) => {
                brush.globalAlpha = opacity;
                brush.fillStyle = color;
                brush.fillRect(0, 0, 1, 1);
            };
            const light = () => {
                const [red, green, blue] = [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3).map(value =>
                    value <= 10 ? value / 3294.6 : ((value / 255 + .055) / 1.055) ** 2.4);
                return .2126 * red + .7152 * green + .0722 * blue;
            };
            const faint = [];
            for (const element of document.querySelectorAll(arguments[0])) {
                const texts = [...element.childNodes].filter(node => node.nodeType === 3);
                const text = texts.map(node => node.data).join('');
                if (!text.trim() || !element.getClientRects().length) continue;
                const above = [];
                for (let each = element; each; each = each.parentElement) above.unshift(getComputedStyle(each));
                paint(matchMedia('(prefers-color-scheme: dark)').matches ? 'black' : 'white', 1);
                above.forEach(style => paint(style.backgroundColor, 1));
                const ground = light();
                paint(getComputedStyle(element).color, above.reduce((all, style) => all * style.opacity, 1));
                const [dark, bright] = [ground, light()].sort((one, other) => one - other);
                const contrast = (bright + .05) / (dark + .05);
                if (contrast < arguments[1]) faint.push(`${contrast.toFixed(1)}: ${text.trim()}`);
            }
            return faint;"""
        return list(self.driver.execute_script(script, selector, least))

    def wait(self, condition: str) -> None:
        """Wait until an expression is true, for a minute at most."""
        until = time.monotonic() + 60
        while not self.run(condition):
            assert time.monotonic() < until, condition
            time.sleep(0.05)
