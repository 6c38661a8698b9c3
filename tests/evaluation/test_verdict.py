from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from simlte_st.errors import DataError
from simlte_st.evaluation import FewShotResult, HalvesComparison, ProbeResult, give_verdict
from simlte_st.evaluation import verdict as verdicts
from simlte_st.evaluation.halves import result_from_ranks, summarise
from simlte_st.evaluation.verdict import LIKELY, MIN_DOCUMENTS, NO_RECORD, RECORD_FILE, predict_probability
from simlte_st.files import read_json

NOISE = np.random.default_rng(0).uniform(0.2, 0.6, size=200)


def halves(
    shift: float = 0.0, documents: int = 200, words: float | None = 0.0, rank: int = 3, reads: int | None = 256
) -> HalvesComparison:
    wobble = np.random.default_rng(1).normal(scale=0.05, size=documents)
    changes = ((moved or 0) + (wobble if moved else 0) for moved in (shift, words))
    structure, agreement = (summarise(NOISE[:documents] + change) for change in changes)
    ranks = np.where(np.arange(documents) % 5 == 0, 1, rank)
    return HalvesComparison(structure, result_from_ranks(ranks), None if words is None else agreement, reads)


def static_halves(shift: float = 0.0, similar: float = 0.0) -> HalvesComparison:
    return replace(halves(shift), reads=None, similarities=summarise(NOISE + similar * (1 + NOISE)))


@pytest.mark.parametrize(
    ("shift", "similar", "word"), [(0.1, 0.0, "no clear difference"), (0.0, 0.1, "helped"), (0.1, -0.1, "hurt")]
)
def test_static_models_are_judged_by_similarities(shift: float, similar: float, word: str) -> None:
    verdict = give_verdict(static_halves(), static_halves(shift, similar))
    assert verdict.similarities is not None
    assert verdict.word == word
    assert verdict.probability == predict_probability([100 * verdict.similarities.mean], static=True)
    assert verdicts.record_in_words(verdict.probability, static=True) in verdict.summary()
    assert json.loads(json.dumps(verdict.to_dict()))["similarities"]["mean"] == verdict.similarities.mean
    lines, _, footnote = verdict.table().partition("\n\n")
    assert ["*" in line for line in lines.splitlines()[2:]] == [True, True, True, False], "only similarities count"
    assert footnote.startswith("Rows with * do not count")
    assert predict_probability([0.0], static=True) == 0.5


def probe(errors: int, texts: int = 90) -> FewShotResult:
    """Draws that predict a wrong class for the first ``errors`` texts."""
    test = np.arange(texts) % 3
    predicted = np.where(np.arange(texts) < errors, (test + 1) % 3, test)
    return FewShotResult((ProbeResult(0.5, 1 - errors / texts, test, predicted),) * 4)


@pytest.mark.parametrize(("shift", "word"), [(0.1, "helped"), (-0.1, "hurt"), (0.001, "no clear difference")])
def test_documents_are_compared_in_pairs(shift: float, word: str) -> None:
    verdict = give_verdict(halves(), halves(shift))
    assert verdict.word == word
    assert verdict.structure.low <= verdict.structure.mean <= verdict.structure.high
    assert verdict.structure.mean == pytest.approx(shift, abs=0.01)
    assert verdict.table().startswith("| 200 documents, in % ")
    assert all(len(line) <= 80 for line in verdict.table().splitlines())
    assert "a few labels would" in verdict.summary()
    assert json.loads(json.dumps(verdict.to_dict()))["verdict"] == word


@pytest.mark.parametrize(
    ("change", "shift", "said"),
    [
        ("training", 0.1, "Training helped: the model is probably better than its base. In our benchmark, "),
        ("training", 0.001, "It is not clear whether training helped. In our benchmark, "),
        ("the latent semantic analysis", -0.1, "The latent semantic analysis hurt: the model is probably worse"),
        ("", 0.1, f"The model is probably better than its base. {NO_RECORD} It cannot know"),
        ("", 0.001, f"It is not clear whether the model is better than its base. {NO_RECORD} "),
        ("training", 0.0, "The model and its base give the same results on these documents."),
    ],
)
def test_summary_names_the_change(change: str, shift: float, said: str) -> None:
    verdict = give_verdict(halves(), halves(shift), change=change)
    assert verdict.summary().startswith(said)
    assert verdict.to_dict()["change"] == change


def test_structure_alone_is_not_enough() -> None:
    """Neighbours must not share fewer words, and better separation of documents is not enough."""
    base = halves()
    for model, word in (
        (halves(0.1), "helped"),
        (halves(0.1, words=0.1), "helped"),
        (halves(0.1, words=-0.1), "no clear difference"),
        (halves(0.1, rank=1), "no clear difference"),
        (halves(0.0, words=-0.1), "no clear difference"),
        (halves(-0.1, words=0.1), "hurt"),
    ):
        verdict = give_verdict(base, model)
        assert verdict.word == word
        assert (verdict.probability >= LIKELY) == (word == "helped")
        assert verdict.to_dict()["probability"] == verdict.probability
    verdict = give_verdict(base, halves(0.1, words=-0.1, rank=1))
    lines = verdict.table().splitlines()[2:]
    for line, difference in zip(lines, (verdict.structure, verdict.words, verdict.split_half), strict=True):
        assert [cell.strip() for cell in line.strip("| ").split(" | ")][1:] == difference.in_points()


