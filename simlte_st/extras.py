"""Imports of optional packages, with an error that names the extra to install."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from importlib.metadata import distribution
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

from simlte_st.errors import MissingExtraError


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency."""
    check_installed(module, extra, purpose)
    return importlib.import_module(module)


def check_installed(module: str, extra: str, purpose: str) -> None:
    """Check that an optional dependency is installed, without importing it."""
    package = module.split(".")[0]
    found = sys.modules[package] if package in sys.modules else importlib.util.find_spec(package)
    if found is None:
        raise MissingExtraError(
            f"{package!r} is needed for {purpose} and is not installed. Install it with: {install_command(extra)}"
        )


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the folder that this package was installed from, or an index."""
    origin = json.loads(distribution("simlte-st").read_text("direct_url.json") or "{}")
    if "dir_info" not in origin:
        return f'pip install "simlte-st[{extra}]"'
    editable = "-e " * origin["dir_info"].get("editable", False)
    return f'pip install {editable}"{url2pathname(urlsplit(origin["url"]).path)}[{extra}]"'
