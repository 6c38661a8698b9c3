"""Where this package keeps what runs share: caches that may be deleted at any time."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """Folder of the shared caches; not made here.

    The environment variable ``SIMLTE_ST_HOME`` if set; else ``simlte_st`` in the platform's cache folder: that of
    ``XDG_CACHE_HOME`` or ``~/.cache``, on macOS ``~/Library/Caches``, on Windows ``%LOCALAPPDATA%``.
    """
    if given := os.environ.get("SIMLTE_ST_HOME"):
        return Path(given).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "simlte_st"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "simlte_st"
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification wants a relative path ignored.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "simlte_st"
