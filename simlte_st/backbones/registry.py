"""Every backbone by name, as ``simlte convert --backbone`` and ``simlte train --backbone`` have them.

A new backbone is a room with a :class:`~simlte_st.backbones.base.Backbone`, whose fields become options of ``simlte
convert``, and one line in :data:`BACKBONES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simlte_st.backbones.base import Backbone
from simlte_st.chunk_mean.backbone import ChunkMean
from simlte_st.config import check_choice
from simlte_st.errors import ConfigurationError
from simlte_st.longformer.backbone import Longformer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BACKBONES: dict[str, type[Backbone]] = {"longformer": Longformer, "chunk-mean": ChunkMean}


def backbone_of(encoder: PreTrainedModel) -> type[Backbone]:
    """Return the backbone that an encoder is; :class:`~simlte_st.backbones.base.Backbone` for a stock one."""
    kind = encoder.config.model_type
    return next((backbone for backbone in BACKBONES.values() if backbone.model_type == kind), Backbone)


def replacement_of(encoder: PreTrainedModel) -> str | None:
    """Return the name of the backbone that replaces a stock encoder and computes the same, if there is one."""
    kind = encoder.config.model_type
    return next((name for name, backbone in BACKBONES.items() if kind in backbone.replaces), None)


def make_backbone(name: str, **settings: Any) -> Backbone:
    """Return a backbone by name, with the settings that are not None."""
    check_choice("backbone", name, BACKBONES)
    chosen = {setting: value for setting, value in settings.items() if value is not None}
    for setting, value in chosen.items():
        owners = [other for other, backbone in BACKBONES.items() if setting in backbone.accepted()]
        if not owners:
            known = BACKBONES[name].accepted()
            raise ConfigurationError(f"The backbone {name!r} has no setting {setting}=: it has {known}.")
        if name not in owners:
            raise ConfigurationError(f"{setting}={value!r} is a setting of backbone={owners[0]!r}: leave it out.")
    return BACKBONES[name](**chosen)
