from __future__ import annotations

import numpy as np
import pytest

from simlte_st.evaluation.comparison import TFIDF
from simlte_st.evaluation.split_half import result_from_ranks
from simlte_st.training.finish import gain_record
from simlte_st.training.result import gain_summary


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(4, 1, "helped"), (1, 4, "hurt"), (2, 2, "no clear difference")],
)
def test_the_verdict_is_paired(before: int, after: int, verdict: str) -> None:
    noise = np.random.default_rng(0).integers(0, 3, size=200)
    results = {name: result_from_ranks(noise + rank) for name, rank in (("base", before), ("trained", after))}
    gain = gain_record({TFIDF: results["base"], **results})
    assert gain["verdict"] == verdict
    assert gain["mrr_gain"] == pytest.approx(results["trained"].mrr - results["base"].mrr)
    assert gain["mrr_gain_low"] <= gain["mrr_gain"] <= gain["mrr_gain_high"]
    assert gain_summary(gain).endswith(f": {verdict}.")
    assert "200 held-out documents" in gain_summary(gain)
