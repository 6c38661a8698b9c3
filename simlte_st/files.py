"""The folder for models and caches, atomic writes, work folders, output checks, and JSON."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from simlte_st.errors import ConfigurationError, DamagedFileError, DiskFullError, ResumeError, SimlteError

if os.path.expanduser("~") == "~":  # no home folder, as in some containers; importing NLTK would fail
    os.environ["HOME"] = "/nonexistent"

HOME_VARIABLE = "SIMLTE_ST_HOME"
"""Environment variable that sets the folder for models and caches (default: a subfolder of the platform's cache)."""


def home() -> Path:
    """Return the folder for models and caches, which may not exist yet."""
    folder = os.environ.get(HOME_VARIABLE)
    return Path(folder).expanduser().absolute() if folder else user_cache_path("simlte_st", appauthor=False)


_HOLDER = ".tmp"
_LOCK = ".lock"


@contextmanager
def atomic_path(target: str | os.PathLike[str], *siblings: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``, and rename it to ``target`` if the block succeeds.

    ``target`` can be a file or a folder and may already exist; a link is followed. If the block raises, ``target`` is
    left unchanged; otherwise the old version is deleted once the new one is in place.

    ``siblings`` are other files in the same folder as ``target``. Write them beside the temporary path; they are
    renamed before it.
    """
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    holder = _make_holder(target).absolute()  # absolute, because Arrow would expand a leading ~
    temporary, backup = holder / target.name, holder / f"{target.name}.before"
    try:
        yield temporary
        for path in temporary.rglob("*.safetensors"):  # safetensors makes its files readable by the owner only
            (holder / "mode").touch()
            path.chmod((holder / "mode").stat().st_mode & 0o777)
        for sibling in siblings:
            with atomic_path(sibling) as place:  # may be linked to another disk
                shutil.move(holder / sibling.name, place)
        if temporary.is_dir() and target.is_dir():
            os.replace(target, backup)  # a folder cannot be renamed over a non-empty one
        os.replace(temporary, target)
    except Exception as error:
        refuse_full_disk(target, error)
        raise
    finally:
        if backup.exists() and not target.exists():  # interrupted between the two renames
            os.replace(backup, target)
        shutil.rmtree(holder, ignore_errors=True)


def refuse_full_disk(target: object, error: Exception) -> None:
    """Raise :class:`DiskFullError` if an error, from any library, means that the disk is full."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or os.strerror(errno.ENOSPC) in str(error):
        raise DiskFullError(f"{target} cannot be written: the disk is full. Free some space.") from error


def _make_holder(target: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_HOLDER, dir=target.parent))


def discard(folder: Path, target: Path) -> None:
    """Remove a finished target's work folder, renaming it first so that an interruption cannot leave part of it."""
    holder = _make_holder(target)
    try:
        os.replace(folder, holder / folder.name)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def hold(folder: Path) -> FileLock:
    """Create a work folder and lock it; the lock lasts until it is released or the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigurationError(f"A process is already working in {folder}: wait, or choose another output.") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        raise ConfigurationError(f"{folder} is on a file system without locks: choose a local disk.") from None
    return lock


def is_unused(folder: Path) -> bool:
    """Return whether a work folder contains only the files created by :func:`hold`."""
    return all(path.name == _LOCK or path.name.endswith(_HOLDER) for path in folder.iterdir())


def check_apart(source: object, output: Path) -> None:
    """Check that an output would not overwrite its input documents."""
    places = getattr(source, "places", source)  # a reader lists its places
    for place in places if isinstance(places, (list, tuple)) else [places]:
        if not isinstance(place, (str, os.PathLike)) or not os.path.exists(place):
            continue
        if Path(place).resolve().is_relative_to(output.resolve()):
            raise ConfigurationError(f"{output} would overwrite the input documents ({place}): choose another path.")


def changes(saved: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, str]:
    """Describe each setting that differs from its saved value."""
    settings = json.loads(to_json(settings))
    pairs = {name: (saved.get(name), settings.get(name)) for name in sorted({*saved, *settings})}
    texts = {name: ["not given" if value is None else repr(value) for value in pair] for name, pair in pairs.items()}
    return {name: "{}: was {}, is {}".format(name, *texts[name]) for name, (was, now) in pairs.items() if was != now}


MODEL_FILE = "modules.json"
"""Configuration file found in every model folder."""

SETTINGS_FILE = "settings.json"
"""Settings file in a work folder, with every setting that affects the result."""

RUN_FILE = "simlte.json"
"""Training record in the folder of a trained model."""

EXPORT_FILE = "export.json"
"""Settings file in the folder of an exported model."""


def is_model(folder: Path) -> bool:
    """Return whether a folder contains a model."""
    return os.path.isfile(folder / MODEL_FILE)  # Path.is_file would raise for an unreadable folder


def check_place(target: Path, advice: str = "Choose another output.") -> None:
    """Check that a file or folder can be created at a path, before any work is done."""
    if not target.name or target.name == "..":  # an empty name, which Path takes for the working folder
        raise ConfigurationError(f"{target} cannot be written: it does not name a file or folder. {advice}")
    parent = next(folder for folder in Path(os.path.realpath(target)).parents if os.path.lexists(folder))
    try:  # os.access is wrong about /proc and read-only media
        os.rmdir(tempfile.mkdtemp(suffix=_HOLDER, dir=parent))
    except OSError as error:
        refuse_full_disk(target, error)
        raise ConfigurationError(f"{target} cannot be written: {parent} is not a writable folder. {advice}") from None


def check_new(path: Path, overwrite: bool) -> None:
    """Check that nothing exists at a path, unless ``overwrite`` is set."""
    if path.exists() and not overwrite:
        raise ConfigurationError(f"{path} already exists: choose another output, or pass overwrite=True to replace it.")


def check_file(path: Path, overwrite: bool) -> None:
    """Check, before any work is done, that a file can be written at a path."""
    check_place(path)
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"{path} is not a file: choose another output.")
    check_new(path, overwrite)


def check_free(target: Path, overwrite: bool, marker: str = MODEL_FILE) -> None:
    """Check that a model can be written to ``target``; only another model may be overwritten."""
    check_place(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    check_new(target, overwrite)
    if not os.path.isfile(target / marker):
        advice = "Choose another output, or delete it."
        raise ConfigurationError(f"{target} is not a model (no {marker}), so it is not overwritten. {advice}")


class WorkFolder:
    """The work folder of a long run, beside its output; one process locks it.

    It holds the settings and the intermediate results until the run is finished.

    Args:
        output: What the run writes.
        suffix: Suffix of the folder's name.
        resume: Whether to continue an interrupted run.
    """

    def __init__(self, output: Path, suffix: str, *, resume: bool = False) -> None:
        self.output, self.path, self.resume = output, output.with_name(f"{output.name}{suffix}"), resume
        self._lock: FileLock | None = None

    @property
    def saved_settings(self) -> dict[str, Any]:
        """Settings of the interrupted run; empty if no run was interrupted."""
        file = self.path / SETTINGS_FILE
        return read_json(file) if file.exists() else {}

    def check(self, *, overwrite: bool = False) -> None:
        """Check that a new run can start, or that there is an interrupted run to resume."""
        if self.resume:
            if not self.saved_settings:
                finished = f" {self.output} is finished." if self.output.exists() else ""
                raise ResumeError(f"There is no interrupted run in {self.path}.{finished}")
        elif self.saved_settings:
            hold(self.path).release()
            if not overwrite:
                advice = "resume it (resume=True) or start over (overwrite=True)."
                raise ConfigurationError(f"{self.path} holds an interrupted run: {advice}")
        elif self.path.exists() and not is_unused(self.path):
            raise ConfigurationError(f"{self.path} exists but is not a run's work folder: choose another output.")

    def open(self, settings: Mapping[str, object], *, overwrite: bool = False) -> None:
        """Create the folder, or open the one left by an interrupted run with the same settings, and lock it."""
        self.check(overwrite=overwrite)
        if self.saved_settings and not self.resume:
            shutil.rmtree(self.path)
        self._lock = hold(self.path)
        if not self.resume:
            write_json(self.path / SETTINGS_FILE, settings)
        elif differences := "; ".join(changes(self.saved_settings, settings).values()):
            raise ResumeError(f"The interrupted run in {self.path} had different settings ({differences}).")

    @contextmanager
    def tidying(self, results: str) -> Iterator[None]:
        """Unlock the folder after the block, and remove it if a new run fails before there are ``results`` (a glob)."""
        try:
            yield
        except SimlteError:
            if self._lock is not None and not self.resume and not any(self.path.glob(results)):
                self.close()
            raise
        finally:
            self.release()

    def close(self) -> None:
        """Remove the folder of a finished run."""
        self.release()
        discard(self.path, self.output)

    def release(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.release()


def standard_input() -> BinaryIO:
    """Return standard input; daemons may close it."""
    if sys.stdin is None:
        raise ConfigurationError("Standard input is closed: pass the input as an argument or in a file instead of -.")
    return sys.stdin.buffer


def write_json(target: str | os.PathLike[str], value: object) -> None:
    """Write a value as JSON in UTF-8, atomically; see :func:`to_json`."""
    with atomic_path(target) as temporary:
        temporary.write_text(to_json(value) + "\n", encoding="utf-8")


def to_json(value: object, indent: int | None = 2, default: Callable[[Any], object] | None = None) -> str:
    """Return a value as JSON, with null for NaN and infinity and with lone surrogates replaced."""
    return json.dumps(_writable(value), indent=indent, ensure_ascii=False, allow_nan=False, default=default)


def _writable(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, Mapping):
        return {_writable(name): _writable(member) for name, member in value.items()}
    return [_writable(member) for member in value] if isinstance(value, (list, tuple)) else value


def valid_unicode(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which tokenizers, tables and UTF-8 reject.

    Bytes that Python keeps as surrogates, such as arguments in the locale C, are read as UTF-8.
    """
    escaped = "(?<![\\ud800-\\udbff])[\\udc80-\\udcff]+"
    text = re.sub(escaped, lambda match: match[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace"), text)
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_json(source: str | os.PathLike[str]) -> Any:
    """Read a UTF-8 JSON file; raise :class:`DamagedFileError` if it is not valid JSON."""
    try:
        return json.loads(Path(source).read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedFileError(f"{source} is truncated or damaged ({error}): copy it again or recreate it.") from error


def compute_digest(pieces: Iterable[Any]) -> str:
    """Return a digest of byte strings or arrays, including their lengths."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        data = memoryview(piece)
        digest.update(data.nbytes.to_bytes(8, "big"))  # so that the boundaries between pieces matter
        digest.update(data)
    return digest.hexdigest()
