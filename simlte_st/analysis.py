"""Raise an error that says where the analyses of the papers are now."""

raise ImportError(
    "simlte_st.analysis is no longer part of the package: in a clone of the repository, import benchmarks.papers or "
    "run python -m benchmarks.papers.NAME (redundancy, attention, layers or weights)."
)
