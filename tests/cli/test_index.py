from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import write_jsonl

from simlte_st.cli.main import main
from simlte_st.data import Document
from simlte_st.search import Index


@pytest.fixture
def index(documents: list[str], encoder_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    source, folder = tmp_path / "source.csv", tmp_path / "index"
    with source.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "body", "year", "Price (EUR)"])
        rows.writerows([f"d{number}", text, 2000 + number, number / 2] for number, text in enumerate(documents[:8]))
    assert main(shlex.split(f"index {encoder_path} {source} --output {folder} --parts --quiet")) == 0
    out, err = capfd.readouterr()
    assert out == "", "nothing failed"
    assert "WARN" not in err, "LanceDB's own log"
    return folder


def run(command: str, capfd: pytest.CaptureFixture[str], status: int = 0) -> tuple[str, str]:
    assert main(shlex.split(command)) == status
    captured = capfd.readouterr()
    assert "WARN" not in captured.err
    return captured.out, captured.err


def test_search_table_fits_the_terminal(
    index: Path, documents: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out, _ = run(f"search {index} '{documents[3][:50]}' --explain --where 'year > 2001 AND Price__EUR_ < 3'", capfd)
    assert max(map(len, out.splitlines())) <= 60
    hits, _, why = out.partition("\n\n")
    ranked = re.findall(r"^ +(\d+)  (d\d)  ", hits, re.MULTILINE)
    assert ranked[0] == ("1", "d3")
    assert not re.search(r"\bd[0167]\b", out)
    assert re.findall(r"^ +(\d+)  (d\d)$", why, re.MULTILINE) == ranked, "hits first, and their reasons below"
    assert "words  " in why
    none = f"search {index} ba --where 'year = 1'"
    assert run(none, capfd)[0].startswith("No document")
    for command, status in (("search {index} ba", 0), (none, 1), ("search nowhere ba", 2), (f"link {index} d1", 0)):
        assert run(f"{command.format(index=index)} --quiet", capfd, status)[0] == ""


def test_queries_and_ids_are_read_from_stdin(
    index: Path, documents: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(*lines: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))

    search, queries = f"search {index} - --mode text --top 2", [documents[3], documents[5]]
    typed(queries[0], "", f" {queries[1]} ")
    rows = [*csv.DictReader(run(f"{search} --format csv", capfd)[0].splitlines())]
    assert [(row["query"], row["rank"]) for row in rows] == [(query, rank) for query in queries for rank in "12"]
    typed(*queries)
    out, singly = run(search, capfd)[0], [run(search.replace(" - ", f" '{query}' "), capfd)[0] for query in queries]
    assert out == "\n".join(f"query: {query}\n{own}" for query, own in zip(queries, singly, strict=True))
    typed()
    assert "Standard input contains no query" in run(search, capfd, 1)[1]
    typed(*(json.dumps({"id": name, "text": text}) for name, text in zip("ab", queries, strict=True)))
    links = map(json.loads, run(f"link {index} --each - --top-k 1 --format jsonl", capfd)[0].splitlines())
    assert [link["query"] for link in links] == ["a", "b"]
    typed("d1", "zz")
    assert re.match(r"2 documents d.* 6 .*'zz'", " ".join(run(f"index --delete - d2 --output {index}", capfd, 1)), re.S)
    assert "or ids to --delete" in run(f"index model --delete d3 --output {index}", capfd, 1)[1]


def test_title_taken_from_text_is_shown_once(
    static_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Index.create(tmp_path / "ix", static_path).add([Document("d1", "The old harbour\nShips come in the morning.")])
    out, err = run(f"search {tmp_path / 'ix'} 'ships, quaggas' --mode text", capfd)
    assert err.splitlines()[-1] == "No document contains: quaggas."
    lines = out.splitlines()
    assert lines[1].endswith("  The old harbour")
    assert lines[2] == "      Ships come in the morning."
    text = "The old pier\n=====\n\nShips come."
    Index.open(tmp_path / "ix").add([Document("d2" * 25, text)])
    lines = run(f"link {tmp_path / 'ix'} '{text}' --top-k 1", capfd)[0].splitlines()
    assert lines[2:] == ["      (identical) The old pier", "      Ships come."]


def test_words_and_static_models_do_not_import_torch(
    index: Path, static_path: Path, documents: list[str], tmp_path: Path
) -> None:
    place, texts = str(tmp_path / "static"), tmp_path / "texts.jsonl"
    write_jsonl(texts, [{"id": f"d{number}", "text": text} for number, text in enumerate(documents)])
    code = (
        "import sys\n"
        "from simlte_st.cli.main import main\n"
        f"for _ in 'ab': assert main(['index', {str(static_path)!r}, {str(texts)!r}, '--output', {place!r}]) == 0\n"
        f"assert main(['search', {str(index)!r}, {documents[3][:50]!r}, '--mode', 'text']) == 0\n"
        f"assert main(['search', {place!r}, {documents[4][:50]!r}, '--mode', 'dense', '--explain']) == 0\n"
        f"assert main(['link', {place!r}, {documents[6][:120]!r}, '--top-k', '1']) == 0\n"
        "heavy = {'torch', 'transformers.models.bert', 'sentence_transformers', 'datasets', 'peft'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert re.findall(r"^ +1  (d\d+) +\S", found.stdout, re.MULTILINE) == ["d3", "d4", "d6"]


def test_hits_are_written_to_files(index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, _ = run(f"link {index} d2 --top-k 3 --format jsonl --explain", capfd)
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 3
    assert {"id", "score", "cosine", "bm25", "passage", "year", "Price__EUR_", "sentences", "words"} <= set(rows[0])
    seeds = write_jsonl(tmp_path / "seeds.jsonl", run_seeds(index))
    file, links, table = tmp_path / "hits.jsonl", tmp_path / "links.jsonl", tmp_path / "hits.csv"
    run(f"link {index} d2 --top-k 3 --output {file}", capfd)
    assert [row["id"] for row in rows_of(file)] == [row["id"] for row in rows]
    run(f"link {index} d2 --top-k 3 --output {table}", capfd)
    [first, *_] = cells = [*csv.DictReader(table.open())]
    assert [cell["id"] for cell in cells] == [row["id"] for row in rows]
    assert (first["rank"], float(first["cosine"]), first["year"]) == ("1", rows[0]["cosine"], str(rows[0]["year"]))
    assert " ".join([*first][:9]) == "rank id score cosine bm25 reranked identical title passage"
    assert "6 hits of 2 queries" in run(f"link {index} --each {seeds} --top-k 3 --output {links}", capfd)[1]
    assert [row["query"] for row in rows_of(links)] == ["s2"] * 3 + ["s5"] * 3
    assert [(row["id"], row["identical"]) for row in rows_of(links)[:2]] == [("d2", True), (rows[0]["id"], False)]
    assert "must end in .csv or .jsonl" in run(f"search {index} ba --output {tmp_path / 'x'}", capfd, 1)[1]


def run_seeds(index: Path) -> list[dict[str, str]]:
    return [{"id": f"s{row}", "text": Index.open(index).documents([f"d{row}"])[0].text} for row in (2, 5)]


def rows_of(file: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, file.open()))


def test_changed_sources(
    index: Path, documents: list[str], encoder_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "less.jsonl"
    rows = [{"id": f"d{number}", "text": documents[number], "year": "unknown"} for number in range(3)]
    source.write_text("\n".join(map(json.dumps, rows)))
    command = f"index {encoder_path} {source} --output {index} --parts --sync --quiet"
    out, _ = run(command, capfd)
    assert re.search("0 .*added, 3 replaced, 5 removed, 0 .*; 0 texts", out)
    assert re.search(r"dropped values .*year \(3\)", out)
    values = json.loads(run(f"{command} --json", capfd)[0])
    assert (values["added"], values["unchanged"], values["read"]["documents"]) == (0, 3, 3)


def test_hits_are_reranked_by_another_model(
    index: Path, documents: list[str], encoder_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, _ = run(f"search {index} '{documents[3][:50]}' --rerank {encoder_path} --top-k 3 --explain", capfd)
    assert re.match(r"^rank +id +cosine +bm25 +rerank$", out.splitlines()[0])
    assert len(re.findall(r"^ +\d  d\d  ( +-?\d\.\d+){3}  ", out, re.MULTILINE)) == 3
