"""Registers our architectures with transformers' Auto classes, without making ``import simlte_st`` import torch.

If the Auto classes have not been imported yet, this happens right after their import, in whatever order the user
imports the libraries. transformers reads no entry points, so there is no other way.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from simlte_st.backbones.registry import BACKBONES
from simlte_st.files import MODEL_FILE, read_json

_AUTO = "transformers.models.auto.modeling_auto"
_LAYERS = "transformers.modeling_layers"


def register() -> None:
    """Register now if transformers' Auto classes are imported, else when they are."""
    if _AUTO in sys.modules:
        _register_backbones()
    elif not any(isinstance(finder, _AutoFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AutoFinder())


def is_own_architecture(folder: Path) -> bool:
    """Return whether a model's folder can be loaded only after ``import simlte_st``."""
    config = folder / "config.json"
    own = {backbone.model_type for backbone in BACKBONES.values()}
    return config.exists() and read_json(config).get("model_type") in own


def has_own_modules(folder: Path) -> bool:
    """Return whether a model's folder has modules of this package, which its own SentenceTransformer loads."""
    modules = folder / MODEL_FILE
    return modules.exists() and any(module["type"].startswith("simlte_st.") for module in read_json(modules))


def _register_backbones() -> None:
    for backbone in BACKBONES.values():
        backbone.register()


class _AutoFinder(MetaPathFinder):
    """Finds the module of the Auto classes with a loader that registers ours after running it.

    Older versions of transformers (5.0) import it from the middle of ``modeling_layers``, which our models need whole:
    then they are registered after that.
    """

    def __init__(self) -> None:
        self.awaited = {_AUTO, _LAYERS}
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
                if not self.running and _AUTO in sys.modules and self in sys.meta_path:
                    sys.meta_path.remove(self)
                    _register_backbones()

            loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
