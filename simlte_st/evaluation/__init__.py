"""Measuring a model: neighbours without labels, probes on labelled texts, baselines of words, the verdict.

The names are in ``__init__.pyi``.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

_MOVED = {
    "benchmarks.papers.citation_links": ("LinkResult", "citation_link_probe", "citation_link_threshold"),
    "benchmarks.papers.citation_retrieval": ("CitationRetrievalEvaluator", "RetrievalResult", "citation_retrieval"),
    "benchmarks.papers.document_similarity": ("JudgedPairs", "SimilarityResult", "document_similarity", "load_lee"),
    "benchmarks.papers.link_pairs": ("LinkPairs", "link_pairs", "number_links"),
    "benchmarks.papers.linking": ("LinkingEvaluator", "LinkingResult", "linking"),
}


def __getattr__(name: str) -> Any:
    """Raise an error that says where an evaluator of the papers is now."""
    for module, names in _MOVED.items():
        if name in names:
            raise ImportError(
                f"{name} is no longer in simlte_st.evaluation: in a clone of the repository, import {module}."
            )
    return _lazy(name)


_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
