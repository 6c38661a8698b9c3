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
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from simlte_st.compat import encoder_of, quiet_transformers
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import HOME_VARIABLE, atomic_path, check_place, restore
from simlte_st.models.base import load_model
from simlte_st.models.conversion import convert_base
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
"""What only a model that was put together has in its folder: the SHA-256 of the difference in it."""

_READS = {"simlte-bert": 512, "simlte-longformer": 4096}  # tokens
_LOST = 1e-3
"""Share of a change, by its norm, that its factors may lack; rounding them to float16 takes a third of that."""


def is_shipped(name: str) -> bool:
    """Tell whether a model of this name comes with the package."""
    return name in OWN_MODELS and (FOLDER / name / DIFFERENCE_FILE).is_file()


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
        ModelError: The base cannot be loaded or converted.
    """
    if name not in _READS:
        raise ConfigurationError(f"{name!r} is none of {', '.join(_READS)}.")
    loading: dict[str, Any] = {"max_seq_length": _READS[name], "dtype": torch.float32, "device": "cpu"}
    if name == "simlte-bert":
        return load_model(base, **loading).model
    # Converting draws weights that are replaced at once: a seeded run shall not depend on whether it came to that.
    with torch.random.fork_rng(devices=[]), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        converted = Path(folder) / name
        convert_base(
            base, converted, backbone="longformer", max_length=_READS[name], attention_window=128, positions="tile"
        )
        model = load_model(converted, **loading).model
    pooling = next(place for place, module in enumerate(model) if isinstance(module, Pooling))
    model[pooling] = PositionPooling(encoder_of(model).config.hidden_size)
    return model


def put_together(name: str) -> Path:
    """Make a shipped model of its base and its difference, in the user's model folder, in one rename.

    Nothing is made where the model is there already, or a model that the user made under its name. One that was put
    together from another difference, as an older version of this package does, is made anew. Of several processes that
    ask for a model at once, one makes it and the others wait.

    Args:
        name: See :func:`is_shipped`.

    Returns:
        Its folder.

    Raises:
        ModelError: No such model comes with the package, its base is neither installed nor to be had from the Hub, or
            base or difference are damaged.
        ConfigurationError: The user's model folder cannot be written.
    """
    if not is_shipped(name):
        raise ModelError(f"No model {name!r} comes with this package.")
    source, target = FOLDER / name, model_path(name)
    digest = hashlib.sha256((source / DIFFERENCE_FILE).read_bytes()).hexdigest()
    if _stays(target, digest):
        return target
    beside = {file: (source / file).read_bytes() for file in (CARD_FILE, BUILD_FILE)}
    beside[DIGEST_FILE] = f"{digest}\n".encode("ascii")
    advice = f"Set the environment variable {HOME_VARIABLE} to a folder that can be written."
    check_place(target, advice)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{name}.lock")):
            restore(target)  # the user's own may have been on the way when its process was killed
            if not _stays(target, digest):
                _make(name, source / DIFFERENCE_FILE, target, beside)
    except (OSError, SafetensorError) as error:
        raise ConfigurationError(f"{name} could not be written to {target}: {error}. {advice}") from error
    return target


def _stays(folder: Path, digest: str) -> bool:
    """Tell whether there is a model with this difference, or what the user made, at a path."""
    made_from = folder / DIGEST_FILE
    return folder.is_dir() and (not made_from.is_file() or made_from.read_text(encoding="ascii").strip() == digest)


def _make(name: str, difference: Path, target: Path, beside: Mapping[str, bytes]) -> None:
    base = base_of_own_models()
    logger.info("Putting %s together, once: %s and what training added to it, into %s.", name, base, target)
    with quiet_transformers():
        model = untrained(name, base)
        add_difference(model, difference)
        with atomic_path(target) as path:
            model.save_pretrained(str(path), create_model_card=False)
            for file, content in beside.items():
                (path / file).write_bytes(content)


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
        raise ModelError(
            f"The difference {os.fspath(path)} cannot be read: {error}. Install simlte-st again."
        ) from None
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
