from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.datasets import load_benchmark
from simlte_st.errors import DataError

POST = (
    "From: a@b.c (Sen\xe9)\nSubject: Re: orbits\n\n"
    "In article <1@x> someone writes:\n> Is it far?\n\nIt is far.\nSo far.\n\n--\nSen\xe9, of nowhere\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "20news-bydate-train/sci.space/60001": POST,
        "20news-bydate-train/sci.space/60002": "Subject: nothing else\n\n",
        "20news-bydate-train/rec.autos/101": "Subject: a\n\nA car.\n",
        "20news-bydate-test/sci.space/60003": "Subject: b\n\nA rocket.\n",
        "20news-bydate-test/rec.autos/.hidden": "Subject: c\n\nNo.\n",
        "20news-bydate-test/rec.autos/102": "Subject: c\n\nA van.\n",
    }
    for name, text in files.items():
        path = tmp_path / "20news" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    return tmp_path / "20news"


def test_the_folder_by_date(folder: Path) -> None:
    benchmark = load_benchmark("20news", folder)
    assert [(item.id, item.label, item.split) for item in benchmark.documents()] == [
        ("train/rec.autos/101", "rec.autos", "train"),
        ("train/sci.space/60001", "sci.space", "train"),
        ("test/rec.autos/102", "rec.autos", "test"),
        ("test/sci.space/60003", "sci.space", "test"),
    ]
    assert benchmark.split_origin == "of the data set"
    assert benchmark.train["text"][:] == ["A car.\n", POST.split("\n\n", 1)[1]]
    assert benchmark.test["id"][:] == [document.id for document in benchmark.documents()][2:]
    assert benchmark.report.skipped == {"empty": 1}
    assert benchmark.report.ignored == {"hidden": 1}


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz .*none stated"):
        load_benchmark("20news", tmp_path)


def test_newsgroups_without_a_split(folder: Path) -> None:
    benchmark = load_benchmark("20news", folder / "20news-bydate-train")
    assert [(item.id, item.label) for item in benchmark.documents()] == [
        ("rec.autos/101", "rec.autos"),
        ("sci.space/60001", "sci.space"),
    ]
    assert re.match("made here: 20% .*seed 0", benchmark.split_origin)
