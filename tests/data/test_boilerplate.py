"""Lines that many documents share: which count, what is left without them, and what the report tells."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simlte_st.cli.main import main
from simlte_st.data import boilerplate as module
from simlte_st.data.boilerplate import Boilerplate
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.shards import Reading, open_shards
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError

FOOTER = "Unsubscribe at  example.com, page 7"


def pages(number: int = 40, shared: int | None = None) -> list[str]:
    """Return documents the first of which end in one line, with other numbers, white space and case."""
    shared = number if shared is None else shared
    texts = [f"Document {'x' * row} is by itself.\n\nIt rains in {'y' * row}." for row in range(1, number + 1)]
    footers = [f"{FOOTER}7", FOOTER.upper(), FOOTER.replace("  ", "\t "), f"  {FOOTER}\r"]
    return [f"{text}\n{footers[row % 4]}" if row < shared else text for row, text in enumerate(texts)]


@pytest.mark.parametrize(("number", "shared", "found"), [(40, 40, 40), (40, 5, 5), (60, 6, 0), (70, 8, 8), (12, 4, 0)])
def test_lines_in_more_than_a_tenth_of_the_documents_are_left_out(number: int, shared: int, found: int) -> None:
    reader = read_documents(pages(number, shared), drop_boilerplate=True)
    for _ in range(2):  # it can be read again
        texts = [document.text for document in reader]
        plain = pages(number, 0)
        assert texts == (plain if found else pages(number, shared))
        assert reader.report.left_out == ({"boilerplate": found} if found else {})
    if found:
        assert f"{found} with boilerplate (first: " in reader.report.summary()
        assert f": {FOOTER + '7'!r})" in reader.report.summary()


def test_copies_of_a_document_are_no_boilerplate() -> None:
    texts = [*pages(20, 0), *["A line.\nAnother line."] * 30]
    reader = read_documents(texts, drop_boilerplate=True)
    assert [document.text for document in reader] == texts
    assert reader.report.left_out == {}
    told = read_documents(texts)
    assert len(list(told)) == 50
    assert "drop_boilerplate" not in told.report.summary()


def test_what_is_kept_stays_as_it_is() -> None:
    common = Boilerplate([f"  code()\n\n\n\nshared\nnumber {'i' * row}" for row in range(1, 21)])
    text = "  first()\n\n    then()\n\n\n\nnot shared"
    assert common.split(text) == (text, [])
    assert common.split("  first()\nSHARED\n\n\n\n  then()\nshared") == ("first()\n\n  then()", ["SHARED", "shared"])
    assert common.split("\n\n") == ("\n\n", []), "blank lines are in all documents"


def test_a_document_of_nothing_else_is_skipped_and_counted() -> None:
    reader = read_documents([*({"id": str(n), "text": text} for n, text in enumerate(pages())), {"text": FOOTER}],
                            drop_boilerplate=True)  # fmt: skip
    assert len(list(reader)) == 40
    assert reader.report.skipped == {"nothing but boilerplate": 1}
    with pytest.raises(EmptyCorpusError, match="10 nothing but boilerplate"):
        list(read_documents([Document(str(n), f"{FOOTER}{n}") for n in range(10)], drop_boilerplate=True))


def test_a_line_counts_once_a_document() -> None:
    texts = [30 * "a line\n" + row * "x" for row in range(1, 5)] + [f"something {row * 'y'}" for row in range(16)]
    assert Boilerplate(texts).split("a line\nrest") == ("a line\nrest", [])


def test_lines_that_share_a_place_in_one_table_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the second table about two lines in five would take the place of a frequent one."""
    monkeypatch.setattr(module, "_COUNTERS", 1 << 10)
    frequent = "\n".join(f"frequent {'f' * row}" for row in range(1, 41))
    common = Boilerplate([f"{frequent}\n{row * 'x'}" for row in range(30)])
    rare = [f"rare {'r' * row}" for row in range(1, 401)]
    first = [sum(place == 0 for place in table) / len(table) for table in common._counts]
    assert all(share < 0.97 for share in first)
    assert sum(common.split(line)[1] != [] for line in rare) <= 4
    assert common.split(frequent)[0] == ""


