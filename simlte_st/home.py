"""Where the user's models and caches live."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "SIMLTE_ST_HOME"
"""Environment variable that names the place; without it, it is the platform's place for caches."""


def home() -> Path:
    """Give the folder of everything that is kept between runs; it need not exist yet."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path("simlte_st", appauthor=False)


def models_folder() -> Path:
    """Give the folder of the models that ``simlte train --name`` leaves."""
    return home() / "models"
