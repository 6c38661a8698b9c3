"""The models that come with this package: small differences, added to a base that is on the user's machine.

Each is a folder of :data:`FOLDER` with the low-rank difference from the packaged base (:data:`DIFFERENCE_FILE`), the
model's card, and the account of the run that made it. When the model is first asked for, it is put together and kept in
the user's model folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from simlte_st.compat import checkpoint_name, encoder_of, quiet_transformers, with_encoder
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import HOME_VARIABLE, MODEL_FILE, atomic_path, check_place, restore
from simlte_st.longformer import convert_to_longformer
from simlte_st.models.base import load_model
from simlte_st.models.names import OWN_MODELS, base_of_own_models, model_path
from simlte_st.modules import PositionPooling

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "weights"
"""A folder for each model, called as the model is."""

DIFFERENCE_FILE = "difference.safetensors"
"""What was added to the weights of the encoder's linear layers: for each that changed, ``NAME.left``, ``(out, rank)``,
and ``NAME.right``, ``(rank, in)``, float16. ``NAME`` is that of the weight in the encoder."""

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

_AGAIN = "Install simlte-st again."
_LOST = 1e-3
"""Share of a change, by its norm, that its factors may lack; rounding them to float16 takes a third of that."""


def untrained(name: str, base: str | os.PathLike[str]) -> SentenceTransformer:
    """Make the model that training begins with, and that the difference is added to.

    Args:
        name: ``"simlte-longformer"``, for which the base is converted and pools by position, or ``"simlte-bert"``.
        base: Folder or name of the base, all-MiniLM-L6-v2.

    Returns:
        The model, float32, on the CPU. A converted one is in memory only: where a Trainer shall resume with it, save it
        and load it from there.

    Raises:
        ConfigurationError: Another name.
        ModelError: The base cannot be loaded or converted, or is a bare language model.
    """
    if name not in OWN_MODELS:
        raise ConfigurationError(f"{name!r} is none of {', '.join(OWN_MODELS)}.")
    converted, length = name == "simlte-longformer", OWN_MODELS[name]
    # Converting draws weights that are replaced at once: a seeded run shall not depend on whether it came to that.
    with torch.random.fork_rng(devices=[]):
        reads = None if converted else length
        loaded = load_model(base, max_seq_length=reads, dtype=torch.float32, device="cpu")
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

    Args:
        name: One of :data:`~simlte_st.models.names.OWN_MODELS`.

    Returns:
        Its folder.

    Raises:
        ModelError: Its base is neither installed nor to be had from the Hub, or base or difference are damaged or
            cannot be read.
        ConfigurationError: The user's model folder cannot be written.
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
            logger.info("Putting %s together, once: %s and what training added to it, into %s.", name, base, target)
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
        raise ConfigurationError(f"{target.name} could not be written to {target}: {error}. {advice}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"{path}, which comes with this package, cannot be read ({error.strerror}). {_AGAIN}"
        ) from None


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
    """Tell whether at a path is the whole model of this digest, or what the user made."""
    try:
        lines = (folder / DIGEST_FILE).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return False
    except OSError:  # it has no such file, or may not be looked into: either way it is none of ours
        return os.path.isdir(folder) and not _is_empty(folder)
    return lines[-1:] == [digest] and _is_whole(folder, lines[:-1])


def _is_whole(folder: Path, sizes: list[str]) -> bool:
    try:
        told = (line.split(" ", 1) for line in sizes)
        return all(os.path.getsize(folder / name) == int(size) for size, name in told)
    except (OSError, ValueError):  # a file is missing, or the lines are damaged
        return False


def _is_empty(folder: Path) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False


def take_difference(base_model: SentenceTransformer, model: SentenceTransformer, rank: int) -> dict[str, Tensor]:
    """Find the low-rank factors of what training added to the linear layers of an encoder.

    Args:
        base_model: The model that training began with.
        model: What it became, with its adapters merged.
        rank: Rank of the adapters.

    Returns:
        The factors, as :data:`DIFFERENCE_FILE` holds them.

    Raises:
        ModelError: The models differ by anything else, or by more than factors of this rank can hold.
    """
    before, after = base_model.state_dict(), model.state_dict(keep_vars=True)
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after or before[name].shape != after[name].shape:
            raise ModelError(f"The model is not the base with other weights: they differ in what {name} is.")
    linear = {id(weight): name for name, weight in _linear_weights(model).items()}
    factors = {}
    for name, weight in after.items():
        old = before[name].detach().float().cpu()
        change = weight.detach().float().cpu() - old
        if not change.any():
            continue
        if id(weight) not in linear:
            raise ModelError(f"{name} changed: a difference holds only weights of the encoder's linear layers.")
        if not torch.isfinite(change).all():
            raise ModelError(f"{name} holds numbers that are not finite.")
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        scale = sizes[:rank].sqrt()
        left, right = (left[:, :rank] * scale).half(), (scale[:, None] * right[:rank]).half()
        lost = (left.float() @ right.float() - change).norm()
        if lost > _LOST * change.norm() + torch.finfo(torch.float32).eps * old.norm():  # the latter: adding rounds
            raise ModelError(
                f"{name} changed by more than float16 factors of rank {rank} hold: {lost / change.norm():.1%} of the "
                "change would be lost. Train with LoRA of this rank at most."
            )
        factors[f"{linear[id(weight)]}.left"] = left.contiguous()
        factors[f"{linear[id(weight)]}.right"] = right.contiguous()
    return factors


def write_difference(path: str | os.PathLike[str], factors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write a difference; the same one gives the same bytes.

    Args:
        path: The file.
        factors: Of :func:`take_difference`.
        metadata: JSON values to keep in the file's header, such as how it was made.
    """
    told = json.dumps(dict(metadata), sort_keys=True)  # one value: of several, the library shuffles the order
    with atomic_path(path) as temporary:
        save_file(dict(factors), temporary, metadata={"simlte_st": told})


def add_difference(model: SentenceTransformer, path: str | os.PathLike[str]) -> None:
    """Add a difference to the model that it was taken from, in place.

    Args:
        model: Of :func:`untrained`.
        path: The file.

    Raises:
        ModelError: The file cannot be read, or belongs to another model; nothing was added.
    """
    try:
        factors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The difference {os.fspath(path)} cannot be read: {error}. {_AGAIN}") from None
    weights = _linear_weights(model)
    changes = {}
    for name in sorted({key.rpartition(".")[0] for key in factors}):
        left, right = (factors.get(f"{name}.{side}", torch.empty(0)) for side in ("left", "right"))
        fits = name in weights and left.shape[-1:] == right.shape[:1]
        if not fits or (*left.shape[:-1], *right.shape[1:]) != tuple(weights[name].shape):
            raise ModelError(f"The difference {os.fspath(path)} does not fit {name} of the model: it is another's.")
        changes[name] = left.float() @ right.float()
    with torch.no_grad():
        for name, change in changes.items():
            weights[name].add_(change.to(weights[name]))


def _linear_weights(model: SentenceTransformer) -> dict[str, Tensor]:
    """Name the weights of an encoder's linear layers; the output layer of a masked language model is none of them."""
    encoder = encoder_of(model)
    head = encoder.get_output_embeddings()
    layers = {name: layer for name, layer in encoder.named_modules() if isinstance(layer, nn.Linear)}
    return {f"{name}.weight": layer.weight for name, layer in layers.items() if layer is not head}
