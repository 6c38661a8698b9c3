from __future__ import annotations

import importlib
import sys

import pytest

from simlte_st.errors import MissingExtraError


def test_without_mteb_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["simlte_st", "tasks"]]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == "mteb"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mteb", None)  # type: ignore[arg-type]  # what import takes for "not there"
    with pytest.raises(MissingExtraError, match=r"'mteb' is needed for the MTEB-style tasks.*simlte-st\[mteb\]"):
        importlib.import_module("simlte_st.tasks")
