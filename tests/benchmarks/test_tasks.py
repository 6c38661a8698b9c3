"""The papers' data sets as tasks of mteb, scores against scikit-learn's, scipy's or a computation by hand."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from support import WORDS, write_jsonl

pytest.importorskip("mteb")
import mteb

from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.tasks import TASKS, kept_generators, measure
from simlte_st.errors import DataError
from simlte_st.evaluation import CosineScores

Papers = tuple[dict[str, str], list[tuple[str, str]]]

CLASSES = ("first", "second", "third")


def make_text(draw: random.Random, kind: int, words: int = 20) -> str:
    """A text in which half of the words are those of its class."""
    own = WORDS[30 * kind : 30 * kind + 30]
    return " ".join(draw.choice(own) if draw.random() < 0.5 else draw.choice(WORDS) for _ in range(words))


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on any connection."""

    def refuse(*_: object) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="session")
def labelled() -> tuple[list[str], list[str]]:
    """60 texts in three classes."""
    draw = random.Random(1)
    return [make_text(draw, number % 3) for number in range(60)], [CLASSES[number % 3] for number in range(60)]


@pytest.fixture(scope="session")
def papers() -> tuple[dict[str, str], list[tuple[str, str]]]:
    """24 papers by id, and 40 links; many papers cite and are cited."""
    draw = random.Random(2)
    texts = {f"P{number:02}": make_text(draw, number % 3) for number in range(24)}
    links = [(f"P{a:02}", f"P{b:02}") for a in range(24) for b in range(24) if a != b]
    return texts, sorted(draw.sample(links, 40))


@pytest.fixture(scope="session")
def folders(
    tmp_path_factory: pytest.TempPathFactory,
    labelled: tuple[list[str], list[str]],
    papers: tuple[dict[str, str], list[tuple[str, str]]],
) -> dict[str, Path]:
    """The data sets by name, as tables; one text in ten has no class."""
    root = tmp_path_factory.mktemp("data")
    table = root / "labelled.jsonl"
    classes = {"fakenews": ("fake", "bias", "hate"), "arxiv": ("cs", "math", "stat")}
    paths: dict[str, Path] = {}
    for name in ("fakenews", "20news", "arxiv", "nyt", "bbc"):
        names = dict(zip(CLASSES, classes.get(name, CLASSES), strict=True))
        table = root / f"{name}.jsonl"
        rows = [
            {"text": text, "label": None if number % 10 == 9 else names[label]}
            for number, (text, label) in enumerate(zip(*labelled, strict=True))
        ]
        write_jsonl(table, rows)
        paths[name] = table
    texts, links = papers
    (root / "aan").mkdir()
    write_jsonl(root / "aan" / "papers.jsonl", ({"id": paper, "text": text} for paper, text in texts.items()))
    write_jsonl(root / "aan" / "links.jsonl", ({"citing": citing, "cited": cited} for citing, cited in links))
    paths["aan"] = root / "aan"
    draw = random.Random(3)
    some = [make_text(draw, number % 3) for number in range(6)]
    (root / "lee").mkdir()
    pq.write_table(pa.table({"text": some}), root / "lee" / "lee_documents.parquet")
    matrix = [[1.0 if row == column else draw.random() for column in range(6)] for row in range(6)]
    (root / "lee" / "lee_similarities_50x50.json").write_text(json.dumps(matrix))
    paths["lee"] = root / "lee"
    return paths


def made(name: str, folders: dict[str, Path], **settings: Any) -> Any:
    """Return the data of a task."""
    return TASKS[name].make(folders[TASKS[name].data_set], **settings).make_data()


