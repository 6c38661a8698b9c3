"""The folder of an index, its ``settings.json``, and the model named there."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, TypedDict

from simlte_st.errors import ConfigurationError, ModelError, StoreError
from simlte_st.extras import check_installed
from simlte_st.files import SETTINGS_FILE, atomic_path, changes, check_new, check_place, hold, write_json
from simlte_st.models.names import ModelSource, check_model
from simlte_st.search.encoder import Encoder
from simlte_st.search.store import TABLE, Store, read_index_file
from simlte_st.words.analyzer import ANALYZER

logger = logging.getLogger(__name__)

FORMAT = 4
"""Version of the files on disk."""

_IDENTITY = ("weights", "modules", "tokenizer", "max_seq_length", "prompts", "default_prompt")
"""Settings that identify the model and must not change while an index is open."""


class IndexSettings(TypedDict):
    """The contents of ``settings.json``, besides the identity of the model."""

    format: int
    model: str | None  # its name or folder
    parts: bool
    analyzer: dict[str, Any]
    language: str | None
    languages: list[str]


def check_new_index(folder: Path, overwrite: bool = False) -> None:
    """Check that an index can be created in a folder; ``overwrite`` allows replacing an index."""
    check_installed("lancedb", "index", "indexes")
    check_place(folder)
    if not folder.exists() or (folder.is_dir() and all(path.name.startswith(".") for path in folder.iterdir())):
        return  # an empty folder may have a lock
    if not is_index(folder):
        raise ConfigurationError(f"{folder} already exists and is not an index: choose another folder for the index.")
    check_new(folder, overwrite)


def create_index(
    folder: Path, model: ModelSource, device: str | None, *, parts: bool, language: str | None, overwrite: bool
) -> Encoder:
    """Create an empty index and return its model; an existing index is replaced once the new one is complete."""
    check_new_index(folder, overwrite)
    check_model(model)
    encoder = Encoder(model, device)
    settings = {"format": FORMAT, "model": encoder.name, **encoder.identity(), "parts": parts}
    settings |= {"analyzer": ANALYZER, "language": language, "languages": []}
    loaded = None if encoder.quick else encoder.model
    if loaded and loaded.similarity_fn_name != "cosine" and type(loaded[-1]).__name__ != "Normalize":
        logger.warning("The model compares vectors by %s, but an index ranks by cosine.", loaded.similarity_fn_name)
    lock = hold(folder)
    try:
        check_new_index(folder, overwrite)  # again: another process may have created one in the meantime
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            Store.create(temporary, encoder.dimension)
            write_json(temporary / SETTINGS_FILE, settings)
            if os.name == "nt":  # Windows cannot rename a folder with an open file
                lock.release()
    finally:
        lock.release()
    return encoder


def is_index(place: object) -> bool:
    """Return whether a path is the folder of an index, complete or not."""
    return isinstance(place, (str, os.PathLike)) and os.path.isdir(Path(place) / f"{TABLE}.lance")


def read_settings(folder: Path, previous: IndexSettings | None = None) -> IndexSettings:
    """Read the settings of an index, and check that its model is still the one of the ``previous`` settings."""
    if not (folder / SETTINGS_FILE).is_file():
        raise StoreError(f"There is no index at {folder}: create one with simlte index.")

    def check(settings: IndexSettings) -> IndexSettings | None:
        if settings["format"] != FORMAT or settings["analyzer"]["version"] != ANALYZER["version"]:
            return None
        if missing := {*_IDENTITY, *IndexSettings.__required_keys__} - settings.keys():
            raise KeyError(*missing)
        return settings

    if (settings := read_index_file(folder, SETTINGS_FILE, check)) is None:
        raise StoreError(f"{folder} was made by another version of simlte-st: index again, with --overwrite.")
    if previous and any(settings.get(name) != previous.get(name) for name in _IDENTITY):
        raise StoreError(f"{folder} was replaced by an index of another model: open it again.")
    return settings


def check_settings(folder: Path, settings: IndexSettings, parts: bool | None, language: str | None) -> None:
    """Check that an existing index has the settings that are not None."""
    for name, value in {"parts": parts, "language": language}.items():
        if value not in (None, current := settings.get(name)):
            difference = f"without {name}=" if current is None else f"with {name}={current}"
            raise ConfigurationError(f"{folder} was made {difference}: use another folder, or overwrite=True.")


def check_encoder(folder: Path, settings: IndexSettings, model: ModelSource | None = None) -> ModelSource:
    """Return the model of an index, or its name, after checking without torch that the model exists."""
    if model is not None:
        check_model(model)
        return model
    if (name := settings["model"]) is None:
        raise ConfigurationError(f"The model of {folder} has no name: pass it with model=.")
    try:
        check_model(name)
    except ModelError as error:
        raise ModelError(f"{error} It is the model of {folder}: if it has moved, name it with model=.") from None
    return name


def load_encoder(
    folder: Path, settings: IndexSettings, model: ModelSource | None, device: str | None = None
) -> Encoder:
    """Load the model of an index."""
    encoder = Encoder(check_encoder(folder, settings, model), device, settings)
    identity = encoder.identity()
    if different := changes({name: settings.get(name) for name in identity}, identity):
        raise ModelError(
            f"{folder} was made with a different model than {encoder.name or 'the given one'} "
            f"({'; '.join(different.values())}), so vectors cannot be compared. Name the right model with model=, or "
            "create another index."
        )
    return encoder
