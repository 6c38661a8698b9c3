"""Register our architectures and models with sentence-transformers, without importing it.

Neither library reads entry points, and users may import this package before or after them. A hook therefore registers
ours right after their import.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

import wrapt

if TYPE_CHECKING:
    from torch import nn


def register() -> None:
    """Register now if sentence-transformers is imported, otherwise right after its import."""
    wrapt.register_post_import_hook(_register, "sentence_transformers.sentence_transformer.model")


def _register(_: ModuleType) -> None:
    from simlte_st.compat import extend_stock

    importlib.import_module("simlte_st.longformer.modeling")  # adds itself to transformers' Auto classes
    extend_stock(named_folder, _OwnModules())


def named_folder(name: str) -> str | None:
    """Return the folder of a model of this package or of the packaged base, unless a folder here has its name."""
    from simlte_st.models.names import OWN_MODELS, PACKAGED_BASE

    if name not in (*OWN_MODELS, PACKAGED_BASE) or os.path.isdir(name):
        return None
    from simlte_st.models.loading import model_source

    return model_source(name)


class _OwnModules(dict[str, "type[nn.Module]"]):
    """Modules of this package by their names in ``modules.json``, imported on first use."""

    def __bool__(self) -> bool:
        return True  # otherwise a Router does not get them

    def get(self, name: str, default: Any = None) -> Any:
        if name.startswith("simlte_st.modules."):
            from simlte_st.modules import OWN_MODULES

            self.update({f"{module.__module__}.{module.__name__}": module for module in OWN_MODULES})
        return super().get(name, default)