def unit(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    rows = model.encode(texts, convert_to_numpy=True).astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_all_of_them_run(model: SentenceTransformer, folders: dict[str, Path]) -> None:
    for name, task in TASKS.items():
        found = measure(model, task.make(folders[task.data_set]), batch_size=16)
        assert -1.0 <= found["main"] <= 1.0
        assert found["main"] == found["scores"][found["main_score"]]
        with pytest.raises(KeyError, match="not found"):
            mteb.get_task(name)


def test_classification(model: SentenceTransformer, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["BBCNewsClassification"].make(folders["bbc"], test_share=0.5)
    monkeypatch.setattr(task, "samples_per_label", 100)  # all there are: each draw is the same
    found = measure(model, task, 16)
    data = made("BBCNewsClassification", folders, test_share=0.5)
    assert (data["train"].num_rows, data["test"].num_rows) == (27, 27)
    assert data["test"].features["label"].names == ["first", "second", "third"]
    assert not set(data["train"]["text"]) & set(data["test"]["text"])
    (x, y), (x_test, y_test) = ((model.encode(data[part]["text"][:]), data[part]["label"][:]) for part in data)
    predicted = LogisticRegression(max_iter=100).fit(x, y).predict(x_test)
    assert found["main"] == pytest.approx(f1_score(y_test, predicted, average="macro"))


def test_documents_are_drawn_by_seed(folders: dict[str, Path]) -> None:
    def texts(**settings: Any) -> list[str]:
        found: list[str] = made("BBCNewsClustering", folders, **settings)["test"]["sentences"][:]
        return found

    everything, some = texts(), texts(most=12)
    assert (len(everything), len(some)) == (54, 12)
    assert some == texts(most=12) != texts(most=12, seed=1)
    assert some == [text for text in everything if text in some]


def test_a_large_training_part_keeps_its_rare_classes(tmp_path: Path) -> None:
    rows = "".join(f"text {i}\t{'rare' if i % 500 == 0 else 'often'}\n" for i in range(1500))
    (tmp_path / "train.tsv").write_text(f"text\tlabel\n{rows}")
    (tmp_path / "test.tsv").write_text("text\tlabel\nba\trare\nbei\toften\n")
    data = made("BBCNewsClassification", {"bbc": tmp_path})["train"]
    often, rare = data.features["label"].str2int(["often", "rare"])
    assert [data["label"][:].count(number) for number in (often, rare)] == [800, 3]


def test_citation_retrieval(model: SentenceTransformer, folders: dict[str, Path], papers: Papers) -> None:
    texts, links = papers
    found = measure(model, TASKS["AANCitationRetrieval"].make(folders["aan"]), 16)
    assert {cited for _, cited in links} & {citing for citing, _ in links}  # papers that would find themselves
    rows = {paper: row for row, paper in enumerate(texts)}
    expected = citation_retrieval(
        CosineScores(unit(model, list(texts.values()))), [(rows[citing], rows[cited]) for citing, cited in links]
    ).metrics()
    assert found["main"] == pytest.approx(expected["ndcg@10"], abs=1e-5)
    assert found["scores"]["mrr_at_1000"] == pytest.approx(expected["mrr"], abs=1e-5)


def test_citation_pairs(model: SentenceTransformer, folders: dict[str, Path], papers: Papers) -> None:
    texts, links = papers
    data = made("AANCitationPairClassification", folders)["test"]
    assert 0 < data.num_rows < 40
    linked = {(texts[citing], texts[cited]) for citing, cited in links}
    for row in data:
        assert ((row["sentence1"], row["sentence2"]) in linked) == bool(row["labels"])
    assert made("AANCitationPairClassification", folders, most=4)["test"].num_rows == 4
    found = measure(model, TASKS["AANCitationPairClassification"].make(folders["aan"]), 16)
    cosines = (unit(model, data["sentence1"][:]) * unit(model, data["sentence2"][:])).sum(axis=1)
    assert found["scores"]["cosine_ap"] == pytest.approx(average_precision_score(data["labels"][:], cosines))


def test_judged_similarities_of_models_that_have_no_name(model: SentenceTransformer, folders: dict[str, Path]) -> None:
    data = made("LeeDocumentSTS", folders)["test"]
    assert data.num_rows == 15
    found = []
    for _ in range(2):
        cosines = (unit(model, data["sentence1"][:]) * unit(model, data["sentence2"][:])).sum(axis=1)
        found.append(measure(model, TASKS["LeeDocumentSTS"].make(folders["lee"]), 16)["main"])
        assert found[-1] == pytest.approx(spearmanr(data["score"][:], cosines)[0])
        with torch.no_grad():
            for weight in model.parameters():
                weight.normal_(generator=torch.Generator().manual_seed(0))
    assert found[0] != pytest.approx(found[1]), "mteb's cache does not take one for the other"


def test_the_generators_are_kept(model: SentenceTransformer, folders: dict[str, Path]) -> None:
    def drawn() -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(()))]

    with kept_generators():
        expected = drawn()
    with kept_generators():
        measure(model, TASKS["BBCNewsClustering"].make(folders["bbc"]), 16)
    assert drawn() == expected


def test_data_that_is_not_there_says_where_to_get_it(model: SentenceTransformer) -> None:
    with pytest.raises(DataError, match=r"catalog.ldc.upenn.edu.*path="):
        measure(model, TASKS["NYTSectionClassification"].make(), 16)
    with pytest.raises(DataError, match="pass the folder"):
        measure(model, TASKS["LeeDocumentSTS"].make(), 16)
