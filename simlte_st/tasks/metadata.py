"""What mteb wants to know of a task before it runs."""

from __future__ import annotations

import re
from typing import Any, Literal

from mteb import TaskMetadata

from simlte_st.errors import ConfigurationError

Kind = Literal["Classification", "Clustering", "Retrieval", "PairClassification", "STS"]

MAIN_SCORES: dict[Kind, str] = {
    "Classification": "f1",
    "Clustering": "v_measure",
    "Retrieval": "ndcg_at_10",
    "PairClassification": "max_ap",
    "STS": "cosine_spearman",
}
"""The score that stands for a task of each kind, as mteb calls it; ``f1`` is macro-averaged."""

CUT = "Texts are cut by the model, at its max_seq_length."

_NAME = re.compile(r"\w[\w .+-]*")
_LANGUAGE = re.compile(r"[a-z]{3}-[A-Z][a-z]{3}")


def make_metadata(
    name: str,
    kind: Kind,
    description: str,
    *,
    source: str,
    revision: str = "local",
    language: str = "eng-Latn",
    **more: Any,
) -> TaskMetadata:
    """Fill in a task's metadata.

    Args:
        name: Name of the task: letters, digits and ``_ . + -`` or blanks; results go to files of that name.
        kind: Its kind.
        description: What it measures, in a sentence or two. That texts are cut is added.
        source: Where the data is from; mteb calls it the path. Nothing is loaded from there.
        revision: Version of the data; mteb adds results of one task to each other only where it is the same.
        language: Of the texts, as mteb writes it: ``eng-Latn``.
        more: Further fields of mteb's ``TaskMetadata``: ``reference``, ``license``, ``domains``, ...

    Raises:
        ConfigurationError: The name cannot be used, the language is written otherwise, or mteb refuses a field.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"A task cannot be called {name!r}: use letters, digits, blanks and _ . + -")
    if not _LANGUAGE.fullmatch(language):
        raise ConfigurationError(f"language={language!r}: write language and script as mteb does, such as eng-Latn.")
    try:
        return TaskMetadata(
            name=name,
            type=kind,
            description=f"{description} {CUT}",
            category="t2c" if kind in ("Classification", "Clustering") else "t2t",
            main_score=MAIN_SCORES[kind],
            eval_splits=["test"],
            eval_langs=[language],
            dataset={"path": source, "revision": revision},
            **more,
        )
    except ValueError as error:  # pydantic's errors are ValueErrors
        raise ConfigurationError(f"mteb refuses the metadata of {name!r}: {error}") from error
