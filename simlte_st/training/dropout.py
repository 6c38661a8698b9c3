"""Sets the dropout of a model that is there already."""

from __future__ import annotations

from torch import nn


def set_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of every dropout in a model, attention's included."""
    for module in model.modules():
        _set_dropout(module, probability)


def set_attention_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of dropping an attention weight in all layers of a model."""
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith("Attention"):
            _set_dropout(module, probability)
        if kind.endswith("SelfAttention"):  # what is around it drops from hidden states
            for part in module.modules():
                _set_dropout(part, probability)


def _set_dropout(module: nn.Module, probability: float) -> None:
    if isinstance(module, nn.Dropout):
        module.p = probability
    # Fused attention does not use the modules but a number that the attention layer keeps, under one of a few names.
    for attribute in ("dropout_prob", "attention_dropout", "dropout"):
        if isinstance(getattr(module, attribute, None), float):
            setattr(module, attribute, probability)
