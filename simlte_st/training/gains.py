"""Did training help? Split-half retrieval on documents that it never saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simlte_st.evaluation.comparison import TFIDF
from simlte_st.evaluation.split_half import SplitHalfResult
from simlte_st.evaluation.statistics import bootstrap_interval


def gain_record(results: Mapping[str, SplitHalfResult]) -> dict[str, Any]:
    """Put the results of ``"base"`` and ``"trained"`` (and TF-IDF) into JSON values, with a verdict.

    The verdict compares document by document: the mean difference of reciprocal ranks, trained minus base, with its
    95% interval. ``"helped"`` if the interval lies above 0, ``"hurt"`` if below, else ``"no clear difference"``.
    """
    differences = 1.0 / results["trained"].ranks - 1.0 / results["base"].ranks
    low, high = bootstrap_interval(differences)
    verdict = "helped" if low > 0 else "hurt" if high < 0 else "no clear difference"
    return {
        "documents": results["base"].documents,
        "verdict": verdict,
        "mrr_gain": float(differences.mean()),
        "mrr_gain_low": low,
        "mrr_gain_high": high,
        **{name: results[name].metrics() for name in (TFIDF, "base", "trained")},
    }


def gain_summary(gain: Mapping[str, Any]) -> str:
    """Say the verdict in a sentence."""
    return (
        f"Split-half retrieval among {gain['documents']} held-out documents: MRR {gain['base']['mrr']:.3f} before, "
        f"{gain['trained']['mrr']:.3f} after (TF-IDF {gain[TFIDF]['mrr']:.3f}); difference "
        f"{gain['mrr_gain']:+.3f} [{gain['mrr_gain_low']:+.3f}, {gain['mrr_gain_high']:+.3f}]: {gain['verdict']}."
    )
