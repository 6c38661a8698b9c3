"""From the name of a model to the place where it is."""

from __future__ import annotations

import os
import re
from pathlib import Path

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import home
from simlte_st.models.hub import ask_hub, repositories
from simlte_st.models.packaged import PACKAGED_BASE, packaged_base_path

OWN_MODELS = {"simlte-bert": "docsplit-bert", "simlte-longformer": "docsplit-longformer"}
"""Models of this package by name, each with the preset that makes it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def models_folder() -> Path:
    """Give the folder of the models that ``simlte train --name`` leaves."""
    return home() / "models"


def find_model(name: str | os.PathLike[str]) -> str:
    """Find a model: a folder, one in the user's model folder, one that a package carries, else a name on the Hub.

    Args:
        name: A path or a name.

    Returns:
        The path; the name as it is where no folder has it, for sentence-transformers to look it up on the Hub.

    Raises:
        MissingExtraError: A packaged model whose package is not installed.
        ModelError: Its weights are not the published ones; or a model of this package that is nowhere: the message has
            the command that makes it.
    """
    text = os.fspath(name)
    if os.path.isdir(text):
        return text
    if _NAME.fullmatch(text):
        own = models_folder() / text
        if own.is_dir():
            return str(own)
        if text == PACKAGED_BASE:
            return str(packaged_base_path())
    if text in OWN_MODELS:
        _check_hub(text)
    return text


def model_path(name: str) -> Path:
    """Tell where ``simlte train --name`` puts a model.

    Raises:
        ConfigurationError: Not a name: it would be a path, or hidden.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a name: use letters, digits, '.', '_' and '-', beginning with a letter or digit. "
            "A folder is given with --output."
        )
    return models_folder() / name


def _check_hub(name: str) -> None:
    """Raise :class:`ModelError` unless the Hub, or its cache, has one of our models."""
    from huggingface_hub import try_to_load_from_cache

    repository = repositories(name)[0]
    if isinstance(try_to_load_from_cache(repository, "modules.json"), str):
        return
    error = ask_hub(repository)
    if error is not None:
        raise ModelError(f"There is no {name!r} yet. Make it with: simlte models build {name}") from error
