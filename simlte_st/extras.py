"""Import optional packages, with an error that names the extra to install if one is missing."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from simlte_st.errors import MissingExtraError

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # since 1.29, onnxruntime reports every session to Microsoft


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency."""
    check_installed(module, extra, purpose)
    return importlib.import_module(module)


def check_installed(module: str, extra: str, purpose: str) -> None:
    """Check that an optional dependency is installed, without importing it."""
    package = module.split(".")[0]
    if (sys.modules[package] if package in sys.modules else importlib.util.find_spec(package)) is None:
        hint = f"Install it with: {install_command(extra)}"
        raise MissingExtraError(f"{package!r} is needed for {purpose} and is not installed. {hint}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "simlte-st[{extra}]"'
