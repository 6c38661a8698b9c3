"""Files: where the user's models and caches live, and writing so that a reader never sees half of one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from simlte_st.errors import ConfigurationError

HOME_VARIABLE = "SIMLTE_ST_HOME"
"""Environment variable that names the folder of models and caches; without it, the platform's place for caches."""


def home() -> Path:
    """Give the folder of everything that is kept between runs; it need not exist yet."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path("simlte_st", appauthor=False)


@contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``target`` and rename it to ``target`` when the block ends without an error.

    Works for a file and for a directory (an existing directory of that name is replaced). When the block raises, the
    temporary path is removed and ``target`` stays as it was.

    Args:
        target: The path to write. Its parent directories are made.

    Yields:
        A path in the same directory (hence the same file system) that does not exist yet.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    holder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    temporary = holder / target.name
    try:
        yield temporary
        if temporary.is_dir() and target.is_dir():
            # A directory cannot be renamed over a full one: move the old one aside, and only then drop it.
            os.replace(target, holder / "replaced")
        os.replace(temporary, target)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def check_free(target: Path, overwrite: bool) -> None:
    """Check that a folder can be written to ``target`` without losing anything.

    Raises:
        ConfigurationError: Something is there, other than an empty folder, and it shall not be overwritten.
    """
    if not overwrite and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigurationError(f"{target} exists already: choose another output, or overwrite it (--overwrite).")


def write_json(target: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as indented UTF-8 JSON to ``target``, atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(source: str | os.PathLike[str]) -> Any:
    """Read a UTF-8 JSON file."""
    return json.loads(Path(source).read_text(encoding="utf-8"))
