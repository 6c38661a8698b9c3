"""Small data of every kind of task, and a model: nothing is downloaded."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import WORDS

CLASSES = ("first", "second", "third")


def make_text(draw: random.Random, kind: int, words: int = 20) -> str:
    """A text in which half of the words are those of its class."""
    own = WORDS[30 * kind : 30 * kind + 30]
    return " ".join(draw.choice(own) if draw.random() < 0.5 else draw.choice(WORDS) for _ in range(words))


@pytest.fixture
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
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths[name] = table
    texts, links = papers
    (root / "aan").mkdir()
    (root / "aan" / "papers.jsonl").write_text(
        "".join(json.dumps({"id": paper, "text": text}) + "\n" for paper, text in texts.items())
    )
    (root / "aan" / "links.jsonl").write_text(
        "".join(json.dumps({"citing": citing, "cited": cited}) + "\n" for citing, cited in links)
    )
    paths["aan"] = root / "aan"
    draw = random.Random(3)
    some = [make_text(draw, number % 3) for number in range(6)]
    (root / "lee").mkdir()
    pq.write_table(pa.table({"text": some}), root / "lee" / "lee_documents.parquet")
    matrix = [[1.0 if row == column else draw.random() for column in range(6)] for row in range(6)]
    (root / "lee" / "lee_similarities_50x50.json").write_text(json.dumps(matrix))
    paths["lee"] = root / "lee"
    return paths
