"""Every backbone of this package by name: what ``simlte convert --backbone`` and ``simlte train --backbone`` know.

A new backbone is a frozen dataclass that follows :class:`~simlte_st.backbones.base.Backbone`, in a room of its own, and
one line in :data:`BACKBONES`. Its fields are options of ``simlte convert`` then, explained by its docstring.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from simlte_st.backbones.base import Backbone
from simlte_st.checks import check_choice
from simlte_st.chunk_mean.backbone import ChunkMean
from simlte_st.errors import ConfigurationError
from simlte_st.longformer.backbone import Longformer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BACKBONES: dict[str, type[Backbone]] = {"longformer": Longformer, "chunk-mean": ChunkMean}


def backbone_of(encoder: PreTrainedModel) -> type[Backbone]:
    """Find the backbone that an encoder is; :class:`~simlte_st.backbones.base.Backbone` for a stock one."""
    kind = encoder.config.model_type
    return next((backbone for backbone in BACKBONES.values() if backbone.model_type == kind), Backbone)


def replacement_of(encoder: PreTrainedModel) -> str | None:
    """Name the backbone that takes the place of a stock encoder, computing the same; None where there is none."""
    kind = encoder.config.model_type
    return next((name for name, backbone in BACKBONES.items() if kind in backbone.replaces), None)


def make_backbone(name: str, **settings: Any) -> Backbone:
    """Make a backbone by name."""
    check_choice("backbone", name, BACKBONES)
    chosen = {setting: value for setting, value in settings.items() if value is not None}
    known = {other: [field.name for field in fields(kind)] for other, kind in BACKBONES.items()}  # type: ignore[arg-type]
    for setting, value in chosen.items():
        if setting not in known[name]:
            others = [other for other, names in known.items() if setting in names]
            if not others:
                raise ConfigurationError(f"The backbone {name!r} has no setting {setting}=: it has {known[name]}.")
            raise ConfigurationError(f"{setting}={value!r} is for backbone={others[0]!r}: leave it out.")
    return BACKBONES[name](**chosen)