def test_memory_does_not_grow_with_the_lines() -> None:
    names = ["".join(map(chr, row)) for row in np.random.default_rng(0).integers(97, 123, size=(15_000, 12))]
    common = Boilerplate("\n".join([*names[row : row + 50], "shared"]) for row in range(0, 15_000, 50))
    assert sum(value.nbytes for value in vars(common).values() if isinstance(value, np.ndarray)) == 1 << 25
    assert common.split("shared\nrest") == ("rest", ["shared"])


def test_the_report_tells_how_much_of_the_words_it_is() -> None:
    texts = [f"one two three {'x' * row}\nAll rights are reserved" for row in range(1, 31)]
    reader = read_documents(texts)
    assert [document.text for document in reader] == texts, "nothing is left out unasked"
    assert reader.report.boilerplate == (
        "50% of the words of the first 30 documents are lines that stand in more than a tenth of them, such as "
        "'all rights are reserved': drop_boilerplate=True leaves them out"
    )
    assert reader.report.boilerplate in reader.report.summary()
    assert reader.report.to_dict()["boilerplate"]
    for few in (texts[:19], [f"{'word ' * 99}{text}" for text in pages()], pages(40, 0)):
        reader = read_documents(few)
        list(reader)
        assert reader.report.boilerplate == ""
    reader = read_documents(texts, drop_boilerplate=True)
    list(reader)
    assert reader.report.boilerplate == ""


def test_only_the_first_documents_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SAMPLED", 25)
    reader = read_documents(pages())
    list(reader)
    assert "of the first 25 documents" in reader.report.summary()


def test_an_iterator_is_an_error_and_so_is_a_reader_that_was_made_without() -> None:
    with pytest.raises(DataError, match=r"only once: drop_boilerplate=True.*list"):
        read_documents(iter(pages()), drop_boilerplate=True)
    with pytest.raises(ConfigurationError, match="read as it was made"):
        read_documents(read_documents(pages()), drop_boilerplate=True)


def test_with_a_limit_only_those_documents_count() -> None:
    texts = [*pages(10, 0), *pages(40)]
    reader = read_documents(texts, drop_boilerplate=True, limit=12)
    assert [document.text for document in reader] == texts[:12]


def test_a_file_that_breaks_off_is_told_after_the_documents_before_it(tmp_path: Path) -> None:
    data = "".join(json.dumps({"text": text}) + "\n" for text in pages())
    (tmp_path / "a.jsonl").write_bytes(data.encode("utf-16")[:-1])
    reader = read_documents(tmp_path / "a.jsonl", drop_boilerplate=True)
    found = []
    with pytest.raises(DataError, match="document"):
        found.extend(reader)
    assert [document.text for document in found][:9] == pages(9, 0)


def test_folders_and_mails(tmp_path: Path) -> None:
    for row, text in enumerate(pages(20)):
        (tmp_path / f"{row:02}").write_text(f"From: a@b.c\nSubject: {'s' * row}\nX-List: same\n\n{text}")
    texts = [document.text for document in read_documents(tmp_path, mails=True, drop_boilerplate=True)]
    assert texts == [f"{'s' * row}\n\n{text}".strip() for row, text in enumerate(pages(20, 0))]


def test_shards_of_a_stream(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pages(40)}), tmp_path / "a.parquet")
    shards = open_shards(tmp_path).without_boilerplate([0])
    reading = Reading(shards, [0])
    assert [document.text for document in reading] == pages(40, 0)
    assert [document.text for document in Reading(shards, [0], 0, 30)] == pages(40, 0)[30:], "wherever it begins"


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in pages()))
    assert main(["dedupe", str(source), "--output", str(output), "--exact", "--quiet"]) == 0
    assert "--drop-boilerplate leaves them out" in " ".join(capsys.readouterr().err.split())
    assert main(["dedupe", str(source), "--output", str(output), "--exact", "--overwrite", "--drop-boilerplate"]) == 0
    assert [json.loads(line)["text"] for line in output.read_text().splitlines()] == pages(40, 0)
    assert "40 with boilerplate" in capsys.readouterr().err
