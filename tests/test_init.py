"""The public names of the package."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import simlte_st
import simlte_st.data
import simlte_st.training


def test_public_names_exist() -> None:
    for package in (simlte_st, simlte_st.data, simlte_st.training):
        assert dir(package) == sorted(package.__all__)
        for name in package.__all__:
            assert not inspect.ismodule(getattr(package, name)), name
    assert {"train", "explore", "compare", "encode_documents", "read_documents", "Index"} < set(simlte_st.__all__)


def test_citation_has_the_package_version() -> None:
    project, citation = ((Path(__file__).parents[1] / name).read_text() for name in ("pyproject.toml", "CITATION.cff"))
    assert re.findall(r'^version = "(.+)"', project, re.M) == re.findall("^version: (.+)", citation, re.M) != []


def test_import_loads_no_heavy_package() -> None:
    code = (
        "import sys, simlte_st, simlte_st.data, simlte_st.training, simlte_st.training.presets\n"
        "loaded = {'torch', 'transformers', 'sentence_transformers', 'datasets', 'pyarrow'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "import simlte_st.training.train, simlte_st.exploration.explore\n"
        "from simlte_st import explore, train\n"
        "assert callable(train) and callable(explore), 'functions, though modules have these names'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
