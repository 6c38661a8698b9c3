from __future__ import annotations

import copy

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st import evaluation
from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.evaluation import HalvesComparison, ProbeComparison, ProbeResult, comparison, halves
from simlte_st.evaluation.comparison import TFIDF, compare_halves, compare_probes
from simlte_st.evaluation.scores import TfidfScores
from simlte_st.progress import progress_bar


def tfidf(anchors: list[str], positives: list[str], seed: int = 0) -> halves.SplitHalfResult:
    return halves.result_from_ranks(halves.ranks_of_halves(TfidfScores([*anchors, *positives])), seed=seed)


def test_compare_halves_matches_its_parts(model: SentenceTransformer, corpus: list[Document]) -> None:
    results = compare_halves({"m": model}, corpus, seed=4)
    anchors, positives = halves.split_half_views(corpus, seed=4, budget=62)
    assert list(results) == [TFIDF, "m"]
    assert results[TFIDF].split_half == tfidf(anchors, positives, seed=4)
    assert results[TFIDF].structure.documents == len(anchors)
    vectors = [np.asarray(model.encode(side)) for side in (anchors, positives)]
    assert results["m"].split_half.mrr == pytest.approx(halves.split_half_retrieval(*vectors, seed=4).mrr, abs=1e-6)
    assert results["m"].structure.agreement == pytest.approx(halves.structure_agreement(*vectors).agreement, abs=1e-2)
    assert {"structure_agreement", "split_half_mrr", "words_agreement"} <= set(results["m"].metrics())
    words = halves.words_agreement(*vectors, halves.neighbours_by_words(anchors, positives))
    assert results["m"].words is not None
    assert results["m"].words.agreement == pytest.approx(words.agreement, abs=1e-2)
    assert (results["m"].reads, results[TFIDF].words, results[TFIDF].reads) == (64, None, None)
    assert "words_agreement" not in results[TFIDF].metrics()


def test_halves_have_the_length_of_the_verdict(model: SentenceTransformer, corpus: list[Document]) -> None:
    """Halves have 62 tokens for any model, unless another length is requested."""
    model.max_seq_length = 40
    for asked, budget in (({}, 38), ({"half_length": 20}, 20), ({"half_length": None}, 38)):
        anchors, positives = halves.split_half_views(corpus, budget=budget)
        expected = halves.split_half_retrieval(*(np.asarray(model.encode(side)) for side in (anchors, positives)))
        result = compare_halves({"m": model}, corpus, **asked)["m"]
        assert result.split_half.mrr == pytest.approx(expected.mrr, abs=1e-6)
    short = copy.deepcopy(model)
    short.max_seq_length = 20
    both = compare_halves({"m": model, "short": short}, corpus)
    assert both["short"] == compare_halves({"short": short}, corpus)["short"]
    assert both["m"] != compare_halves({"m": model}, corpus)["m"], "the halves fit the model that reads least"
    whole = tfidf(*halves.split_half_views(corpus, budget=None))
    assert compare_halves({}, corpus, half_length=None)[TFIDF].split_half == whole
    assert compare_halves({}, corpus)[TFIDF].split_half == tfidf(*halves.split_half_views(corpus, budget=62))


def test_compare_probes_matches_its_parts(
    model: SentenceTransformer, corpus: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    train, test = corpus[:30], corpus[30:]
    bars = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "progress_bar", lambda *a, **o: bars.append(progress_bar(*a, **o)) or bars[-1])
        results = compare_probes({"m": model}, train, test, draws=2, max_seq_length=32)
    assert [(bar.desc, bar.n) for bar in bars] == [(f"Fitting probes ({each})", bars[0].total) for each in (TFIDF, "m")]
    model.max_seq_length = 32
    x, y = (np.asarray(model.encode([document.text for document in part])) for part in (train, test))
    labels = [[str(document.label) for document in part] for part in (train, test)]
    assert results["m"].full == evaluation.fit_probe(x, labels[0], y, labels[1])
    assert results["m"].few_shot == evaluation.few_shot_probe(x, labels[0], y, labels[1], draws=2)
    words = evaluation.tfidf_parts(*([document.text for document in part] for part in (train, test)))
    parts = (words[0], labels[0], words[1], labels[1])
    assert results[TFIDF] == ProbeComparison(evaluation.few_shot_probe(*parts, draws=2), evaluation.fit_probe(*parts))
    rare = [Document(f"r{number}", f"ba bun {number}", f"rare {number:02d}") for number in range(12)]
    caplog.clear()
    compare_probes({"m": model}, [*train, *rare], [*test, Document("f", "ba bis", "foreign")], draws=3)
    said = ("fewer than 5", "no training example")
    few, unseen = ([line for line in caplog.messages if part in line] for part in said)
    assert len(few) == len(unseen) == 1, "once for all probes"
    assert few[0].endswith(": " + ", ".join(f"rare {number:02d} (1)" for number in range(10)) + " and 2 more")
    assert unseen[0].endswith(": foreign")
    with pytest.raises(DataError, match="1 of 31 documents"):
        compare_probes({"m": model}, [*train, Document("x", "ba bun")], test)


SPLIT_HALF = halves.SplitHalfResult(0.5, 0.4, 0.6, 0.625, 0.5, 0.75, 100)


def test_table_shows_percentages_with_spread() -> None:
    split = {"m": HalvesComparison(evaluation.StructureResult(0.3, 0.2, 0.4, 100), SPLIT_HALF)}
    draws = evaluation.FewShotResult((ProbeResult(0.5, 0.4), ProbeResult(0.6, 0.5)))
    table = evaluation.comparison_table(split, {"m": ProbeComparison(draws, ProbeResult(0.9, 0.875))})
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["without labels", "same neighbours [95%]", "split-half top-1"]
    assert rows[2] == ["m", "30.0 [20.0, 40.0]", "50.0"]
    assert rows[4] == ["with labels", "5-shot acc.", "5-shot F1", "full acc.", "full F1"]
    assert rows[6] == ["m", "55.0 ± 7.1", "45.0 ± 7.1", "90.0", "87.5"]
    assert "shot acc" not in evaluation.comparison_table(split)
