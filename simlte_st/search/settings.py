"""The settings of an index: the folder with its ``settings.json``, and the model that it names."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from simlte_st.errors import ConfigurationError, ModelError, StoreError
from simlte_st.extras import check_installed
from simlte_st.files import SETTINGS_FILE, atomic_path, changes, check_new, check_place, hold, write_json
from simlte_st.models.names import check_model
from simlte_st.search.encoder import Encoder
from simlte_st.search.store import TABLE, Store, read_part
from simlte_st.words.analyzer import ANALYZER

logger = logging.getLogger(__name__)

FORMAT = 4
"""Version of the files on disk."""

_MODEL = ("weights", "modules", "tokenizer", "max_seq_length", "prompts", "default_prompt")
_NEEDED = ("model", *_MODEL, "parts", "analyzer", "language", "languages")


def check_new_index(folder: Path, overwrite: bool = False) -> None:
    """Check that an index can be made in a folder; it replaces an existing one only with ``overwrite``."""
    check_installed("lancedb", "index", "indexes")
    check_place(folder)
    if not folder.exists() or (folder.is_dir() and all(each.name.startswith(".") for each in folder.iterdir())):
        return  # an empty folder may have a lock
    if not is_index(folder):
        raise ConfigurationError(f"{folder} already exists and is not an index: choose another folder for the index.")
    check_new(folder, overwrite)


def make_folder(folder: Path, encoder: Encoder, parts: bool, language: str | None, overwrite: bool) -> None:
    """Create an empty index; an existing one is replaced once the new one is complete."""
    settings = {"format": FORMAT, "model": encoder.name, **encoder.identity(), "parts": parts}
    settings |= {"analyzer": ANALYZER, "language": language, "languages": []}
    model = None if encoder.quick else encoder.model
    if model and model.similarity_fn_name != "cosine" and type(model[-1]).__name__ != "Normalize":
        logger.warning("The model compares vectors by %s, but an index ranks by cosine.", model.similarity_fn_name)
    lock = hold(folder)
    try:
        check_new_index(folder, overwrite)  # again, as another process may have made one in the meantime
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            Store.create(temporary, encoder.dimension)
            write_json(temporary / SETTINGS_FILE, settings)
            if os.name == "nt":  # Windows cannot rename a folder with an open file
                lock.release()
    finally:
        lock.release()


def is_index(place: Any) -> bool:
    """Return whether a path is the folder of an index, complete or not."""
    return isinstance(place, (str, os.PathLike)) and os.path.isdir(Path(place) / f"{TABLE}.lance")


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of an index."""
    if not (folder / SETTINGS_FILE).is_file():
        raise StoreError(f"There is no index at {folder}: make one with simlte index.")

    def read(values: dict[str, Any]) -> dict[str, Any] | None:
        old = values["format"] != FORMAT or values["analyzer"]["version"] != ANALYZER["version"]
        return None if old else {**values, **{name: values[name] for name in _NEEDED}}

    if (settings := read_part(folder, SETTINGS_FILE, read)) is None:
        raise StoreError(f"{folder} was made by another version of simlte-st: index again, with --overwrite.")
    return settings


def check_replaced(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the current settings of an index, after checking that its model is still the same."""
    now = read_settings(folder)
    if any(now[name] != settings[name] for name in _MODEL):
        raise StoreError(f"{folder} was replaced by an index of another model: open it again.")
    return now


def check_encoder(folder: Path, settings: dict[str, Any], model: Any = None) -> Any:
    """Return the model of an index, or its name after checking without torch that the model exists."""
    if model is not None:
        check_model(model)
        return model
    if settings["model"] is None:
        raise ConfigurationError(f"The model of {folder} has no name: pass it with model=.")
    try:
        check_model(settings["model"])
    except ModelError as error:
        raise ModelError(f"{error} It is the model of {folder}: if it has moved, name it with model=.") from None
    return settings["model"]


def load_encoder(folder: Path, settings: dict[str, Any], model: Any, device: str | None = None) -> Encoder:
    """Load the model of an index."""
    encoder = Encoder(check_encoder(folder, settings, model), device, settings)
    identity = encoder.identity()
    if different := changes({name: settings.get(name) for name in identity}, identity):
        raise ModelError(
            f"{folder} was made with a different model than {encoder.name or 'the given one'} "
            f"({'; '.join(different.values())}), so vectors cannot be compared. Name the right model with model=, or "
            "make another index."
        )
    return encoder
