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
    """Start a headless Chromium; skip the test if selenium, Chromium or chromedriver is missing."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binaries = shutil.which("chromium"), shutil.which("chromedriver")
    if None in binaries:
        pytest.skip("chromium or chromedriver is not installed")
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

    def resize(self, width: int, height: int, scheme: str) -> None:
        """Set window size and colour scheme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str) -> Any:
        """Evaluate a JavaScript expression."""
        return self.driver.execute_script(f"return {script}")

    def wait(self, condition: str) -> None:
        """Wait up to a minute for an expression to become true."""
        deadline = time.monotonic() + 60
        while not self.run(condition):
            assert time.monotonic() < deadline, condition
            time.sleep(0.05)
