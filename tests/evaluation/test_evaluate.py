"""Models measured on a user's documents."""

from __future__ import annotations

import copy
import json
import re

from sentence_transformers import SentenceTransformer

from simlte_st.data import Document
from simlte_st.evaluation import (
    EvaluationDocuments,
    compare_halves,
    compare_probes,
    evaluate_models,
    give_verdict,
    split_by_label,
)
from simlte_st.evaluation.comparison import TFIDF


def test_documents_are_divided_for_halves_and_probes(corpus: list[Document]) -> None:
    unlabelled = EvaluationDocuments.divide(iter(corpus), halves=20, seed=3)
    assert (len(unlabelled.halved), unlabelled.train, unlabelled.test) == (20, [], [])
    labelled = EvaluationDocuments.divide(corpus, labelled=True, halves=20, seed=3)
    assert labelled.halved == unlabelled.halved
    assert (labelled.train, labelled.test) == split_by_label(corpus, 0.3, 3)
    apart = EvaluationDocuments.divide(corpus[:30], corpus[30:], labelled=True)
    assert (apart.halved, apart.train, apart.test) == (corpus[:30], corpus[:30], corpus[30:])


def test_models_are_measured_beside_their_base(model: SentenceTransformer, corpus: list[Document]) -> None:
    short = copy.deepcopy(model)
    short.max_seq_length = 20
    models = {"base": model, "twin": copy.deepcopy(model), "short": short}
    documents = EvaluationDocuments.divide(corpus, labelled=True, seed=4)
    bases = {"twin": "base", "short": "base"}
    evaluation = evaluate_models(models, documents, bases=bases, shots=3, draws=2, seed=4)
    assert evaluation.halves == compare_halves(models, documents.halved, seed=4)
    assert evaluation.probes == compare_probes(models, documents.train, documents.test, shots=3, draws=2, seed=4)
    pair = evaluation.probes["base"].few_shot, evaluation.probes["twin"].few_shot
    halves = evaluation.halves["base"], evaluation.halves["twin"]
    assert evaluation.verdicts == {"twin": give_verdict(*halves, pair, 4)}, "short reads less"
    text = evaluation.summary(80)
    assert text.startswith(f"twin, against base: {evaluation.verdicts['twin'].summary()}\n\nshort, against base: The ")
    assert re.search("64 tokens .* 20", text)
    assert f"full: from all {len(documents.train):,}" in text
    assert re.search("short reads .* 20 tokens .* 48 of 48", text)
    values = json.loads(json.dumps(evaluation.to_dict()))
    assert values.keys() == {TFIDF, "base", "twin", "short"}
    assert values[TFIDF].keys() == {"halves", "probes"}
    assert values["twin"].keys() == {"halves", "probes", "truncation", "verdict", "max_seq_length"}
    assert "verdict" not in values["short"]
    assert values["short"]["max_seq_length"] == 20
