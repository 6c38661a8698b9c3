"""Register our Longformer and our model names with the libraries, without making ``import simlte_st`` import torch.

transformers' Auto classes get our Longformer, and sentence-transformers' class the names of our models. If they have
not been imported yet, this happens right after their import, in whatever order the user imports the libraries. These
read no entry points, so there is no other way.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from simlte_st.files import MODEL_FILE, read_json

if TYPE_CHECKING:
    from torch.nn import Module

_AUTO = "transformers.models.auto.modeling_auto"
# Older versions of transformers (5.0) import the Auto classes from the middle of what our models need whole.
_LAYERS = "transformers.modeling_layers"
_STOCK = "sentence_transformers.sentence_transformer.model"


def register() -> None:
    """Register now with what is imported, and with the rest when it is."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for module, before, tell in ((_AUTO, {_LAYERS}, _register_longformer), (_STOCK, set(), _name_models)):
        if module in sys.modules:
            tell()
        else:
            sys.meta_path.insert(0, _Finder(module, before, tell))


def needs_package(folder: Path) -> bool:
    """Return whether a model's folder has modules of this package or its Longformer."""
    modules, config = folder / MODEL_FILE, folder / "config.json"
    if modules.exists() and any(module["type"].startswith("simlte_st.") for module in read_json(modules)):
        return True
    return config.exists() and read_json(config).get("model_type") == "simlte_longformer"


def _register_longformer() -> None:
    importlib.import_module("simlte_st.longformer.modeling")


def _name_models() -> None:
    from simlte_st.compat import name_models

    name_models(_own_model)


def _own_model(name: str) -> tuple[str, Sequence[type[Module]]] | None:
    """Return folder and modules of a model of this package, unless a folder has its name."""
    from simlte_st.models.names import OWN_MODELS, find_model

    if name not in OWN_MODELS or os.path.isdir(name):
        return None
    from simlte_st.modules import OWN_MODULES

    return find_model(name), OWN_MODULES


class _Finder(MetaPathFinder):
    """Finds a module with a loader that tells of ours after running it, and modules that may import it ``before``."""

    def __init__(self, module: str, before: set[str], tell: Callable[[], None]) -> None:
        self.module, self.tell = module, tell
        self.awaited = {module, *before}
        self.running: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.awaited:
            return None
        self.awaited.discard(fullname)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and (loader := spec.loader) is not None:

            def run_and_register(module: ModuleType) -> None:
                del loader.exec_module  # the class's own is back
                self.running.add(fullname)
                loader.exec_module(module)
                self.running.discard(fullname)
                if not self.running and self.module in sys.modules and self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self.tell()

            loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