def test_probability_follows_the_fitted_weights() -> None:
    even = predict_probability([0, 0, 0])
    assert 0 < even < 0.2, "nothing speaks for it"
    assert [predict_probability(errors) > even for errors in ([2, 0, 0], [0, 2, 0], [0, 0, 2])] == [True, True, False]
    fitted = read_json(RECORD_FILE)["regression"]
    odds = fitted["intercept"] + 3 * fitted["weights"][0] - 2 * fitted["weights"][2]
    assert predict_probability([3, 0, -2]) == pytest.approx(1 / (1 + np.exp(-odds)))


def test_record_counts_benchmark_runs() -> None:
    record = read_json(RECORD_FILE)
    bins = record["calibration"]
    assert [bins[0]["from"], bins[-1]["to"]] == [0, 1]
    assert all(one["to"] == following["from"] for one, following in pairwise(bins))
    assert LIKELY in [each["from"] for each in bins], "no bin holds both verdicts"
    assert sum(each[word] for each in bins for word in ("better", "unclear", "worse")) == record["encoders"]
    for probability in (0.0, 0.05, 0.4, LIKELY, 0.95, 1.0):
        [each] = [one for one in bins if one["from"] <= probability < one["to"] or probability == one["to"] == 1]
        runs = each["better"] + each["unclear"] + each["worse"]
        found = rf"In our benchmark, {runs} run.* {each['better']} better .*{each['worse'] or 'none'} worse\."
        assert re.fullmatch(found, verdicts.record_in_words(probability))


def test_few_documents_get_no_verdict() -> None:
    few = give_verdict(halves(documents=MIN_DOCUMENTS - 1), halves(0.1, MIN_DOCUMENTS - 1))
    assert few.structure.low > 0, "however clear it looks"
    assert few.word == "too few documents"
    assert f"{MIN_DOCUMENTS} are needed" in few.summary()
    assert give_verdict(halves(documents=MIN_DOCUMENTS), halves(0.1, MIN_DOCUMENTS)).word == "helped"


@pytest.mark.parametrize(
    ("by_structure", "by_probe", "word"),
    [
        (0.1, 30, "helped"), (0.1, 0, "helped"), (0.0, 30, "helped"), (0.1, -30, "no clear difference"),
        (-0.1, 30, "no clear difference"), (-0.1, 0, "hurt"), (0.0, -30, "hurt"), (0.0, 0, "no clear difference"),
    ],
)  # fmt: skip
def test_probe_counts_in_the_verdict(by_structure: float, by_probe: int, word: str) -> None:
    verdict = give_verdict(halves(), halves(by_structure), (probe(30), probe(30 - by_probe)))
    assert verdict.probe is not None
    assert verdict.word == word
    assert "probe with few labels" in verdict.table()
    assert "a few labels would" not in verdict.summary(), "they have told"
    shown = verdict.to_dict()["probe"]
    assert shown["mean"] == pytest.approx(by_probe / 90)
    assert shown["low"] <= shown["mean"] <= shown["high"]
    assert shown["documents"] == 90
    assert (shown["low"] < shown["high"]) == (by_probe != 0), "the interval is over documents"
    numbers = f"{verdict.probability:.0%}, but its probe score changed by {verdict.probe.in_points()[2]} points."
    assert (
        f"contradict each other: documents alone call the model better with probability {numbers}" in verdict.summary()
    ) == (by_structure * by_probe < 0)


def test_table_shows_tfidf() -> None:
    verdict = give_verdict(halves(), halves(0.1), (probe(30), probe(20)), tfidf=(halves(), probe(25)))
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in verdict.table().splitlines()]
    assert cells[0][1:4] == ["TF-IDF", "before", "after"]
    assert [row[1] == row[2] for row in cells[2:]] == [True, False, True, False]
    assert (cells[3][1], cells[5][1]) == ("", f"{100 * probe(25).macro_f1:.1f}")
    assert all(len(line) <= 80 for line in verdict.table().splitlines())


def test_incomparable_models_are_refused() -> None:
    with pytest.raises(DataError, match="static"):
        give_verdict(replace(halves(), reads=None), static_halves())
    with pytest.raises(DataError, match="TF-IDF"):
        give_verdict(halves(words=None), halves(0.1))
    longer = replace(halves(0.1), reads=4096)
    with pytest.raises(DataError, match=r"256 by the base, 4,096 by the model"):
        give_verdict(halves(), longer)
    assert re.search("256 by the base, all", str(verdicts.why_incomparable(halves(), halves(reads=None))))
    assert verdicts.why_incomparable(longer, longer) is None
