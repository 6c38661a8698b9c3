"""One short question to the Hub, before libraries ask it for many files and many times."""

from __future__ import annotations

import os
import re

_SECONDS = 5
_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def ask_hub(repository: str) -> Exception | None:
    """Ask the Hub whether it has a repository, once and for five seconds.

    Endpoint, token and offline mode are those of ``huggingface_hub`` (``HF_ENDPOINT``, ``HF_TOKEN``,
    ``HF_HUB_OFFLINE``).

    Returns:
        None where it does, else what stands in the way: no network, no such repository, offline mode.
    """
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(repository, timeout=_SECONDS)
    except Exception as error:  # each version of the library has its own classes
        return error
    return None


def hub_unreachable(name: str) -> Exception | None:
    """Find out why the Hub cannot be asked for a model.

    Without a network, sentence-transformers would ask for each of several files, again and again, for over a minute.

    Args:
        name: A name, with its owner or, as sentence-transformers' own models, without. Of anything else, such as a
            path, the Hub is not asked.

    Returns:
        What stands in the way of an answer; None where there is one, and be it that there is no such model.
    """
    if not _NAME.fullmatch(name):
        return None
    error = ask_hub(repositories(name)[0])
    response = getattr(error, "response", None)
    return error if response is None or response.status_code >= 500 else None


def cached_folder(name: str) -> str | None:
    """Find the folder of a model in the Hub's cache, without a network."""
    from huggingface_hub import snapshot_download

    for repository in repositories(name):
        try:
            return snapshot_download(
                repository, cache_dir=os.environ.get("SENTENCE_TRANSFORMERS_HOME"), local_files_only=True
            )
        except (OSError, ValueError):  # it is not there; it could be no name
            continue
    return None


def repositories(name: str) -> tuple[str, ...]:
    """List where sentence-transformers looks for a name: that of a model without an owner may be one of its own."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)
