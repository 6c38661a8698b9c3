"""Two probes compared on the same labelled texts: the difference in macro-F1, with an interval over texts and draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import DataError
from simlte_st.evaluation.classification_probe import FewShotResult
from simlte_st.evaluation.probe import ProbeResult

RESAMPLES = 1000


def macro_f1_differences(base: FewShotResult, model: FewShotResult, seed: int = 0) -> NDArray[np.float64]:
    """Resample the difference in macro-F1 between two few-shot probes (bootstrap: Efron, 1979).

    Each resample draws test texts and draws of examples anew, with replacement: intervals over draws alone are too
    narrow, as all draws are scored on the same texts.
    """
    results = [*base.draws, *model.draws]
    test = results[0].test
    if len(base.draws) != len(model.draws) or any(not np.array_equal(result.test, test) for result in results):
        raise DataError("Two probes can be compared that were scored on the same texts, with the same draws.")
    return macro_f1_resamples(model, seed) - macro_f1_resamples(base, seed)


def macro_f1_resamples(probe: FewShotResult, seed: int = 0) -> NDArray[np.float64]:
    """Resample the macro-F1 of a few-shot probe: test texts and draws anew, with replacement."""
    return resampled_macro_f1([(slice(None), result) for result in probe.draws], len(probe.draws[0].test), seed)


def resampled_macro_f1(
    draws: Sequence[tuple[NDArray[np.int64] | slice, ProbeResult]], texts: int, seed: int = 0
) -> NDArray[np.float64]:
    """Compute :func:`macro_f1_resamples` of draws that were scored on different ones of the same texts."""
    generator, count = np.random.default_rng(seed), len(draws)
    weights = generator.multinomial(texts, np.full(texts, 1 / texts), size=RESAMPLES).astype(np.float64)
    shares = generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    scores = np.zeros(RESAMPLES)
    for draw, (tested, result) in enumerate(draws):
        scores += shares[:, draw] * macro_f1(weights[:, tested], result.test, result.predicted)
    return scores


def macro_f1(
    weights: NDArray[np.float64], test: NDArray[np.int64], predicted: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Macro-F1 of weighted texts, as scikit-learn counts it."""
    classes = np.arange(max(test.max(), predicted.max()) + 1)
    is_test, is_predicted = test[:, None] == classes, predicted[:, None] == classes
    hits = weights @ (is_test & is_predicted)
    either = weights @ is_test + weights @ is_predicted
    scores = np.divide(2 * hits, either, out=np.zeros_like(hits), where=either > 0)
    return np.asarray(scores.sum(axis=1) / (either > 0).sum(axis=1))
