"""The part of the verdict's page on static models: how far the verdict on their trainings can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.bank.candidates import SIMILARITIES
from benchmarks.bank.trust import (
    Judged,
    Judgement,
    base_of,
    calibration,
    coefficients,
    happened,
    left_out,
    of_set,
    recipe_of,
    runs,
    unseen,
)
from simlte_st.evaluation.table import markdown_table


def static_section(static: Judged, encoders: Judged) -> list[str]:
    """Lay out what the verdict of the package says of trainings of static models, and what labels say."""
    every = [entry for _, entry in runs(static)]
    if len({happened(entry) == 1 for entry in every}) < 2:
        return []
    fitted = coefficients(every)
    rows = [
        _row(title, judgements)
        for title, judgements in (
            ("of encoders", unseen("static", encoders, static)),
            ("of static models, data set left out", left_out(static, of_set)),
            ("of static models, recipe left out", left_out(static, recipe_of)),
            ("of static models, base left out", left_out(static, base_of)),
        )
        if judgements
    ]
    return [
        "## Static models",
        "",
        f"{len(every)} static models on {len(static)} sets, trained by the recipes of `benchmarks/bank/static.py` on "
        "views of whole documents, in float32. *static-minilm* is all-MiniLM-L6-v2, distilled to 256 dimensions. "
        "Labels judge whole documents; the verdict sees the same halves as above. Neighbours and split-half retrieval "
        f"rise by almost any training of a static model; the verdict is by *{SIMILARITIES}* alone: how the cosines of "
        "the first half of a document to others, less their mean direction, correlate with those of its second half. "
        f"The log-odds are {fitted['weights'][0]} for each point more, without an intercept: most trainings help, but "
        "one that changes nothing does not. Of the models that a regression calls *helped*, and of all others, labels "
        "say better / unclear / worse.",
        "",
        markdown_table(["regression", "models", "helped", "others", "log loss"], rows),
        "",
        "Calibration, each data set left out:",
        "",
        calibration_table(left_out(static, of_set)),
        "",
    ]


def calibration_table(judgements: Sequence[Judgement]) -> str:
    """Lay out what labels say of encoders by the probability that they were given."""
    return markdown_table(
        ["probability", "mean", "better", "unclear", "worse", "share better"],
        [
            [f"{each['from']} to {each['to']}", f"{100 * each['mean']:.0f}%"]
            + [str(each[word]) for word in ("better", "unclear", "worse")]
            + [share(each["better"], each["better"] + each["unclear"] + each["worse"])]
            for each in calibration(judgements)
        ],
    )


def counts(count: Counter[int]) -> str:
    """Write how many encoders labels call better, unclear and worse."""
    return " / ".join(str(count[sign]) for sign in (1, 0, -1))


def share(part: int, whole: int) -> str:
    """Write a share in percent; nothing of nothing."""
    return f"{100 * part / whole:.0f}%" if whole else ""


def _row(title: str, judgements: Sequence[Judgement]) -> list[str]:
    helped, others = (
        Counter(happened(each.entry) for each in judgements if each.helped is wanted) for wanted in (True, False)
    )
    right = [each.probability if happened(each.entry) == 1 else 1 - each.probability for each in judgements]
    loss = float(-np.log(np.clip(right, 1e-3, 1)).mean())
    return [title, str(len(judgements)), counts(helped), counts(others), f"{loss:.2f}"]
