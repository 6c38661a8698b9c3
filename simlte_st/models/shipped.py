"""The models of this package, which are stored in compact form and unpacked on first use.

Each has a folder in :data:`FOLDER` with its card and training record. Encoders are stored as low-rank factors of their
difference from the packaged base, the static model in 8 bits in model2vec's format. Unpacked models are kept in
:func:`~simlte_st.models.names.own_folder`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch
from filelock import FileLock
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn

from simlte_st.compat import checkpoint_name, get_encoder, quiet_transformers
from simlte_st.files import HOME_VARIABLE, atomic_path, check_place, compute_digest
from simlte_st.longformer import convert_to_longformer
from simlte_st.models.names import OWN_ENCODERS, OWN_STATIC, base_of_own_models, own_folder
from simlte_st.models.static import model2vec_modules, write_for_model2vec
from simlte_st.modules import PositionPooling

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "weights"
"""Folder of the stored models."""

DIFFERENCE_FILE = "difference.safetensors"
"""Changes of the encoder's linear layers: for each weight ``NAME``, the factors ``NAME.left`` ``(out, rank)`` and
``NAME.right`` ``(rank, in)``, in float16."""

CARD_FILE, BUILD_FILE = "README.md", "build.json"
"""The model's card and training record."""

DIGEST_FILE = "source.digest"
"""Marks a folder as an unpacked model, and contains the digest of its sources."""

RECIPE = 1
"""Version number included in that digest. Increase it when :func:`make_untrained` or a default of
:class:`~simlte_st.modules.PositionPooling` changes."""


def make_untrained(name: str, model: SentenceTransformer) -> SentenceTransformer:
    """Turn the float32 base into the untrained model; :func:`add_difference` then adds the result of training."""
    if name == "simlte-longformer":
        with torch.random.fork_rng(devices=[]):  # the conversion initialises weights and then replaces them
            source = checkpoint_name(get_encoder(model))
            encoder = convert_to_longformer(source, OWN_ENCODERS[name], attention_window=128)
        pooling = next(index for index, module in enumerate(model) if isinstance(module, Pooling))
        model[0].model = encoder
        model[pooling] = PositionPooling(encoder.config.hidden_size)
    model.max_seq_length = OWN_ENCODERS[name]
    return model


def add_difference(model: SentenceTransformer, path: str | os.PathLike[str]) -> None:
    """Add a stored difference to a model, in place."""
    factors, weights = load_file(path), linear_weights(model)
    with torch.no_grad():
        for name in sorted({key.rpartition(".")[0] for key in factors}):
            change = factors[f"{name}.left"].float() @ factors[f"{name}.right"].float()
            weights[name].add_(change.to(weights[name]))


def linear_weights(model: SentenceTransformer) -> dict[str, Tensor]:
    """Return the weights of an encoder's linear layers by name, except the output layer of a masked language model."""
    encoder = get_encoder(model)
    head = encoder.get_output_embeddings()
    layers = {name: layer for name, layer in encoder.named_modules() if isinstance(layer, nn.Linear)}
    return {f"{name}.weight": layer.weight for name, layer in layers.items() if layer is not head}


def unpack_model(name: str, load: Callable[[Path], SentenceTransformer]) -> Path:
    """Unpack a model of this package, unless it is already unpacked, and return its folder.

    ``load`` loads the base, in float32 on the CPU. A model unpacked by another version of this package is unpacked
    again. If several processes need a model, one unpacks it while the others wait.
    """
    target, source = own_folder(name), FOLDER / name
    digest = compute_digest([str(RECIPE).encode(), *(path.read_bytes() for path in sorted(source.iterdir()))])
    if _is_unpacked(target, digest):
        return target
    check_place(target, f"Set the environment variable {HOME_VARIABLE} to a writable folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(FileLock(target.with_name(f".{name}.lock")))
        if not _is_unpacked(target, digest):
            # Unpacking writes to the user's folders: log a warning, which is shown even if logging is not configured.
            if name == OWN_STATIC:
                logger.warning("Unpacking %s (first use only) to %s.", name, target)
                model = SentenceTransformer(modules=model2vec_modules(str(source)), device="cpu")
            else:
                base = base_of_own_models()
                logger.warning("Building %s (first use only) from %s, in %s.", name, base, target)
                stack.enter_context(quiet_transformers())
                model = make_untrained(name, load(base))
                add_difference(model, source / DIFFERENCE_FILE)
            with atomic_path(target) as path:
                model.save_pretrained(str(path), create_model_card=False)
                if name == OWN_STATIC:
                    write_for_model2vec(path)
                for file in (CARD_FILE, BUILD_FILE):
                    (path / file).write_bytes((source / file).read_bytes())
                (path / DIGEST_FILE).write_text(digest, encoding="ascii")
    return target


def _is_unpacked(folder: Path, digest: str) -> bool:
    path = folder / DIGEST_FILE
    return os.path.isfile(path) and path.read_text(encoding="ascii") == digest
