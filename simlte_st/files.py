"""Files: where the user's models and caches live, and writing so that a reader never sees half of one."""

from __future__ import annotations

import errno
import glob
import json
import logging
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from simlte_st.errors import ConfigurationError, DiskFullError, did_you_mean

logger = logging.getLogger(__name__)

HOME_VARIABLE = "SIMLTE_ST_HOME"
"""Environment variable that names the folder of models and caches; without it, the platform's place for caches."""


def home() -> Path:
    """Return the folder of everything that is kept between runs; it need not exist yet."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path("simlte_st", appauthor=False)


_HOLDER = ".tmp"
_LOCK = ".lock"
_OWNER = "process"


@contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary path beside ``target`` and rename it to ``target`` when the block ends without an error.

    Works for a file and for a directory (an existing directory of that name is replaced). When the block raises, the
    temporary path is removed and ``target`` stays as it was. What was written is on the disk before it is renamed, and
    nothing that was there before is deleted until the new one is in its place. What a process that was killed in the
    middle left beside ``target`` is named in the log, and removed when the new one is in its place.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    abandoned = restore(target)
    holder = _make_holder(target)
    temporary, before = holder / target.name, holder / _before(target)
    with FileLock(holder / _LOCK):
        try:
            yield temporary
            _flush(temporary)
            if temporary.is_dir() and target.is_dir():
                # A directory cannot be renamed over a full one: move the old one aside, and only then drop it.
                os.replace(target, before)
            try:
                os.replace(temporary, target)
            except OSError as error:
                if before.exists() and target.exists():
                    both = target.with_name(f"{target.name}{holder.name.removeprefix(f'.{target.name}')}")
                    os.replace(holder, both)
                    raise ConfigurationError(
                        f"{target} was written by another process at the same moment. It is left as it is; what was "
                        f"made here, and what was there before, is in {both}."
                    ) from error
                raise
            _flush(target.parent, inside=False)
        except Exception as error:
            raise_if_full(error, target)
            raise
        finally:
            if before.exists() and not target.exists():  # interrupted between the two renames
                os.replace(before, target)
            shutil.rmtree(holder, ignore_errors=True)
    _remove(abandoned)


def _make_holder(target: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_HOLDER, dir=target.parent))


def is_abandoned(holder: Path) -> bool:
    """Return whether no process is at work in a work folder, or in what :func:`atomic_path` makes."""
    lock = FileLock(holder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except (OSError, Timeout):  # at work, or gone by now
        return False
    lock.release()
    return True


def _before(target: Path) -> str:
    return f"{target.name}.before"


def restore(target: Path) -> list[Path]:
    """Put back what stood at a path, where a process was killed while it replaced it; name what else it left."""
    abandoned = []
    for holder in sorted(target.parent.glob(f".{glob.escape(target.name)}.{'?' * 8}{_HOLDER}")):
        if not is_abandoned(holder):
            continue
        if not target.exists() and (holder / _before(target)).exists():
            os.replace(holder / _before(target), target)
            logger.warning("%s was being replaced when its process was killed: the old one is back.", target)
        logger.warning("%s is what a killed process left; a finished %s replaces it.", holder, target.name)
        abandoned.append(holder)
    return abandoned


def discard(folder: Path, target: Path) -> None:
    """Remove a work folder that a finished target does not need any more.

    It is renamed first: where the process is killed in the middle, what is left is no work folder with half of its
    files, but is found as :func:`restore` finds what else is left.
    """
    holder = _make_holder(target)
    os.replace(folder, holder / folder.name)
    shutil.rmtree(holder, ignore_errors=True)


def sweep(target: Path) -> None:
    """Remove what killed processes left beside a finished target."""
    _remove(restore(target))


def _remove(abandoned: list[Path]) -> None:
    for path in filter(is_abandoned, abandoned):  # asked again: it may just have been made when it was first seen
        shutil.rmtree(path, ignore_errors=True)


def _flush(path: Path, inside: bool = True) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk."""
    if os.name == "nt":  # where only what is open for writing can be waited for
        return
    for each in (path, *(path.rglob("*") if inside else ())):
        if not each.is_symlink():
            descriptor = os.open(each, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def hold(folder: Path) -> FileLock:
    """Take a work folder, which is made if need be, until the lock is released or the process ends, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    lock, owner = FileLock(folder / _LOCK), folder / _OWNER
    try:
        lock.acquire(timeout=0)
    except Timeout:
        number = owner.read_text(encoding="ascii") if owner.exists() else "unknown"
        raise ConfigurationError(
            f"Another process (number {number}) is at work in {folder}: wait for it, or choose another output."
        ) from None
    owner.write_text(str(os.getpid()), encoding="ascii")
    return lock


def is_unused(folder: Path) -> bool:
    """Return whether a work folder holds no more than :func:`hold` writes: its process was killed at once."""
    own = (_LOCK, _OWNER)
    return all(path.name in own or fnmatch(path.name, f".*{_HOLDER}") for path in folder.iterdir())


def check_apart(source: Any, output: Path, *, is_document: bool = False) -> None:
    """Check that writing an output does not replace the documents that it is made of."""
    places = getattr(source, "places", source)  # of a reader
    if isinstance(places, (list, tuple)):
        for each in places:
            check_apart(each, output, is_document=is_document)
        return
    if not isinstance(source, (str, os.PathLike)) or not os.path.exists(source):
        return
    place, written = Path(source).resolve(), output.resolve()
    if place.is_relative_to(written):
        raise ConfigurationError(f"{output} holds the documents ({source}): choose an output outside of them.")
    if is_document and written.is_relative_to(place):
        raise ConfigurationError(
            f"{output} would be one of the documents ({source}) from then on: choose an output outside of them."
        )


def changes(saved: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, str]:
    """Tell what has changed since settings were saved as JSON: by the name of a setting, what it was and is."""
    settings = json.loads(to_json(settings))

    def shown(value: Any) -> str:
        return "not given" if value is None else repr(value)

    return {
        name: f"{name}: was {shown(saved.get(name))}, is {shown(settings.get(name))}"
        for name in sorted({*saved, *settings})
        if saved.get(name) != settings.get(name)
    }


MODEL_FILE = "modules.json"
"""What the folder of a model has."""

SETTINGS_FILE = "settings.json"
"""What a work folder has: everything that decides the outcome."""


RUN = ".run"
"""What the work folder of a training is called after the name of its model."""

RUN_FILE = "simlte.json"
"""What the folder of a trained model has: how it was made."""


def is_model(folder: Path) -> bool:
    """Return whether a folder holds a model."""
    return os.path.isfile(folder / MODEL_FILE)  # where Path.is_file would raise, may the folder not be looked into


_ROOM = 1 << 20  # bytes


def check_place(target: Path, advice: str = "Choose another output.") -> None:
    """Check that a file or folder can be made at a path, before work begins that would be lost."""
    parent = _nearest_folder(target.absolute().parent)
    if not target.name or target.name == "..":  # Path takes an empty name for the working folder
        problem = "that is no name of a file or folder"
    elif valid_unicode(str(target)) != str(target):
        problem = "its name is no UTF-8, and libraries that write it take no other"
    elif not parent.is_dir():
        problem = f"{parent} is no folder"
    elif not os.access(parent, os.W_OK | os.X_OK):
        problem = f"nothing can be written in {parent}"
    elif shutil.disk_usage(parent).free < _ROOM:
        problem = f"the disk of {parent} is full"
    else:
        return
    raise ConfigurationError(f"{target} cannot be written: {problem}. {advice}")


def nearest_place(path: str | os.PathLike[str], suits: Callable[[Path], bool] = Path.exists) -> str:
    """Ask for the place beside one that there is not whose name is nearest: `` Did you mean 'papers.csv'?``."""
    missing = Path(path)
    try:
        names = [each.name for each in missing.parent.iterdir() if suits(each)]
    except OSError:
        return ""
    return did_you_mean(missing.name, names)


def raise_if_full(error: Exception, target: Path, advice: str = "Make room, and run it again.") -> None:
    """Raise our error in the place of what libraries raise when a disk is full: OSError, RuntimeError, their own."""
    chain: BaseException | None = error
    while chain is not None:
        # torch's writer of archives does not say why it failed: then the disk has to tell.
        unsaid = "inline_container" in str(chain) or "PytorchStreamWriter" in str(chain)
        if (
            getattr(chain, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
            or f"(os error {errno.ENOSPC})" in str(chain)
            or os.strerror(errno.ENOSPC) in str(chain)
            or (unsaid and shutil.disk_usage(_nearest_folder(target)).free < 16 * _ROOM)
        ):
            raise DiskFullError(f"{target} could not be written: the disk is full. {advice}") from error
        chain = chain.__cause__ or chain.__context__


def _nearest_folder(path: Path) -> Path:
    """Return the path, or the nearest of the folders around it that there are."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each))


def check_new(path: Path, overwrite: bool) -> None:
    """Check that nothing is at a path, or may be replaced."""
    if path.exists() and not overwrite:
        raise ConfigurationError(f"{path} exists already: choose another output, or replace it with overwrite=True.")


def check_free(target: Path, overwrite: bool, mark: str = MODEL_FILE) -> None:
    """Check that a model can be written to ``target`` without losing anything."""
    check_place(target)
    restore(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    check_new(target, overwrite)
    if not os.path.isfile(target / mark):
        raise ConfigurationError(
            f"{target} is not replaced: it has no {mark}, so it is no model. "
            "Choose another output, or remove it yourself."
        )


def write_json(target: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as :func:`to_json` does to ``target``, in UTF-8, atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(to_json(value) + "\n", encoding="utf-8")


def to_json(value: Any) -> str:
    """Write ``value`` as indented JSON.

    JSON has no infinite numbers, and none that is no number: they become null. Nor has UTF-8 lone surrogates, which
    names of files in other encodings are read with: :func:`valid_unicode` replaces them.
    """
    return json.dumps(_writable(value), indent=2, ensure_ascii=False, allow_nan=False)


def _writable(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, Mapping):
        return {_writable(name): _writable(each) for name, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, (list, tuple)) else value


def valid_unicode(text: str) -> str:
    """Replace lone surrogates, which neither tokenizers nor tables nor UTF-8 can hold."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # By way of UTF-16, so that two halves that do belong together become the character they stand for.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def read_json(source: str | os.PathLike[str]) -> Any:
    """Read a UTF-8 JSON file."""
    return json.loads(Path(source).read_text(encoding="utf-8"))
