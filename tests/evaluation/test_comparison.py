from __future__ import annotations

import copy
import re

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.evaluation import (
    few_shot_probe,
    fit_probe,
    split_half_retrieval,
    split_half_views,
    structure_agreement,
    tfidf_few_shot,
)
from simlte_st.evaluation.comparison import TFIDF, compare_halves, compare_probes
from simlte_st.evaluation.halves import (
    SplitHalfResult,
    neighbours_by_words,
    ranks_of_halves,
    result_from_ranks,
    words_agreement,
)
from simlte_st.evaluation.scores import TfidfScores


def tfidf(anchors: list[str], positives: list[str], seed: int = 0) -> SplitHalfResult:
    return result_from_ranks(ranks_of_halves(TfidfScores([*anchors, *positives])), seed=seed)


def test_halves_are_what_their_parts_say(model: SentenceTransformer, corpus: list[Document]) -> None:
    results = compare_halves({"m": model}, corpus, seed=4)
    anchors, positives = split_half_views(corpus, seed=4, budget=62)
    assert list(results) == [TFIDF, "m"]
    assert results[TFIDF].split_half == tfidf(anchors, positives, seed=4)
    assert results[TFIDF].structure.documents == len(anchors)
    vectors = [np.asarray(model.encode(side)) for side in (anchors, positives)]
    assert results["m"].split_half.mrr == pytest.approx(split_half_retrieval(*vectors, seed=4).mrr, abs=1e-6)
    assert results["m"].structure.agreement == pytest.approx(structure_agreement(*vectors).agreement, abs=1e-2)
    assert {"structure_agreement", "split_half_mrr", "words_agreement"} <= set(results["m"].metrics())
    words = words_agreement(*vectors, neighbours_by_words(anchors, positives))
    assert results["m"].words is not None
    assert results["m"].words.agreement == pytest.approx(words.agreement, abs=1e-2)
    assert (results["m"].reads, results[TFIDF].words, results[TFIDF].reads) == (64, None, None)
    assert "words_agreement" not in results[TFIDF].metrics()


def test_halves_are_as_long_as_the_verdict_knows_them(model: SentenceTransformer, corpus: list[Document]) -> None:
    """However much a model reads: 62 tokens, unless another length is asked for."""
    model.max_seq_length = 40
    for asked, budget in (({}, 38), ({"half_length": 20}, 20), ({"half_length": None}, 38)):
        anchors, positives = split_half_views(corpus, budget=budget)
        expected = split_half_retrieval(*(np.asarray(model.encode(side)) for side in (anchors, positives)))
        result = compare_halves({"m": model}, corpus, **asked)["m"]
        assert result.split_half.mrr == pytest.approx(expected.mrr, abs=1e-6)
    whole = tfidf(*split_half_views(corpus, budget=None))
    assert compare_halves({}, corpus, half_length=None)[TFIDF].split_half == whole
    assert compare_halves({}, corpus)[TFIDF].split_half == tfidf(*split_half_views(corpus, budget=62))


def test_probes_are_what_their_parts_say(model: SentenceTransformer, corpus: list[Document]) -> None:
    train, test = corpus[:30], corpus[30:]
    results = compare_probes({"m": model}, train, test, draws=2, max_seq_length=32)
    model.max_seq_length = 32
    x, y = (np.asarray(model.encode([document.text for document in part])) for part in (train, test))
    labels = [[str(document.label) for document in part] for part in (train, test)]
    assert results["m"].full == fit_probe(x, labels[0], y, labels[1])
    assert results["m"].few_shot == few_shot_probe(x, labels[0], y, labels[1], draws=2)
    with pytest.raises(DataError, match="1 of 31 documents"):
        compare_probes({"m": model}, [*train, Document("x", "ba bun")], test)


def test_words_learn_from_the_training_part_and_from_few_of_it(model: SentenceTransformer) -> None:
    words = {"a": ["ba bun", "ba bis", "ba cis", "ba dor"], "b": ["ka lun", "ka mis", "ka nor", "ka pis"]}
    train = [Document(f"{label}{row}", text, label) for label in words for row, text in enumerate(words[label])]
    swapped = [Document(f"t{document.id}", document.text, "ab"[document.label == "a"]) for document in train]
    settings = {"shots": 2, "draws": 3, "seed": 5}
    found = compare_probes({}, train, swapped, **settings)[TFIDF]  # type: ignore[arg-type]
    assert (found.full.accuracy, found.few_shot.metrics()["accuracy_mean"]) == (0.0, 0.0)
    noisy = [Document(f"n{row}", text, "ab"[row % 3 == 0]) for row, text in enumerate([*words["a"], *words["b"]] * 3)]
    parts = [[one.text for one in noisy], [str(one.label) for one in noisy]]
    for changed in ({}, {"shots": 1}, {"draws": 2}, {"seed": 6}):
        wanted = {**settings, **changed}
        found = compare_probes({}, noisy, noisy, **wanted)[TFIDF]  # type: ignore[arg-type]
        assert found.few_shot == tfidf_few_shot(*parts, *parts, **wanted)  # type: ignore[arg-type]
        assert len(found.few_shot.draws) == wanted["draws"]
        assert changed == {} or found.few_shot != tfidf_few_shot(*parts, *parts, **settings)  # type: ignore[arg-type]


def test_halves_fit_the_model_that_reads_least(model: SentenceTransformer, corpus: list[Document]) -> None:
    short = copy.deepcopy(model)
    short.max_seq_length = 20
    found = compare_halves({"m": model, "short": short}, corpus)
    assert found["short"] == compare_halves({"short": short}, corpus)["short"]
    assert (
        found["m"]
        == compare_halves({"short": short, "m": model}, corpus)["m"]
        != compare_halves({"m": model}, corpus)["m"]
    )


def test_what_is_wrong_with_labels_is_said_once(
    model: SentenceTransformer, corpus: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    rare = [Document(f"r{number}", f"ba bun {number}", f"rare {number:02d}") for number in range(12)]
    foreign = [Document("f", "ba bis", "foreign")]
    other = copy.deepcopy(model)
    compare_probes({"m": model, "n": other}, [*corpus[:30], *rare], [*corpus[30:], *foreign], draws=3)
    few, unseen = (
        [line for line in caplog.messages if part in line] for part in ("fewer than 5", "no training example")
    )
    assert len(few) == len(unseen) == 1
    assert few[0].endswith(": " + ", ".join(f"rare {number:02d} (1)" for number in range(10)) + " and 2 more")
    assert re.match("1 of .*: foreign$", unseen[0])
    compare_probes({"m": model}, [*corpus[:30], *rare], corpus[30:], draws=2)
    assert sum("fewer than 5" in line for line in caplog.messages) == 2, "once each time"
