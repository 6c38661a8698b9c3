"""The models that come with this package: small differences, added to a base that is on the user's machine.

Each is a folder of :data:`FOLDER` with the low-rank difference from the packaged base (:data:`DIFFERENCE_FILE`), the
model's card, and the account of the run that made it. When the model is first asked for, it is put together and kept in
the user's model folder.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from filelock import FileLock
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from simlte_st.compat import checkpoint_name, encoder_of, quiet_transformers, with_encoder
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import HOME_VARIABLE, MODEL_FILE, atomic_path, check_place, restore
from simlte_st.longformer import convert_to_longformer
from simlte_st.models.difference import AGAIN, DIFFERENCE_FILE, add_difference
from simlte_st.models.loading import load_from
from simlte_st.models.names import OWN_MODELS, base_of_own_models, model_path
from simlte_st.modules import PositionPooling

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "weights"
"""A folder for each model, called as the model is."""

CARD_FILE = "README.md"
"""The model's card."""

BUILD_FILE = "build.json"
"""The account of the run that made the difference."""

DIGEST_FILE = "difference.sha256"
"""What only a model that was put together has in its folder: a line for each of its files, with the size in bytes and
the name, and at last the SHA-256 of what it was made of."""

RECIPE = 1
"""Part of that digest. Raise it when models are put together in another way: when :func:`untrained` changes, or a
default of :class:`~simlte_st.modules.PositionPooling`."""


def untrained(name: str, base: str | os.PathLike[str]) -> SentenceTransformer:
    """Make the model that training begins with, and that the difference is added to."""
    if name not in OWN_MODELS:
        raise ConfigurationError(f"{name!r} is none of {', '.join(OWN_MODELS)}.")
    converted, length = name == "simlte-longformer", OWN_MODELS[name]
    # Converting draws weights that are replaced at once: a seeded run shall not depend on whether it came to that.
    with torch.random.fork_rng(devices=[]):
        reads = None if converted else length
        loaded = load_from(os.fspath(base), os.fspath(base), max_seq_length=reads, dtype=torch.float32, device="cpu")
        model, transformer = loaded.model, cast(Any, loaded.model[0])
        if not loaded.tuned:
            raise ModelError(f"{base} is no sentence encoder: it has no {MODEL_FILE} that says how it pools.")
        if converted:
            source = checkpoint_name(encoder_of(model))
            encoder = convert_to_longformer(source, length, attention_window=128, positions="tile")
            pooling = next(place for place, module in enumerate(model) if isinstance(module, Pooling))
            model[0], model[pooling] = with_encoder(transformer, encoder), PositionPooling(encoder.config.hidden_size)
            model.max_seq_length = length
    return model


def put_together(name: str) -> Path:
    """Make a model that comes with this package of its base and its difference, in the user's model folder.

    It is there in one rename. Nothing is made where it is there already, or a model that the user made under its name.
    One that was put together from something else, as an older version of this package does, or of which a file is
    missing or cut, is made anew. Of several processes that ask for a model at once, one makes it and the others wait.
    """
    target, source = model_path(name), FOLDER / name
    files = {file: _read(source / file) for file in (DIFFERENCE_FILE, CARD_FILE, BUILD_FILE)}
    digest = _digest(files)
    if _stays(target, digest):
        return target
    advice = f"Set the environment variable {HOME_VARIABLE} to a folder that can be written."
    check_place(target, advice)
    with ExitStack() as held:
        with _writing(target, advice):
            target.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(target.with_name(f".{name}.lock")))
            restore(target)  # the user's own may have been on the way when its process was killed
        if not _stays(target, digest):
            base = base_of_own_models()
            # A warning is seen without setting up logging: nothing is written into a user's folders unsaid.
            logger.warning("Putting %s together, once: %s and what training added to it, into %s.", name, base, target)
            held.enter_context(quiet_transformers())
            model = untrained(name, base)
            add_difference(model, source / DIFFERENCE_FILE)
            with _writing(target, advice), atomic_path(target) as path:
                model.save_pretrained(str(path), create_model_card=False)
                for file in (CARD_FILE, BUILD_FILE):
                    (path / file).write_bytes(files[file])
                (path / DIGEST_FILE).write_text("\n".join([*_sizes(path), digest, ""]), encoding="utf-8")
    return target


@contextmanager
def _writing(target: Path, advice: str) -> Iterator[None]:
    """Say what could not be written. What goes wrong with the base says so itself."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        problem = str(error).rstrip(".")
        raise ConfigurationError(f"{target.name} could not be written to {target}: {problem}. {advice}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}, which comes with this package, cannot be read ({error.strerror}). {AGAIN}") from None


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(f"recipe {RECIPE}\n".encode("ascii"))
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode("ascii"))
        digest.update(content)
    return digest.hexdigest()


def _sizes(folder: Path) -> list[str]:
    """Write down the size and the name of each file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [f"{path.stat().st_size} {path.relative_to(folder).as_posix()}" for path in files]


def _stays(folder: Path, digest: str) -> bool:
    """Return whether at a path is the whole model of this digest, or what the user made."""
    try:
        lines = (folder / DIGEST_FILE).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return False
    except OSError:  # it has no such file, or may not be looked into: either way it is none of ours
        return os.path.isdir(folder) and not _is_empty(folder)
    return lines[-1:] == [digest] and _is_whole(folder, lines[:-1])


def _is_whole(folder: Path, sizes: list[str]) -> bool:
    try:
        recorded = (line.split(" ", 1) for line in sizes)
        return all(os.path.getsize(folder / name) == int(size) for size, name in recorded)
    except (OSError, ValueError):  # a file is missing, or the lines are damaged
        return False


def _is_empty(folder: Path) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False
