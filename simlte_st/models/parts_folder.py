"""The file that vectors are written to, and the folder of finished parts beside it, until all are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from filelock import FileLock

from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.files import (
    SETTINGS_FILE,
    changes,
    check_apart,
    check_place,
    hold,
    is_unused,
    read_json,
    write_json,
)
from simlte_st.models.config import EncodeConfig


def parts_folder(output: Path) -> Path:
    """Return the folder of the parts."""
    return output.with_name(f"{output.name}.parts")


def part_files(folder: Path) -> list[Path]:
    """Return the part files of a folder in the order of their source."""
    return sorted(folder.glob("part-*.parquet"))


def check_vectors(documents: Any, output: Path, config: EncodeConfig) -> None:
    """Check that vectors of documents can be written, and that there is an interrupted run where one is resumed."""
    check_apart(documents, output)
    check_place(output)
    if output.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{output}: the vectors are a parquet file: choose a name that ends in .parquet.")
    parts = parts_folder(output)
    saved = parts / SETTINGS_FILE
    if config.resume:
        if not saved.exists():
            raise ResumeError(f"There is no interrupted run at {parts}.")
        return
    unused = parts.is_dir() and is_unused(parts)
    for path, ours in ((output, output.is_file()), *([] if unused else [(parts, saved.exists())])):
        if path.exists() and not config.overwrite:
            how = "resume it (resume=True) or " if path == parts else ""
            raise ConfigurationError(f"{path} exists already: {how}replace it (overwrite=True).")
        if path.exists() and not ours:
            raise ConfigurationError(f"{path} was not written by this command and is not replaced: choose another.")


def open_parts(output: Path, settings: dict[str, Any], *, resume: bool) -> FileLock:
    """Open the folder of the parts of a checked output for this process, empty unless a run is resumed."""
    parts = parts_folder(output)
    lock, saved = hold(parts), parts / SETTINGS_FILE
    if resume:
        if different := changes(read_json(saved), settings):
            lock.release()
            raise ResumeError(f"The interrupted run at {parts} has other settings ({'; '.join(different.values())}).")
        return lock
    for path in part_files(parts):
        path.unlink()
    write_json(saved, settings)
    return lock
