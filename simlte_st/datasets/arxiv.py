"""arXiv (Clement et al., 2019): titles and abstracts, each with the archive it was first submitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simlte_st.datasets.card import Card, PrintedStatistics
from simlte_st.datasets.hub import Hub
from simlte_st.datasets.shapes import Shape, Values
from simlte_st.datasets.textset import TextSet
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


def shapes(*, text: str = "title+abstract", classes: str = "archive") -> Sequence[Shape]:
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
    archive = classes == "archive"
    return (
        Shape(
            ("title", "abstract") if text == "title+abstract" else ("abstract",),
            "categories",
            make_text=_title_and_abstract if text == "title+abstract" else _abstract,
            make_label=_archive if archive else _category,
            known=ARCHIVES if archive else None,
        ),
    )


def _one_line(value: object) -> str:
    """Undo the snapshot's line breaks, which are a matter of its width."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _abstract(values: Values) -> object:
    return _one_line(values.get("abstract"))


def _title_and_abstract(values: Values) -> object:
    return "\n\n".join(filter(None, (_one_line(values.get("title")), _one_line(values.get("abstract")))))


def _category(value: Any) -> object:
    """Give the first of ``"cs.CL cs.LG"``, or of a list of such."""
    if isinstance(value, (list, tuple)):
        value = " ".join(item for item in value if isinstance(item, str))
    return next(iter(value.split()), None) if isinstance(value, str) else value


def _archive(value: Any) -> object:
    category = _category(value)
    return category.split(".")[0] if isinstance(category, str) else category


SET = TextSet(
    Card(
        name="arxiv",
        title="arXiv metadata (Kaggle snapshot)",
        home="https://www.kaggle.com/datasets/Cornell-University/arxiv",
        licence="CC0 1.0 for the metadata",
        citation="Clement, Bierbaum, O'Keeffe and Alemi. On the Use of ArXiv as a Dataset. arXiv:1905.00075, 2019.",
        forms=("arxiv-metadata-oai-snapshot.json, unpacked (a JSON object a line: title, abstract, categories)",),
        printed=PrintedStatistics(2_162_833, 38, 138, 131, 925),
        notes=(
            "The papers do not name their 38 classes; arXiv has had 38 archives (20 of today, 18 closed).",
            "The papers' lengths are those of abstracts, not of full texts; they do not say whether titles were in.",
        ),
    ),
    shapes,
    files=("arxiv-metadata-oai-snapshot*.json*",),
    hub=Hub("gfissore/arxiv-abstracts-2021", {"train": None}, "A snapshot of 2021: fewer papers than the papers had."),
)
