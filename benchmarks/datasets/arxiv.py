"""arXiv (Clement et al., 2019): titles and abstracts, each with the archive it was first submitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.datasets.shapes import Shape
from simlte_st.errors import ConfigurationError

TEXTS = ("title+abstract", "abstract")
CLASSES = ("archive", "category")

ARCHIVES = frozenset(
    (
        # of today
        "astro-ph", "cond-mat", "cs", "econ", "eess", "gr-qc", "hep-ex", "hep-lat", "hep-ph", "hep-th", "math",
        "math-ph", "nlin", "nucl-ex", "nucl-th", "physics", "q-bio", "q-fin", "quant-ph", "stat",
        # closed, with papers that still carry them
        "acc-phys", "adap-org", "alg-geom", "ao-sci", "atom-ph", "bayes-an", "chao-dyn", "chem-ph", "cmp-lg",
        "comp-gas", "dg-ga", "funct-an", "mtrl-th", "patt-sol", "plasm-ph", "q-alg", "solv-int", "supr-con",
    )
)  # fmt: skip
"""The 38 archives: 20 of today and 18 that were closed. The papers do not name their 38 classes; these are as many."""


def snapshot(*, text: str = "title+abstract", classes: str = "archive") -> Sequence[Shape]:
    """Give the shape of the Kaggle snapshot.

    Args:
        text: ``"title+abstract"`` (a blank line between them) or ``"abstract"``.
        classes: ``"archive"`` (38, as many as the papers have: ``cs``, ``astro-ph``, ...) or ``"category"``
            (``cs.CL``, ...); of the first category, which is the primary one.

    Raises:
        ConfigurationError: Another value.
    """
    for option, value, choices in (("text", text, TEXTS), ("classes", classes, CLASSES)):
        if value not in choices:
            raise ConfigurationError(f"{option}={value!r}: arxiv has {' and '.join(map(repr, choices))}.")
    archives = classes == "archive"
    return (
        Shape(
            tuple(text.split("+")),
            "categories",
            make_text=_paragraphs,
            make_label=_archive if archives else _category,
            known=ARCHIVES if archives else None,
        ),
    )


def _paragraphs(*parts: object) -> str:
    """Undo the snapshot's line breaks, which are a matter of its width, and put blank lines between the parts."""
    lines = (" ".join(part.split()) for part in parts if isinstance(part, str))
    return "\n\n".join(line for line in lines if line)


def _category(value: Any) -> object:
    """Give the first of ``"cs.CL cs.LG"``, or of a list of such."""
    if isinstance(value, (list, tuple)):
        value = " ".join(item for item in value if isinstance(item, str))
    return next(iter(value.split()), None) if isinstance(value, str) else value


def _archive(value: Any) -> object:
    category = _category(value)
    return category.split(".")[0] if isinstance(category, str) else category
