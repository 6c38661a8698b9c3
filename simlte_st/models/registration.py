"""Register our architectures and models with sentence-transformers, without importing it.

sentence-transformers and transformers read no entry points, and users may import this package before or after them. So
a hook registers ours right after their import.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_AWAITED = "sentence_transformers.sentence_transformer.model"


def register() -> None:
    """Register now if sentence-transformers is imported, otherwise right after its import."""
    if _AWAITED in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
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


class _OwnModules(dict[str, Any]):
    """Modules of this package by their names in ``modules.json``, imported on first use."""

    def __bool__(self) -> bool:
        return True  # otherwise a Router does not get them

    def get(self, name: str, default: Any = None) -> Any:
        if name.startswith("simlte_st.modules."):
            from simlte_st.modules import OWN_MODULES

            self.update({f"{module.__module__}.{module.__name__}": module for module in OWN_MODULES})
        return super().get(name, default)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _AWAITED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and (loader := spec.loader) is not None:

            def run_and_register(module: ModuleType) -> None:
                del loader.exec_module  # restores the method of the class
                loader.exec_module(module)
                _register()

            loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
