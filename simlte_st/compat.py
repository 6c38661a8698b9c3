"""Every touch of a private name of sentence-transformers or transformers, and nothing else.

``tests/test_compat.py`` notices when one of them moves.
"""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING

from transformers import PreTrainedModel

if TYPE_CHECKING:  # at run time this module must not import what may be half imported
    from sentence_transformers.base.modules import Transformer


def checkpoint_name(encoder: PreTrainedModel) -> str:
    """Name the folder or repository that an encoder was loaded from; empty if it was not loaded."""
    return str(getattr(encoder.config, "_name_or_path", ""))


def with_encoder(transformer: Transformer, encoder: PreTrainedModel) -> Transformer:
    """Copy a Transformer module, tokenizer included, around another encoder, which is not copied.

    The module remembers which features its encoder takes: for the one to come that has to be found out again.
    """
    kept = {id(transformer.auto_model): encoder}  # deepcopy takes this for the copy of the old encoder
    made = copy.deepcopy(transformer, kept)
    parameters = inspect.signature(encoder.forward).parameters
    made._declared_forward_params = set(parameters)
    made.model_forward_params = None  # all features but sentence-transformers' own: forward must take **kwargs
    assert any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    made.unpad_inputs = transformer.unpad_inputs  # assigning asks the new encoder whether it can go without padding
    return made
