from __future__ import annotations

import importlib

import pytest

import simlte_st.evaluation


@pytest.mark.parametrize("name", ["LinkPairs", "citation_retrieval", "load_lee"])
def test_names_that_moved_say_where_they_are(name: str) -> None:
    with pytest.raises(ImportError, match=r"benchmarks\.papers\."):
        getattr(simlte_st.evaluation, name)
    with pytest.raises(AttributeError):
        simlte_st.evaluation.nothing  # noqa: B018


@pytest.mark.parametrize("module", ["simlte_st.analysis", "simlte_st.analysis.redundancy"])
def test_the_analyses_say_where_they_are(module: str) -> None:
    with pytest.raises(ImportError, match=r"benchmarks\.papers"):
        importlib.import_module(module)
