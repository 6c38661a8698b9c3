from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import simlte_st


@pytest.mark.parametrize("name", sorted(set(simlte_st.__all__) - {"__version__"}))
def test_each_name_is_where_it_says(name: str) -> None:
    found = getattr(simlte_st, name)
    assert found.__name__ == name
    assert getattr(importlib.import_module(found.__module__), name) is found


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"attribute '?docsplit"):
        _ = simlte_st.docsplit


def test_the_import_is_light() -> None:
    code = "import simlte_st, sys; assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
