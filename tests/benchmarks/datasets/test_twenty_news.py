from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.datasets import _twenty_newsgroups as sklearn_news

from benchmarks.datasets import load_benchmark
from benchmarks.datasets.twenty_news import strip_footer, strip_header, strip_quotes
from simlte_st.errors import ConfigurationError, DataError

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
    assert list(benchmark.documents("test")) == list(benchmark.documents())[2:]
    assert benchmark.report.skipped == {"empty": 1}
    assert benchmark.report.ignored == {"hidden": 1}


@pytest.mark.parametrize(
    ("remove", "text"),
    [
        ("nothing", POST),
        (("headers", "footers", "quotes"), "\nIt is far.\nSo far.\n"),
        ("headers, footers,quotes", "\nIt is far.\nSo far.\n"),
        ("footers", POST.split("\n\n--")[0] + "\n"),
    ],
)
def test_what_is_removed(folder: Path, remove: str | tuple[str, ...], text: str) -> None:
    documents = {item.id: item.text for item in load_benchmark("20news", folder, remove=remove).documents()}
    assert documents["train/sci.space/60001"] == text


def test_options_that_there_are_not(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="remove=bodies: from posts can be removed headers, footers, quotes"):
        load_benchmark("20news", folder, remove="bodies")
    (tmp_path / "posts.jsonl").write_text('{"text": "a", "label": "b"}\n')
    with pytest.raises(ConfigurationError, match="in this form has no option 'remove'; it has: none"):
        load_benchmark("20news", tmp_path / "posts.jsonl", remove="headers")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match=r"20news-bydate\.tar\.gz \(licence: none stated"):
        load_benchmark("20news", empty)


def test_newsgroups_without_a_split(folder: Path) -> None:
    benchmark = load_benchmark("20news", folder / "20news-bydate-train")
    assert [(item.id, item.label) for item in benchmark.documents()] == [
        ("rec.autos/101", "rec.autos"),
        ("sci.space/60001", "sci.space"),
    ]
    assert benchmark.split_origin.startswith("made here: 20% of each class for the test, seed 0")


@pytest.mark.parametrize(
    "post", [POST, "", "no header", "a\n\nb\n\n", "a\n---\nb\n-\n", "> a\n| b\nHe said: c\nd", "\n\n--\nx", "--\nb"]
)
def test_removing_is_scikit_learns(post: str) -> None:
    assert strip_header(post) == sklearn_news.strip_newsgroup_header(post)
    assert strip_quotes(post) == sklearn_news.strip_newsgroup_quoting(post)
    assert strip_footer(post) == sklearn_news.strip_newsgroup_footer(post)
