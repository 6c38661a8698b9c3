"""Registers our architectures with transformers' Auto classes, without making ``import simlte_st`` import torch.

Where transformers has been imported, it is done at once; else as soon as its Auto classes are, in whatever order the
user's imports stand. Python offers no other moment than that import: transformers reads no entry points.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from simlte_st.backbones.registry import BACKBONES
from simlte_st.files import read_json

_AUTO = "transformers.models.auto.modeling_auto"


def register() -> None:
    """Register now if transformers' Auto classes are there, else when they are imported; once is enough."""
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
    modules = folder / "modules.json"
    return modules.exists() and any(module["type"].startswith("simlte_st.") for module in read_json(modules))


def _register_backbones() -> None:
    for backbone in BACKBONES.values():
        backbone.register()


class _AutoFinder(MetaPathFinder):
    """Finds one module as the others would, and has it registered with after it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _AUTO:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)
        return spec


class _RegisteringLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader  # as if we had never been there
        self._loader.exec_module(module)
        _register_backbones()
