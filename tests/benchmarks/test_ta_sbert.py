from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformerTrainer
from sklearn.linear_model import LogisticRegression
from support import make_document

from benchmarks import ta_sbert
from benchmarks.grid.work import SettingsClash
from benchmarks.nli.page import claim_cells, read_scores
from benchmarks.nli.printed import AVERAGE, PRINTED
from benchmarks.nli.tasks import SENTEVAL, STS, TransferTask, load_labelled, tfidf_transfer_accuracy, transfer_accuracy
from benchmarks.nli.training import BATCH, HEAD_RATE, LABELS, ROWS, load_inference, make_model, train_row
from simlte_st.modules import BaseForm, TokenAttention


def sentence(number: int) -> str:
    return make_document(number, sentences=1, words=4 + number % 5)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    rows = [
        {
            "sentence1": sentence(number), "sentence2": sentence(number + number % 3), "label": LABELS[number % 3],
            "score": float(number % 3), "split": ("dev", "test")[number % 2], "text": f"{sentence(number)} it isn't",
        }
        for number in range(96)
    ]  # fmt: skip

    def write(name: str, *columns: str, **changed: list[object]) -> None:
        table = {column: [row[column] for row in rows] for column in columns}
        pq.write_table(pa.table({**table, **changed}), folder / f"{name}.parquet")

    write("snli_dev_test", "sentence1", "sentence2", "label", "split")
    for name in STS.values():
        write(name, "sentence1", "sentence2", "score")
    parts = ["train" if number < 60 else "test" for number in range(96)]
    classes = [number % 2 for number in range(96)]
    for name in SENTEVAL.values():
        if name == "senteval_mrpc":
            write(name, "sentence1", "sentence2", label=classes, split=parts)
        elif name == "senteval_trec":
            write(name, "text", label=classes, split=parts)
        else:
            write(name, "text", label=classes)
    return folder


def test_printed_mean_accuracy_covers_the_measured_tasks() -> None:
    here = PRINTED["accuracy"].loc["none"]
    assert set(here.index) == {*SENTEVAL, AVERAGE}
    assert here[AVERAGE] == pytest.approx((82.46 + 89.26 + 89.69 + 93.13 + 85.48 + 75.68) / 6)
    assert PRINTED["pearson", AVERAGE]["none"] == 72.64


def test_rows_have_their_parts_and_fast_heads(shared: Path, bert_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    for name, row in ROWS.items():
        model = make_model(str(bert_path), row)
        assert isinstance(model[0], BaseForm) == ("form" in name)
        assert isinstance(model[1], TokenAttention) == ("att" in name)
        assert bool(row.weight) == ("recon" in name)
    seen: dict[str, float] = {}

    class Trainer(SentenceTransformerTrainer):
        def create_optimizer(self, *arguments: object) -> object:
            optimizer = super().create_optimizer(*arguments)
            rates = {id(weights): group["lr"] for group in optimizer.param_groups for weights in group["params"]}
            seen.update({name: rates[id(weights)] for name, weights in self.loss.named_parameters()})
            return optimizer

    monkeypatch.setattr("simlte_st.training.fit.SentenceTransformerTrainer", Trainer)
    train_row(str(bert_path), ROWS["+ att + recon"], load_inference(shared, BATCH), 0, 1e-3, bf16=False)
    assert {("transformer." in name, rate) for name, rate in seen.items()} == {(True, 1e-3), (False, HEAD_RATE * 1e-3)}


def test_transfer_accuracy_of_pairs_and_single_texts(shared: Path) -> None:
    task = load_labelled(shared, "MRPC", None)
    assert (task.learn, len(task.labels), len(task.second)) == (60, 96, 96)
    rows = np.random.default_rng(0).normal(size=(96, 3))
    places = {text: row for texts in (task.first, task.second) for text, row in zip(texts, rows, strict=True)}
    first, second = (np.array([places[text] for text in side]) for side in (task.first, task.second))
    features = np.hstack([abs(first - second), first * second])
    expected = LogisticRegression(max_iter=1000).fit(features[:60], task.labels[:60])
    found = transfer_accuracy(lambda texts: np.array([places[text] for text in texts]), task)
    assert found == expected.score(features[60:], task.labels[60:])
    words = TransferTask(["good film", "bad film"] * 20, [], [1, 0] * 20, 0)
    assert tfidf_transfer_accuracy(words) == 1.0
    assert tfidf_transfer_accuracy(TransferTask(words.first, words.first[::-1], [1, 0] * 20, 20)) <= 1.0


def test_claims_are_paired_by_seed() -> None:
    def trained(value: float) -> dict[str, object]:
        scores = dict.fromkeys(("pearson", "spearman"), value)
        return {"sts": dict.fromkeys(STS, scores), "senteval": dict.fromkeys(SENTEVAL, value)}

    rows = {"none": [0.5, 0.6, 0.9], "+ att": [0.51, 0.62]}
    results = {f"rows/base/{row}-{seed}": trained(value) for row in rows for seed, value in enumerate(rows[row])}
    [pearson, *_] = claim_cells(read_scores({"results": results}), "base").to_dict("records")
    assert pearson["mean"] == "pearson"
    assert pearson["paper"] == "+0.67"
    assert pearson["here"] == "+1.50 [-4.85, +7.85]"


def test_run_is_resumed(shared: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    command = ["--shared", str(shared), "--bases", str(bert_path), "--work", str(tmp_path / "work"), "--bf16"]
    command += ["--pairs", "32", "--sts-pairs", "20", "--transfer-texts", "60", "--results", str(tmp_path)]
    ta_sbert.main([*command, "--seeds", "0", "1"])
    record = json.loads((tmp_path / "ta_sbert.json").read_text())
    trained = {name for name in record["results"] if name.startswith("rows/")}
    assert trained == {f"rows/tiny-bert/{row}-{seed}" for row in ROWS for seed in (0, 1)}
    first, second = (record["results"][f"rows/tiny-bert/none-{seed}"]["sts"]["STSb"] for seed in (0, 1))
    assert first != second
    text = (tmp_path / "ta_sbert.md").read_text()
    for part in ("## From tiny-bert", "| TF-IDF", "| not trained", "(72.6)", "Trainings: `none` 2, `+ form` 2"):
        assert part in text
    assert str(tmp_path) not in text
    assert "--bases tiny-bert --pairs 32 --sts-pairs 20 --transfer-texts 60 --learning-rate 2e-05 --bf16" in text
    monkeypatch.setattr(ta_sbert, "train_row", lambda *arguments: pytest.fail("nothing is left to do"))
    ta_sbert.main([*command, "--seeds", "0", "1"])
    with pytest.raises(SettingsClash, match="pairs 32, now 48"):
        ta_sbert.main([*command, "--pairs", "48"])
