from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from simlte_st.cli.main import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "posts.jsonl"
    rows = [
        {"text": "one two three", "label": "b", "split": "train"},
        {"text": "one two", "label": "a", "split": "train"},
        {"text": "one", "label": "a", "split": "test"},
        {"text": "", "label": "a", "split": "test"},
        {"text": "a b c d e f", "label": None, "split": "test"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_data_set_beside_the_papers(table: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"data stats 20news --path {table} --quiet")) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"20news: 20 Newsgroups, by date, from {table}\n")
    for line in (
        "                here  papers",
        "documents          4  18,846",
        "classes            2      20",
        "words, mean        3     258",
        "words, median    2.5     153",
        "words, longest     6  11,554",
        "classes: 2 a, 1 b",
        "without a class: 1",
        "splits: 2 train, 2 test",
        "licence: none stated; posts to public newsgroups",
    ):
        assert line in captured.out.splitlines()
    assert "skipped 1: 1 empty" in captured.err
    assert not (home / "benchmarks").exists()  # counting stores nothing


def test_json(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"data stats nyt --path {table} --json --quiet --limit 3")) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["statistics"]["documents"] == 3
    assert result["statistics"]["words_mean"] == 2.0
    assert result["papers"] == {
        "documents": 13081, "classes": 5, "words_mean": 650, "words_median": 683, "words_max": 5503
    }  # fmt: skip
    assert result["report"]["stopped_at"] == 3
    assert main(shlex.split(f"data stats {table} --label-column label --json --quiet")) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["statistics"]["labels"] == {"a": 2, "b": 1}
    assert "papers" not in result


def test_any_corpus(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"data stats {table} --quiet")) == 0
    out = capsys.readouterr().out
    assert "words, mean        3" in out.splitlines()
    assert "papers" not in out
    assert "classes" not in out


def test_options_of_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "snapshot.jsonl"
    path.write_text('{"title": "A title", "abstract": "One two three.", "categories": "cs.CL"}\n')
    for options, words, label in (("", 5, "cs"), ("--option text=abstract --option classes=category", 3, "cs.CL")):
        assert main(shlex.split(f"data stats arxiv --path {path} {options} --json --quiet")) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["statistics"]["words_max"] == words
        assert list(result["statistics"]["labels"]) == [label]
    assert main(shlex.split(f"data stats arxiv --path {path} --option text --quiet")) == 1
    assert "--option text: give an option of the data set as KEY=VALUE" in capsys.readouterr().err
    assert main(shlex.split(f"data stats arxiv --path {path} --option words=1 --quiet")) == 1
    assert "no option 'words'; it has: text, classes" in capsys.readouterr().err


def test_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "eval", "test"):
        (tmp_path / f"new_aan_pairs.{split}.tsv").write_text(
            "1.0\tA\tB\tone two\tthree\n0.0\tA\tC\tone two\tfour five six\n"
        )
    assert main(shlex.split(f"data stats aan --path {tmp_path} --quiet")) == 0
    out = capsys.readouterr().out.splitlines()
    assert "documents          3" in out
    assert not any(line.startswith("classes") for line in out)
    assert "words, mean        2" in out
    assert "pairs: 2 test, 2 train, 2 validation; 3 of them citations" in out
    assert "pairs and splits: of the data set" in out


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert [line.split("\t")[0] for line in out.splitlines() if not line.startswith(" ")] == [
        "fakenews", "20news", "arxiv", "nyt", "bbc", "aan"
    ]  # fmt: skip
    assert "SetFit/20_newsgroups" in out
    assert "LDC User Agreement" in out


def test_the_list_fits_the_terminal_and_is_there_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["data", "list"]) == 0
    assert max(len(line.expandtabs()) for line in capsys.readouterr().out.splitlines()) <= 80
    assert main(["data", "list", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["20news"]["hub"] == "SetFit/20_newsgroups"
    assert len(values["aan"]["forms"]) == 2


def test_what_cannot_be(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split("data stats imdb --quiet")) == 1
    assert "no data set and no file or folder 'imdb'. The data sets are fakenews, 20news" in capsys.readouterr().err
    for flag in (f"--path {table}", "--option text=abstract", "--split-column split"):
        assert main(shlex.split(f"data stats {table} {flag} --quiet")) == 1
        assert f"{flag.split()[0]} is for a data set of the papers" in capsys.readouterr().err
    assert main(shlex.split("data stats nyt --quiet")) == 1
    assert "LDC2008T19" in capsys.readouterr().err
