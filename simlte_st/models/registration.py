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
    """Tell whether a model's folder can be loaded only after ``import simlte_st``."""
    config = folder / "config.json"
    own = {backbone.model_type for backbone in BACKBONES.values()}
    return config.exists() and read_json(config).get("model_type") in own


def has_own_modules(folder: Path) -> bool:
    """Tell whether a model's folder has modules of this package, which its own SentenceTransformer loads."""
    modules = folder / "modules.json"
    return modules.exists() and any(module["type"].startswith("simlte_st.") for module in read_json(modules))


def complete_model_card(folder: Path) -> None:
    """Let the card in a model's folder say what of this package it takes to load the model; twice is as once.

    Args:
        folder: A model's, with the ``README.md`` that sentence-transformers wrote. Where it takes nothing of this
            package, or there is no card, nothing is changed.
    """
    path = folder / "README.md"
    stock = "from sentence_transformers import SentenceTransformer\n"
    if has_own_modules(folder):
        own = (
            "from simlte_st import SentenceTransformer\n"
            "# The class of sentence_transformers loads it with trust_remote_code=True, where simlte-st is installed.\n"
        )
    elif is_own_architecture(folder):
        own = f"import simlte_st  # the model's architecture\n{stock}"
    else:
        return
    if path.exists() and own not in (card := path.read_text(encoding="utf-8")):
        install = "pip install -U sentence-transformers"
        card = card.replace(stock, own, 1).replace(f"{install}\n", f"{install} simlte-st\n", 1)
        path.write_text(card, encoding="utf-8")


def extend_model_card(folder: Path, section: str) -> None:
    """Append a section to the card that sentence-transformers wrote, and mend how the card loads the model.

    Args:
        folder: The model's folder, with its ``README.md``.
        section: Markdown.
    """
    complete_model_card(folder)
    path = folder / "README.md"
    path.write_text(path.read_text(encoding="utf-8").rstrip() + "\n\n" + section, encoding="utf-8")


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
