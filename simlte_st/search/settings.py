"""How an index was made: its ``settings.json``, and the model that it names."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simlte_st.data.analyzer import ANALYZER
from simlte_st.errors import ConfigurationError, ModelError, StoreError
from simlte_st.extras import check_installed
from simlte_st.files import SETTINGS_FILE, changes, check_place, hold, write_json
from simlte_st.models.names import check_model, present_folder
from simlte_st.models.token_vectors import TokenVectors
from simlte_st.search.damage import ADVICE, read_part
from simlte_st.search.kept import TABLE as KEPT_TABLE
from simlte_st.search.store import TABLE, Store
from simlte_st.search.words import WORDS_FILE

if TYPE_CHECKING:
    from simlte_st.search.encoder import Encoder
    from simlte_st.search.index import Index

logger = logging.getLogger(__name__)

FORMAT = 3
"""Version of what is on disk."""

PUNKT_FILE = "punkt.json"
"""Parameters of the sentence segmenter, learned from the first documents."""

_PARTS = (f"{TABLE}.lance", f"{KEPT_TABLE}.lance", PUNKT_FILE, WORDS_FILE)
_NEEDED = {"model", "weights", "dtype", "parts", "calibration", "analyzer", "language", "languages"}


def check_new_index(folder: Path) -> None:
    """Check that an index can be made in a folder: a new one, or one that a killed process left incomplete."""
    check_installed("lancedb", "index", "indexes")
    check_place(folder)
    ours = {f"{TABLE}.lance"}  # and locks
    if not (folder / SETTINGS_FILE).exists() and any((folder / name).exists() for name in _PARTS[1:]):
        raise StoreError(_incomplete(folder))  # these are written after the settings
    if folder.exists() and (
        not folder.is_dir() or any(each.name not in ours and not each.name.startswith(".") for each in folder.iterdir())
    ):
        other = ", or add to the one that is there now" if (folder / SETTINGS_FILE).exists() else ""
        raise ConfigurationError(f"{folder} exists already: choose another folder for the index{other}.")


def make_folder(folder: Path, encoder: Encoder, parts: bool) -> tuple[dict[str, Any], Store]:
    """Create the folder of an index, which was checked."""
    lock = hold(folder)
    try:
        if (folder / SETTINGS_FILE).exists():
            raise ConfigurationError(f"{folder} has just been made by another process: run it again to add to it.")
        store = Store.create(folder, encoder.dimension)
        settings = {"format": FORMAT, "model": encoder.name, **encoder.identity(), "parts": parts, "calibration": None}
        settings |= {"dtype": encoder.dtype, "analyzer": ANALYZER, "language": None, "languages": []}
        write_json(folder / SETTINGS_FILE, settings)  # last: without it, a folder is not an index
    finally:
        lock.release()
    return settings, store


def remove_empty(index: Index) -> None:
    """Remove the folder of an index without documents, unless another process writes to it."""
    try:
        lock = hold(index.folder)
    except ConfigurationError:
        return
    try:
        if not len(index):
            shutil.rmtree(index.folder, ignore_errors=True)
    finally:
        lock.release()


def is_index(place: Any) -> bool:
    """Return whether a path is the folder of an index, complete or not."""
    return isinstance(place, (str, os.PathLike)) and os.path.isdir(Path(place) / f"{TABLE}.lance")


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of an index."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        if any((folder / name).exists() for name in _PARTS):
            raise StoreError(_incomplete(folder))
        raise StoreError(f"There is no index at {folder}: make one with: simlte index.")
    settings = read_part(folder, SETTINGS_FILE, lambda values: {**values, "format": int(values["format"])})
    if settings["format"] > FORMAT:
        raise StoreError(
            f"{folder} was made by a newer version of simlte-st (format {settings['format']}; this one reads "
            f"{FORMAT}): update it with: pip install --upgrade simlte-st"
        )
    if settings["format"] < FORMAT:
        raise StoreError(f"{folder} was made by an older version of simlte-st: make it again with: simlte index")
    if missing := sorted(_NEEDED - settings.keys()):
        raise StoreError(f"{path} is not the settings file of an index: it lacks {', '.join(missing)}. {ADVICE}")
    return settings


def _incomplete(folder: Path) -> str:
    return f"There is no whole index at {folder}: {SETTINGS_FILE} is missing. {ADVICE}"


@contextmanager
def _naming(folder: Path, model: Any) -> Iterator[None]:
    """Name the index in errors of its own model."""
    try:
        yield
    except ModelError as error:
        if model is not None:
            raise
        raise ModelError(f"{error} It is the model of {folder}: if it was moved, name it with model=.") from None


def check_encoder(folder: Path, settings: dict[str, Any], model: Any = None) -> Any:
    """Return the model of an index or its name, after checking, without torch, that there is one of that name."""
    wanted = settings["model"] if model is None else model
    if wanted is None:
        raise ConfigurationError(f"The model of {folder} was given without a name: pass it with model=.")
    with _naming(folder, model):
        check_model(wanted)
    return wanted


def read_token_vectors(folder: Path, settings: dict[str, Any], model: Any) -> TokenVectors | None:
    """Return what encodes queries without torch: the model of an index where it is static, and as it was."""
    wanted = check_encoder(folder, settings, model)
    place = present_folder(wanted) if isinstance(wanted, (str, os.PathLike)) else None
    found = TokenVectors.read(Path(place)) if place and settings["dtype"] == "float32" else None
    return found if found and found.identity().items() <= settings.items() else None


def load_encoder(folder: Path, settings: dict[str, Any], model: Any, device: str | None = None) -> Encoder:
    """Load the model of an index."""
    wanted = check_encoder(folder, settings, model)
    from simlte_st.search.encoder import Encoder  # with torch and transformers

    with _naming(folder, model):
        encoder = Encoder(wanted, device)
    identity = encoder.identity()
    different = changes({name: settings.get(name) for name in identity}, identity)
    if different:
        raise ModelError(
            f"{folder} was made with another model than {encoder.name or 'the one given'} is now "
            f"({'; '.join(different.values())}): their vectors cannot be compared. Name the right one with model=, or "
            "make another index."
        )
    if (made := settings["dtype"]) != encoder.dtype:
        said = "%s was made in %s, and its model computes in %s here: cosines differ by about 0.003."
        logger.info(said, folder, made, encoder.dtype)
    return encoder
