from __future__ import annotations

import json

import numpy as np
import pytest

from simlte_st.errors import DataError
from simlte_st.evaluation import FewShotResult, ProbeResult, give_verdict
from simlte_st.evaluation.structure import StructureResult, summarise
from simlte_st.evaluation.verdict import FEWEST

NOISE = np.random.default_rng(0).uniform(0.2, 0.6, size=200)


def structure(shift: float, documents: int = 200) -> StructureResult:
    wobble = np.random.default_rng(1).normal(scale=0.05, size=documents)
    return summarise(NOISE[:documents] + shift + (wobble if shift else 0))


def probe(shift: float) -> FewShotResult:
    return FewShotResult(tuple(ProbeResult(0.5, value + shift) for value in NOISE[:20]))


@pytest.mark.parametrize(("shift", "word"), [(0.1, "helped"), (-0.1, "hurt"), (0.0, "no clear difference")])
def test_documents_are_compared_in_pairs(shift: float, word: str) -> None:
    verdict = give_verdict(structure(0.0), structure(shift))
    assert verdict.word == word
    assert verdict.structure.low <= verdict.structure.mean <= verdict.structure.high
    assert verdict.structure.mean == pytest.approx(shift, abs=0.01)
    assert "200 held-out documents" in verdict.summary()
    assert ("a few labels can tell" in verdict.summary()) == (word != "no clear difference")
    assert json.loads(json.dumps(verdict.to_dict()))["verdict"] == word


def test_few_documents_get_no_verdict() -> None:
    few = give_verdict(structure(0.0, FEWEST - 1), structure(0.1, FEWEST - 1))
    assert few.structure.low > 0, "however clear it looks"
    assert few.word == "too few documents"
    assert f"{FEWEST} are needed" in few.summary()
    assert give_verdict(structure(0.0, FEWEST), structure(0.1, FEWEST)).word == "helped"


@pytest.mark.parametrize(
    ("by_structure", "by_probe", "word"),
    [
        (0.1, 0.1, "helped"), (0.1, 0.0, "helped"), (0.0, 0.1, "helped"), (0.1, -0.1, "no clear difference"),
        (-0.1, 0.1, "no clear difference"), (-0.1, 0.0, "hurt"), (0.0, -0.1, "hurt"), (0.0, 0.0, "no clear difference"),
    ],
)  # fmt: skip
def test_a_probe_has_a_say(by_structure: float, by_probe: float, word: str) -> None:
    verdict = give_verdict(structure(0.0), structure(by_structure), (probe(0.0), probe(by_probe)))
    assert verdict.word == word
    assert "A probe with few labels" in verdict.summary()
    assert "a few labels can tell" not in verdict.summary(), "they have told"
    assert verdict.to_dict()["probe"]["mean"] == pytest.approx(by_probe)


def test_other_documents_cannot_be_compared() -> None:
    with pytest.raises(DataError, match="200 values of the base and 100"):
        give_verdict(structure(0.0), structure(0.1, 100))
