"""The models that come with this package, small: they are made on the user's machine from what the package carries.

Each is a folder of :data:`FOLDER` with the model's card and the record of the run that made it. Of an encoder there is
the difference from the packaged base in low-rank factors; the static model is there in 8 bits, in model2vec's format. A
model is made, and kept in the user's model folder, when it is first asked for.
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
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from simlte_st.compat import checkpoint_name, encoder_of, quiet_transformers, with_encoder
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import HOME_VARIABLE, MODEL_FILE, atomic_path, check_place
from simlte_st.longformer import convert_to_longformer
from simlte_st.models.loading import load_from
from simlte_st.models.model2vec import SETTINGS, TOKENIZER, WEIGHTS, write_for_model2vec
from simlte_st.models.names import OWN_ENCODERS, OWN_STATIC, base_of_own_models, model_path
from simlte_st.models.static import model2vec_modules
from simlte_st.modules import PositionPooling

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "weights"
"""Has a folder for each model."""

DIFFERENCE_FILE = "difference.safetensors"
"""What is added to the weights of the encoder's linear layers: for each changed weight ``NAME``, ``NAME.left``,
``(out, rank)``, and ``NAME.right``, ``(rank, in)``, in float16."""

CARD_FILE, BUILD_FILE = "README.md", "build.json"
"""The model's card, and the record of the run that made the difference."""

DIGEST_FILE = "difference.sha256"
"""Marks a model that was made here: size and name of each of its files, a line each, and the SHA-256 of its sources."""

RECIPE = 1
"""Part of that digest. Raise it when :func:`untrained` or a default of :class:`~simlte_st.modules.PositionPooling`
changes."""

_AGAIN = "Install simlte-st again."


def untrained(name: str, base: str | os.PathLike[str]) -> SentenceTransformer:
    """Return the model that training began with and that the difference is added to."""
    if name not in OWN_ENCODERS:
        raise ConfigurationError(f"{name!r} is none of {', '.join(OWN_ENCODERS)}.")
    converted, length = name == "simlte-longformer", OWN_ENCODERS[name]
    with torch.random.fork_rng(devices=[]):  # converting draws weights, which are then replaced
        reads = None if converted else length
        loaded = load_from(os.fspath(base), os.fspath(base), max_seq_length=reads, dtype=torch.float32, device="cpu")
        model = loaded.model
        if not loaded.tuned:
            raise ModelError(f"{base} is not a sentence encoder: it has no {MODEL_FILE} that says how it pools.")
        if converted:
            source = checkpoint_name(encoder_of(model))
            encoder = convert_to_longformer(source, length, attention_window=128, positions="tile")
            pooling = next(place for place, module in enumerate(model) if isinstance(module, Pooling))
            model[0] = with_encoder(cast(Any, model[0]), encoder)
            model[pooling] = PositionPooling(encoder.config.hidden_size)
            model.max_seq_length = length
    return model


def add_difference(model: SentenceTransformer, path: str | os.PathLike[str]) -> None:
    """Add a difference, in place, to the model that it was computed from."""
    try:
        factors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The difference {os.fspath(path)} cannot be read: {error}. {_AGAIN}") from None
    weights = linear_weights(model)
    changes = {}
    for name in sorted({key.rpartition(".")[0] for key in factors}):
        left, right = (factors.get(f"{name}.{side}", torch.empty(0)) for side in ("left", "right"))
        fits = name in weights and left.shape[-1:] == right.shape[:1]
        if not fits or (*left.shape[:-1], *right.shape[1:]) != tuple(weights[name].shape):
            raise ModelError(f"The difference {os.fspath(path)} does not fit {name}: it is of another model.")
        changes[name] = left.float() @ right.float()
    with torch.no_grad():
        for name, change in changes.items():
            weights[name].add_(change.to(weights[name]))


def linear_weights(model: SentenceTransformer) -> dict[str, Tensor]:
    """Return the weights of an encoder's linear layers by name, without the output layer of a masked language model."""
    encoder = encoder_of(model)
    head = encoder.get_output_embeddings()
    layers = {name: layer for name, layer in encoder.named_modules() if isinstance(layer, nn.Linear)}
    return {f"{name}.weight": layer.weight for name, layer in layers.items() if layer is not head}


def put_together(name: str) -> Path:
    """Make one of this package's models in the user's model folder, unless it is there, and return its folder.

    A user's own model of that name stays. A model that is incomplete or was made by another version of this package is
    made again. One of several processes makes it, and the others wait.
    """
    target, source = model_path(name), FOLDER / name
    carried = (WEIGHTS, TOKENIZER, SETTINGS) if name == OWN_STATIC else (DIFFERENCE_FILE,)
    files = {file: _read(source / file) for file in (*carried, CARD_FILE, BUILD_FILE)}
    digest = _digest(files)
    if _stays(target, digest):
        return target
    advice = f"Set the environment variable {HOME_VARIABLE} to a folder that can be written."
    check_place(target, advice)
    with ExitStack() as held:
        with _writing(target, advice):
            target.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(target.with_name(f".{name}.lock")))
        if not _stays(target, digest):
            # Warnings, which are shown without any set-up of logging, since this writes into the user's folders.
            if name == OWN_STATIC:
                logger.warning("Making %s, once, from its 8 bits, in %s.", name, target)
                model = _static(source)
            else:
                base = base_of_own_models()
                message = "Making %s, once, from %s and the difference that training made, in %s."
                logger.warning(message, name, base, target)
                held.enter_context(quiet_transformers())
                model = untrained(name, base)
                add_difference(model, source / DIFFERENCE_FILE)
            with _writing(target, advice), atomic_path(target) as path:
                model.save_pretrained(str(path), create_model_card=False)
                if name == OWN_STATIC:
                    write_for_model2vec(path)
                for file in (CARD_FILE, BUILD_FILE):
                    (path / file).write_bytes(files[file])
                (path / DIGEST_FILE).write_text("\n".join([*_sizes(path), digest, ""]), encoding="utf-8")
    return target


def _static(source: Path) -> SentenceTransformer:
    """Return the static model of a folder in 8 bits."""
    try:
        return SentenceTransformer(modules=model2vec_modules(str(source)), device="cpu")
    except Exception as error:  # the libraries raise anything at damaged files
        raise ModelError(f"{source}, which comes with this package, is damaged: {error}. {_AGAIN}") from None


@contextmanager
def _writing(target: Path, advice: str) -> Iterator[None]:
    """Raise a ConfigurationError with an advice in place of errors of writing."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        problem = str(error).rstrip(".")
        raise ConfigurationError(f"{target.name} could not be written to {target}: {problem}. {advice}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"{path}, which comes with this package, cannot be read ({error.strerror})."
        raise ModelError(f"{problem} {_AGAIN}") from None


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(f"recipe {RECIPE}\n".encode("ascii"))
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode("ascii"))
        digest.update(content)
    return digest.hexdigest()


def _sizes(folder: Path) -> list[str]:
    """Return a line with size and name for each file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [f"{path.stat().st_size} {path.relative_to(folder).as_posix()}" for path in files]


def _stays(folder: Path, digest: str) -> bool:
    """Return whether a folder is the whole model of a digest, or the user's own."""
    try:
        lines = (folder / DIGEST_FILE).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return False
    except OSError:  # without that file, a folder is the user's if it has any files or may not be read
        try:
            return os.path.isdir(folder) and bool(os.listdir(folder))
        except OSError:
            return True
    return lines[-1:] == [digest] and {*lines[:-1]} <= {*_sizes(folder)}
