"""Write ``simlte_st/overrides.pyi``: the settings of each verb as a TypedDict, for type checkers.

``def verb(..., config: VerbConfig | None = None, **overrides: Unpack[VerbOverrides])`` has its keyword arguments.
Run it by ``make overrides``; a test compares the file with the settings.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import simlte_st
from simlte_st.config import Config

ROOT = Path(simlte_st.__file__).parent
TARGET = ROOT / "overrides.pyi"
HEAD = '"""Settings as keyword arguments, for type checkers. Made by ``make overrides``."""\n'


def configs() -> list[type[Config]]:
    """Return the settings of all verbs, in the order of their names, each after those that it is made of."""
    found = {}
    for path in [ROOT / "config.py", *ROOT.glob("*/config.py")]:
        module = importlib.import_module(".".join(path.with_suffix("").relative_to(ROOT.parent).parts))
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Config)]
        found |= {kind.__name__: kind for kind in kinds if kind.__module__ == module.__name__ and kind is not Config}
    return list(dict.fromkeys(base for name in sorted(found) for base in reversed(found[name].__mro__) if is_own(base)))


def is_own(kind: type) -> bool:
    return issubclass(kind, Config) and kind is not Config


def overrides_of(kind: type[Config]) -> str:
    return f"{kind.__name__.removesuffix('Config')}Overrides"


def shown(hint: Any) -> str:
    """Return a type as a stub has it."""
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(map(shown, get_args(hint)))
    text = hint.__qualname__ if isinstance(hint, type) and hint.__module__ == "builtins" else str(hint)
    return re.sub(r"<class '([\w.]+)'>", r"\1", text).replace("NoneType", "None")


def stub() -> str:
    """Return the text of the stub."""
    classes, modules = [], set()
    everywhere = {name: hint for kind in configs() for name, hint in get_type_hints(kind).items()}
    for kind in configs():
        own = get_type_hints(kind)  # what it takes beyond them replaces settings of another object, which None keeps
        hints = {name: own[name] if name in own else everywhere[name] | None for name in kind.accepted()}
        bases = [base for base in kind.__bases__ if is_own(base)]
        inherited = {name for base in bases for name in base.accepted()}
        lines = [f"    {name}: {shown(hints[name])}" for name in kind.accepted() if name not in inherited]
        modules |= set(re.findall(r"([\w.]+)\.\w+", "\n".join(lines)))
        parents = ", ".join(map(overrides_of, bases)) or "TypedDict"
        classes.append("\n".join([f"class {overrides_of(kind)}({parents}, total=False):", *(lines or ["    pass"])]))
    own = {name for name in modules if name.startswith("simlte_st.")}
    imports = [f"import {name}" for name in sorted({*modules, "typing"} - own)] + ["from typing import TypedDict"]
    imports += ["", *(f"import {name}" for name in sorted(own))]
    return "\n\n".join([HEAD + "\n" + "\n".join(imports), *classes]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(stub(), encoding="utf-8")
