"""arXiv (Clement et al., 2019): titles and abstracts, each with the archive it was first submitted to."""

from __future__ import annotations

from typing import Any

from benchmarks.datasets.shapes import Shape

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


def _paragraphs(*parts: object) -> str:
    """Undo the snapshot's line breaks, which are a matter of its width, and put blank lines between the parts."""
    lines = (" ".join(part.split()) for part in parts if isinstance(part, str))
    return "\n\n".join(line for line in lines if line)


def _archive(value: Any) -> object:
    """Return ``cs`` of ``"cs.CL math.CO"``, or of a list of such: of the first category, which is the primary one."""
    if isinstance(value, (list, tuple)):
        value = " ".join(item for item in value if isinstance(item, str))
    return next(iter(value.split()), "").split(".")[0] or None if isinstance(value, str) else value


SNAPSHOT = Shape(("title", "abstract"), "categories", make_text=_paragraphs, make_label=_archive, known=ARCHIVES)
"""The Kaggle snapshot: title and abstract with a blank line between them, and the archive."""
