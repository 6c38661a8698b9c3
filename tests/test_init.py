"""What a reader of the README types after ``import simlte_st``."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import simlte_st
import simlte_st.data
import simlte_st.exploration
import simlte_st.training

NAMES = {
    "CachedMultipleNegativesRankingMLMLoss", "DocSplit", "DocSplitTransform", "Index",
    "MultipleNegativesRankingMLMLoss", "SentenceTransformer", "compare", "encode_documents", "explore",
    "load_onnx", "read_documents", "to_static", "train", "trainer_callbacks",
}  # fmt: skip


def test_every_name_is_there() -> None:
    assert set(simlte_st.__all__) == NAMES
    for package in (simlte_st, simlte_st.data, simlte_st.training):
        assert dir(package) == sorted(package.__all__)
        for name in package.__all__:
            assert not inspect.ismodule(getattr(package, name)), name


def test_explore_is_the_function_whoever_imported_its_module_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "explore" in importlib.import_module("simlte_st.exploration").__all__, "it is such a name"
    monkeypatch.setattr(simlte_st, "exploration", simlte_st.exploration)
    for module in ("simlte_st.exploration", "simlte_st.exploration.explore"):  # as if none had been imported
        monkeypatch.delitem(sys.modules, module, raising=False)
    importlib.import_module("simlte_st.exploration.explore")
    assert callable(importlib.import_module("simlte_st.exploration").explore)


def test_train_is_the_function_whoever_imported_its_module_before() -> None:
    code = "import simlte_st.training.train; from simlte_st import train; assert callable(train)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_waits_for_nothing_heavy() -> None:
    code = (
        "import sys, simlte_st, simlte_st.data, simlte_st.training, simlte_st.training.config\n"
        "loaded = {'torch', 'transformers', 'sentence_transformers', 'datasets', 'pyarrow'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
