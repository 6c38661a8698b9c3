from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import make_document

import simlte_st
from simlte_st.errors import DataError, ModelError
from simlte_st.evaluation import ProbeComparison, bench
from simlte_st.evaluation.candidates import Candidate, recommend
from simlte_st.evaluation.compare import Comparison
from simlte_st.evaluation.comparison import fit_probes

WORDS = {"a": "Ba ba ba.", "b": "Sor sor sor."}
"""The last sentence, which distinguishes the classes; a model that reads 64 tokens never sees it."""


@pytest.fixture(scope="module")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 documents of 105 tokens in two classes, and three that no probe can use."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows = [
        {"text": f"{make_document(number)} {WORDS['ab'[number % 2]] * 4}", "kind": "ab"[number % 2]}
        for number in range(80)
    ]
    rows += [{"text": make_document(100), "kind": "alone"}, *({"text": make_document(number)} for number in (101, 102))]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def own_static(static_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The static model in every comparison."""
    monkeypatch.setattr(bench, "OWN_STATIC", str(static_path))
    return str(static_path)


def test_compare_recommends_the_best_probe(corpus_file: Path, encoder_path: Path, own_static: str) -> None:
    result = simlte_st.compare(corpus_file, [encoder_path], probe="kind", progress=False)
    name = str(encoder_path)
    assert [each.name for each in result.candidates] == [
        own_static, f"{own_static} + LSA", "TF-IDF", name, f"{name}, whole", f"{name}, whole + LSA"
    ]  # fmt: skip
    static, static_with_lsa, words, cut, whole, with_lsa = result.candidates
    assert [each.static for each in result.candidates] == [True, True] + [False] * 4
    assert static.reads is static_with_lsa.reads is None
    assert static.command == f"simlte encode {own_static} {corpus_file} --output vectors.parquet"
    assert static_with_lsa.command == f"simlte train {corpus_file} --static --probe kind --output my-model"
    assert static.documents_per_second > whole.documents_per_second
    assert (cut.reads, whole.reads, words.reads) == (64, 32_768, None)
    assert cut.share == pytest.approx(0.52, abs=0.05)
    assert whole.share == words.share == 1
    assert (result.documents, result.labelled) == (83, 80)
    assert words.score > cut.score + 0.2, "the classes are in what is cut"
    best = next(each for each in result.candidates if each.name == result.recommended)
    assert best.score > cut.score
    assert whole.command == f"simlte train {corpus_file} --base {name} --probe kind --output my-model"
    assert (with_lsa.name, with_lsa.command) == (
        f"{name}, whole + LSA", whole.command.replace(" --output", " --lsa 256 --output")
    )  # fmt: skip
    said = result.summary()
    assert "| setting" in said
    assert f"Recommended: {best.name}." in said
    assert said.endswith(f"\n\n    {best.command}")
    values = json.loads(json.dumps(result.to_dict()))
    assert values["candidates"][3]["probe"]["low"] <= cut.score <= values["candidates"][2]["probe"]["high"]


def test_share_of_tokens_read_decides_without_labels(corpus_file: Path, encoder_path: Path, own_static: str) -> None:
    long = simlte_st.compare(corpus_file, [encoder_path], sample=40, progress=False)
    assert (long.documents, long.labelled) == (40, 0)
    assert long.recommended == f"{encoder_path}, whole"
    assert "depends on the share of tokens read, here 100%" in long.summary()
    texts = [make_document(number)[:150] for number in range(20)]
    short = simlte_st.compare(texts, [encoder_path], progress=False)
    assert [each.name for each in short.candidates][3:5] == [str(encoder_path), f"{encoder_path} + LSA"], "all is read"
    assert short.recommended == str(encoder_path)
    assert short.candidates[3].command == f"simlte encode {encoder_path} my_documents --output vectors.parquet"
    assert short.candidates[4].command == f"simlte convert {encoder_path} --lsa my_documents --output my-model"
    longest = simlte_st.compare([" ".join([text] * 20) for text in texts], [encoder_path], progress=False)
    assert longest.recommended == f"{own_static} + LSA"
    assert "depends on length" in longest.summary()
    assert longest.summary().endswith("\n\n    simlte train my_documents --static --output my-model")


def test_slow_encoders_are_left_out(
    corpus_file: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = bench.Bench._estimate_seconds
    monkeypatch.setattr(bench.Bench, "_estimate_seconds", lambda *plan: 1 / estimate(*plan))  # misleading
    result = simlte_st.compare(corpus_file, [encoder_path], budget=1e-9)
    assert [*result.left_out] == [str(encoder_path), f"{encoder_path}, whole"]
    assert [candidate.name for candidate in result.candidates][2:] == ["TF-IDF"]
    assert f"exceed budget=1e-09 minutes: {encoder_path} (about 1 min), {encoder_path}, whole (" in result.summary()
    names = tuple(candidate.name for candidate in result.candidates)
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("setting", *names))]
    assert len(shown) == 4, "a row for each candidate as soon as it is measured"


def test_missing_models_are_skipped_unless_named(
    corpus_file: Path, encoder_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bench, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(bench, "OWN_MODELS", {"nomodel": 64})
    result = simlte_st.compare(corpus_file, sample=10, progress=False)
    assert result.candidates[3].name == str(encoder_path)
    assert "'nomodel'" in caplog.text
    with pytest.raises(ModelError, match="nomodel"):
        simlte_st.compare(corpus_file, ["nomodel"], progress=False)
    monkeypatch.setattr(bench, "PACKAGED_BASE", "nomodel")
    monkeypatch.setattr(bench, "OWN_STATIC", "nomodel")
    with pytest.raises(ModelError, match=r"\[demo\]"):
        simlte_st.compare(corpus_file, sample=10, progress=False)


def test_too_few_labels_is_an_error_before_models_are_loaded(corpus_file: Path) -> None:
    with pytest.raises(DataError, match=r"probe='kind': .* 60 documents"):
        simlte_st.compare(corpus_file, ["nomodel"], probe="kind", sample=40, progress=False)


def probes(*noises: float) -> list[ProbeComparison]:
    """Probe 80 documents in two classes, with different amounts of noise in their vectors."""
    labels = ["a", "b"] * 40
    right = np.array([[float(label == "a"), float(label == "b")] for label in labels])
    rows = [right + noise * np.random.default_rng(0).normal(size=right.shape) for noise in noises]
    settings: dict[str, Any] = {"name": "m", "shots": 5, "draws": 4, "seed": 0, "progress": False}
    return [fit_probes(each, labels, each, labels, **settings) for each in rows]


def test_much_faster_model_of_equal_quality_is_recommended() -> None:
    best, close, far = probes(0.4, 0.42, 9)
    encoder = Candidate("encoder", 64, 0.5, 3.0, "simlte encode encoder d", probes=best)

    def beside(probes: ProbeComparison, rate: float) -> str:
        fast = Candidate("fast", None, 1.0, rate, "simlte train d --static", static=True, probes=probes)
        chosen = recommend([fast, encoder], False, 0)
        advice = Comparison((fast, encoder), chosen.name, 80, 800, 80).advice()
        assert ("90 times as fast" in advice) == (chosen is fast and rate == 270)
        assert advice.endswith(chosen.command)
        return chosen.name

    assert close.few_shot.macro_f1 < best.few_shot.macro_f1
    assert [beside(close, 270), beside(close, 29), beside(far, 270)] == ["fast", "encoder", "encoder"]
