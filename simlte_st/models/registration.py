"""Register this package's architectures and models with sentence-transformers, without importing it.

Neither transformers nor sentence-transformers supports entry points, and users may import this package before or after
them. A post-import hook therefore registers the architectures and models as soon as sentence-transformers is imported.
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
    wrapt.register_post_import_hook(_register, "sentence_transformers.base.model")


def _register(_: ModuleType) -> None:
    from simlte_st.compat import extend_stock

    importlib.import_module("simlte_st.longformer.modeling")  # registers itself with transformers' Auto classes
    extend_stock(named_folder, _OwnModules())


def named_folder(name: str) -> str | None:
    """Return the folder of one of this package's models or the packaged base; None for local folders and others."""
    from simlte_st.models.names import OWN_MODELS, PACKAGED_BASE

    if name not in (*OWN_MODELS, PACKAGED_BASE) or os.path.isdir(name):
        return None
    from simlte_st.models.loading import model_source

    return model_source(name)


class _OwnModules(dict[str, "type[nn.Module]"]):
    """Modules of this package by their names in ``modules.json``, imported on first use."""

    def __bool__(self) -> bool:
        return True  # a Router would ignore an empty, hence false, dict

    def get(self, name: str, default: Any = None) -> Any:
        if name.startswith("simlte_st.modules."):
            from simlte_st.modules import OWN_MODULES

            self.update({f"{module.__module__}.{module.__name__}": module for module in OWN_MODULES})
        return super().get(name, default)
