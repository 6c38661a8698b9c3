"""Imports of optional packages, with an error that names the extra to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from simlte_st.errors import MissingExtraError


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is installed, one of its own dependencies is not
        raise MissingExtraError(
            f"{module.split('.')[0]!r} is needed for {purpose} and is not installed. "
            f'Install it with: pip install "simlte-st[{extra}]"'
        ) from error
