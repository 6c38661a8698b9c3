"""Every touch of a private name of sentence-transformers or transformers, and of names that changed.

``tests/test_compat.py`` notices when one of them moves.
"""

from __future__ import annotations

from transformers import PreTrainedModel


def checkpoint_name(encoder: PreTrainedModel) -> str:
    """Name the folder or repository that an encoder was loaded from; empty if it was not loaded."""
    return str(getattr(encoder.config, "_name_or_path", ""))


def enable_checkpointing(encoder: PreTrainedModel) -> None:
    """Let an encoder compute each layer again in the backward pass; transformers has renamed what does it."""
    enable = getattr(encoder, "activation_checkpointing_enable", None) or encoder.gradient_checkpointing_enable
    enable({"use_reentrant": False})
