from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from simlte_st.errors import DataError
from simlte_st.evaluation import FewShotResult, HalvesComparison, ProbeResult, give_verdict
from simlte_st.evaluation.split_half import result_from_ranks
from simlte_st.evaluation.structure import summarise
from simlte_st.evaluation.verdict import FEWEST, LEAST_RUNS, RECORD_FILE, finding_of, record_in_words, why_not_compared
from simlte_st.files import read_json

NOISE = np.random.default_rng(0).uniform(0.2, 0.6, size=200)


def halves(
    shift: float = 0.0, documents: int = 200, spectrum: float | None = -0.2, rank: int = 3, reads: int | None = 256
) -> HalvesComparison:
    wobble = np.random.default_rng(1).normal(scale=0.05, size=documents)
    structure = summarise(NOISE[:documents] + shift + (wobble if shift else 0))
    return HalvesComparison(structure, result_from_ranks(np.full(documents, rank)), spectrum, reads)


def probe(errors: int, texts: int = 90) -> FewShotResult:
    """Draws that take the first texts, so many of 90, for texts of another class."""
    test = np.arange(texts) % 3
    predicted = np.where(np.arange(texts) < errors, (test + 1) % 3, test)
    return FewShotResult((ProbeResult(0.5, 1 - errors / texts, test, predicted),) * 4)


@pytest.mark.parametrize(("shift", "word"), [(0.1, "helped"), (-0.1, "hurt"), (0.0, "no clear difference")])
def test_documents_are_compared_in_pairs(shift: float, word: str) -> None:
    verdict = give_verdict(halves(), halves(shift))
    assert verdict.word == word
    assert verdict.structure.low <= verdict.structure.mean <= verdict.structure.high
    assert verdict.structure.mean == pytest.approx(shift, abs=0.01)
    assert "200 held-out documents" in verdict.summary()
    assert "a few labels can tell" in verdict.summary()
    assert json.loads(json.dumps(verdict.to_dict()))["verdict"] == word


def test_structure_is_not_enough() -> None:
    """The space must not collapse, and documents must not merely be told apart better."""
    base = halves()
    for model, finding, word in (
        (halves(0.1, spectrum=-0.2), "helped", "helped"),
        (halves(0.1, spectrum=-0.1, rank=4), "helped", "helped"),
        (halves(0.1, spectrum=-0.3), "collapsing", "no clear difference"),
        (halves(0.1, spectrum=-np.inf), "collapsing", "no clear difference"),
        (halves(0.1, rank=1), "memorising", "no clear difference"),
        (halves(0.0, spectrum=-0.1, rank=4), "unclear", "no clear difference"),
        (halves(-0.1, spectrum=-0.1, rank=4), "hurt", "hurt"),
    ):
        verdict = give_verdict(base, model)
        assert (verdict.finding, verdict.word) == (finding, word)
        assert verdict.to_dict()["finding"] == finding
    summaries = {finding: give_verdict(base, halves(0.1, **changed)).summary() for finding, changed in SPOILT.items()}
    assert "alpha-ReQ -0.20 before, -0.30 after" in summaries["collapsing"]
    assert "split-half retrieval 33.3 before, 100.0 after" in summaries["memorising"]
    assert all(text.startswith("It is not clear whether training helped.") for text in summaries.values())


SPOILT = {"collapsing": {"spectrum": -0.3}, "memorising": {"rank": 1}}


def test_the_record_is_counted() -> None:
    findings = read_json(RECORD_FILE)["findings"]
    assert set(findings) == {finding_of(*signs) for signs in ((1, 0, 0), (1, -1, 0), (1, 0, 1), (0, 1, 1), (-1, 1, 0))}
    helped = findings["helped"]
    runs = sum(helped.values())
    [sentence] = record_in_words("helped")
    assert sentence.startswith(f"In {round(10 * helped['better'] / runs)} of 10 runs that looked like this one")
    assert f"in {helped['better']} of {runs} of our benchmark; they disagreed in {helped['worse']})" in sentence
    assert sentence in give_verdict(halves(), halves(0.1)).summary()
    [sentence] = record_in_words("hurt")
    assert f"in {findings['hurt']['worse']} of " in sentence
    [sentence] = record_in_words("collapsing")
    better, worse = findings["collapsing"]["better"], findings["collapsing"]["worse"]
    assert f"labels called {better} better and {worse} worse" in sentence
    for finding, counts in findings.items():
        assert (sum(counts.values()) < LEAST_RUNS) == (record_in_words(finding) == []), "few runs say nothing"


def test_few_documents_get_no_verdict() -> None:
    few = give_verdict(halves(documents=FEWEST - 1), halves(0.1, FEWEST - 1))
    assert few.structure.low > 0, "however clear it looks"
    assert few.word == "too few documents"
    assert f"{FEWEST} are needed" in few.summary()
    assert give_verdict(halves(documents=FEWEST), halves(0.1, FEWEST)).word == "helped"


@pytest.mark.parametrize(
    ("by_structure", "by_probe", "word"),
    [
        (0.1, 30, "helped"), (0.1, 0, "helped"), (0.0, 30, "helped"), (0.1, -30, "no clear difference"),
        (-0.1, 30, "no clear difference"), (-0.1, 0, "hurt"), (0.0, -30, "hurt"), (0.0, 0, "no clear difference"),
    ],
)  # fmt: skip
def test_a_probe_has_a_say(by_structure: float, by_probe: int, word: str) -> None:
    verdict = give_verdict(halves(), halves(by_structure), (probe(30), probe(30 - by_probe)))
    assert verdict.word == word
    assert "A probe with few labels" in verdict.summary()
    assert "a few labels can tell" not in verdict.summary(), "they have told"
    shown = verdict.to_dict()["probe"]
    assert shown["mean"] == pytest.approx(by_probe / 90)
    assert shown["low"] <= shown["mean"] <= shown["high"]
    assert shown["documents"] == 90
    assert (shown["low"] < shown["high"]) == (by_probe != 0), "the interval is over documents"


def test_few_labelled_documents_have_no_say() -> None:
    few = give_verdict(halves(), halves(), (probe(15, FEWEST - 1), probe(0, FEWEST - 1)))
    assert few.probe is not None
    assert few.probe.low > 0, "however clear it looks"
    assert few.word == "no clear difference"
    assert f"too few labelled documents to tell: {FEWEST - 1}, and {FEWEST} are needed" in few.summary()
    assert give_verdict(halves(), halves(), (probe(15, FEWEST), probe(0, FEWEST))).word == "helped"


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="200 values of the base and 100"):
        give_verdict(halves(), halves(0.1, 100))
    with pytest.raises(DataError, match="TF-IDF is none"):
        give_verdict(halves(spectrum=None), halves(0.1))
    longer = replace(halves(0.1), reads=4096)
    with pytest.raises(DataError, match=r"base reads 256 tokens of a text and the model 4,096.*readers of different"):
        give_verdict(halves(), longer)
    assert "reads 256 tokens of a text and the model all" in str(why_not_compared(halves(), halves(reads=None)))
    assert why_not_compared(longer, longer) is None
