"""Every touch of a private name of sentence-transformers or transformers, and nothing else.

``tests/test_compat.py`` notices when one of them moves.
"""

from __future__ import annotations

from sentence_transformers import SentenceTransformer
from transformers import PreTrainedModel


def checkpoint_name(encoder: PreTrainedModel) -> str:
    """Name the folder or repository that an encoder was loaded from; empty if it was not loaded."""
    return str(getattr(encoder.config, "_name_or_path", ""))


def forget_model_card_text(model: SentenceTransformer) -> None:
    """Make a model write a new card instead of the text of the one it was loaded with."""
    model._model_card_text = None
