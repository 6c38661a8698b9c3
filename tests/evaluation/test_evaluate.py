"""Evaluate models on a user's documents."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st import read_documents
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.evaluation import compare_halves, compare_probes, evaluate_models, sample_documents, split_by_label
from simlte_st.evaluation.comparison import TFIDF
from simlte_st.evaluation.verdict import give_verdict
from simlte_st.files import RUN_FILE, write_json
from simlte_st.models.lsa import append_lsa


def test_models_are_compared_with_their_base(model: SentenceTransformer, corpus: list[Document]) -> None:
    short = copy.deepcopy(model)
    short.max_seq_length = 20
    models = {"base": model, "twin": copy.deepcopy(model), "short": short}
    few = {"shots": 3, "draws": 2, "seed": 4}
    evaluation = evaluate_models(models, corpus, label="label", base="base", halves=40, **few)  # type: ignore[arg-type]
    train, test = split_by_label(corpus, 0.3, 4)
    assert evaluation.halves == compare_halves(models, sample_documents(corpus, 40, 4), seed=4)
    assert evaluation.probes == compare_probes(models, train, test, **few)  # type: ignore[arg-type]
    pair = evaluation.probes["base"].few_shot, evaluation.probes["twin"].few_shot
    halves = evaluation.halves["base"], evaluation.halves["twin"]
    tfidf = evaluation.halves["TF-IDF"], evaluation.probes["TF-IDF"].few_shot
    assert evaluation.verdicts == {"twin": give_verdict(*halves, pair, 4, "", tfidf)}, "short reads less"
    text = evaluation.summary()
    twin = f"twin, against base: {evaluation.verdicts['twin'].summary()}\n\n"
    assert text.startswith(f"{twin}short, against base: Maximum ")
    assert re.search("64 by the base, 20", text)
    assert f"full: on all {len(train):,}" in text
    values = json.loads(json.dumps(evaluation.to_dict()))
    assert values.keys() == {TFIDF, "base", "twin", "short"}
    assert values[TFIDF].keys() == {"halves", "probes", "max_seq_length"}
    assert values["twin"].keys() == {"halves", "probes", "verdict", "max_seq_length"}
    assert "verdict" not in values["short"]
    assert values["short"]["max_seq_length"] == 20


def test_verdict_names_change(encoder_path: Path, static_path: Path, corpus: list[Document], tmp_path: Path) -> None:
    """What differs from the base is known from the run, and from the analyses in encoders."""
    analysed = append_lsa(encoder_path, corpus, tmp_path / "analysed", dimension=5, progress=False).output
    folded = append_lsa(static_path, corpus, tmp_path / "folded", dimension=5, progress=False).output
    expected = {}
    for name, folder, base, kept, lsa, change in (
        ("kept", analysed, encoder_path, "base", 5, "the latent semantic analysis"),
        ("both", analysed, encoder_path, "trained", 5, "training and the latent semantic analysis"),
        ("had it", analysed, analysed, "trained", 5, "training"),
        ("removed", encoder_path, analysed, "trained", None, "training and removing the latent semantic analysis"),
        ("static", folded, static_path, "base", 5, "the latent semantic analysis"),
        ("lsa=0", folded, static_path, "trained", None, "training"),
        ("same", static_path, static_path, "base", None, ""),
    ):
        model = str(shutil.copytree(folder, tmp_path / name))
        write_json(tmp_path / name / RUN_FILE, {"base": str(base), "kept": kept, "lsa": lsa})
        expected[model] = change
    evaluation = evaluate_models([*expected], corpus, progress=False)
    assert {name: verdict.change for name, verdict in evaluation.verdicts.items()} == expected
    assert evaluation.verdicts[model].summary() == "The model and its base give the same results on these documents."
    other = evaluate_models([next(iter(expected))], corpus, base=str(tmp_path / "both"), progress=False)
    assert [verdict.change for verdict in other.verdicts.values()] == [""], "not the base that it was trained from"


def test_documents_and_labels_follow_the_reader(
    encoder_path: Path, corpus: list[Document], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"id": each.id, "body": each.text, "kind": each.label if row else None} for row, each in enumerate(corpus)]
    for name, part in (("all", rows), ("train", rows[:30]), ("test", rows[30:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)), encoding="utf-8")
    names = [str(encoder_path)]
    reader = read_documents(tmp_path / "all.jsonl", text_column="body", limit=40)
    plain = evaluate_models(names, reader, halves=20, seed=3, progress=False)
    assert plain.probes == {}
    assert (plain.reading.documents, plain.halves[names[0]].structure.documents) == (40, 20)
    parts = [read_documents(tmp_path / f"{name}.jsonl", text_column="body") for name in ("train", "test")]
    apart = evaluate_models(names, parts[0], label="kind", test_data=parts[1], draws=2, progress=False)
    assert apart.train_documents == 29
    assert "1 of 30 documents have no label" in caplog.text
    assert len(apart.probes[TFIDF].full.test) == len(corpus) - 30


def test_errors_are_raised_before_models_are_loaded(corpus: list[Document]) -> None:
    with pytest.raises(ConfigurationError, match="label="):
        evaluate_models(["no model"], corpus, test_data=corpus)
    with pytest.raises(ConfigurationError, match="halves=1"):
        evaluate_models(["no model"], corpus, halves=1)
    with pytest.raises(ModelError, match="no model"):
        evaluate_models(["no model"], corpus)
