from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support import write_jsonl

from benchmarks.datasets import CitationBenchmark, load_benchmark
from benchmarks.datasets.citations import plain_text
from simlte_st.errors import DataError, EmptyCorpusError

LINES = {
    "train": [
        '1.0\tP01\tP02\tb\'One\\n"paper"\\xc3\\xa9\'\tPlain "text, of P02',
        "0.0\tP01\tP03\tb'One\\n\"paper\"\\xc3\\xa9'\tText of P03",
        '1\tP04\tP02\t\tPlain "text, of P02',
        "2.0\tP01\tP02\ta\tb",
        "1.0\tP01\tP02",
        "",
    ],
    "eval": ['0\tP02\tP05\tPlain "text, of P02\tText of P05'],
    "test": ["1.0\tP06\tP01\tText of P06\tnever looked at", "1.0\tP06\tP02\tText of P06\tsame"],
}


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    folder = tmp_path / "tsv_data"
    folder.mkdir()
    for split, lines in LINES.items():
        (folder / f"new_aan_pairs.{split}.tsv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder


def rows(benchmark: CitationBenchmark) -> list[tuple[str, str, int, str]]:
    return [(row["citing"], row["cited"], row["label"], row["split"]) for row in benchmark.pairs]


def test_the_arenas_files(arena: Path) -> None:
    for place in (arena, arena / "new_aan_pairs.train.tsv"):
        benchmark = load_benchmark("aan", place)
        assert rows(benchmark) == [
            ("P01", "P02", 1, "train"),
            ("P01", "P03", 0, "train"),
            ("P02", "P05", 0, "validation"),
            ("P06", "P01", 1, "test"),
            ("P06", "P02", 1, "test"),
        ]
    assert {item.id: item.text for item in benchmark.documents()} == {
        "P01": 'One\n"paper"é',
        "P02": 'Plain "text, of P02',
        "P03": "Text of P03",
        "P05": "Text of P05",
        "P06": "Text of P06",
    }
    assert benchmark.report.skipped == {"empty": 1, "label neither 0 nor 1": 1, "wrong number of fields": 1}
    assert benchmark.report.ignored == {"blank line": 1, "pair of which a text is missing": 1}
    assert [row["cited"] for row in benchmark.links] == ["P02", "P01", "P02"]
    assert [row["citing"] for row in benchmark.part("test")] == ["P06", "P06"]
    assert benchmark.split_origin == "of the data set"


def test_bytes_as_text() -> None:
    assert plain_text("b'a\\n'") == "a\n"
    assert plain_text('b"it\'s"') == "it's"
    assert plain_text("b'\\xff'") == "�"
    for text in ("plain", "b'cut", "b", "b'a' + b'b'", "b'\\x'", "'b'"):
        assert plain_text(text) == text


def links(tmp_path: Path, number: int = 40) -> Path:
    """Papers p0, p1, ...: each but the first few cites a popular one and its predecessor."""
    folder = tmp_path / "papers"
    folder.mkdir()
    papers = [{"id": f"p{n}", "text": f"Text {n}."} for n in range(number)]
    cites = [(f"p{n}", f"p{m}") for n in range(4, number) for m in (n % 3, n - 1)]
    cites += [cites[0], ("p5", "p5"), ("p9", "nowhere")]
    write_jsonl(folder / "aan_papers.jsonl", papers)
    (folder / "aan_citations.csv").write_text("citing_id,cited_id\n" + "".join(f"{a},{b}\n" for a, b in cites))
    return folder


def test_papers_and_links(tmp_path: Path) -> None:
    benchmark = load_benchmark("aan", links(tmp_path))
    found = rows(benchmark)
    true = {(a, b) for a, b, label, _ in found if label}
    false = [(a, b) for a, b, label, _ in found if not label]
    assert len(benchmark) == 40
    assert len(true) == len(benchmark.links) == len(false) == 72
    assert not true & set(false)
    assert not true & {(b, a) for a, b in false}
    assert all(a != b for a, b in false)
    # each citing paper is on one side, with as many pairs of either kind
    sides: dict[str, set[str]] = {}
    for a, _, _, split in found:
        sides.setdefault(a, set()).add(split)
    assert all(len(side) == 1 for side in sides.values())
    assert Counter(next(iter(side)) for side in sides.values()) == {"train": 29, "validation": 3, "test": 4}
    assert Counter(a for a, _ in true) == Counter(a for a, _ in false)
    # a popular paper is as popular among the pairs without a link: being cited often tells nothing
    popular = {"p0", "p1", "p2"}
    assert 25 <= sum(b in popular for _, b in false) <= 47
    assert sum(b in popular for _, b in true) == 36
    assert benchmark.report.skipped == {"no link": 1}
    assert benchmark.report.ignored == {"pair of which a text is missing": 1}
    assert "seed 0" in benchmark.split_origin


def test_the_seed_decides(tmp_path: Path) -> None:
    folder = links(tmp_path)
    first = load_benchmark("aan", folder, cache_dir=tmp_path / "one")
    assert rows(first) == rows(load_benchmark("aan", folder, cache_dir=tmp_path / "two"))
    assert rows(first) != rows(load_benchmark("aan", folder, seed=1))


def test_what_it_is_not(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'aan'.*long-range-arena.*CC BY.*new_aan_pairs\.train\.tsv"):
        load_benchmark("aan")
    with pytest.raises(DataError, match="holds no 'aan'"):
        load_benchmark("aan", tmp_path)
    with pytest.raises(DataError, match="no file or folder"):
        load_benchmark("aan", tmp_path / "nowhere")
    folder = links(tmp_path)
    (folder / "aan_citations.csv").write_text("from,to\na,b\n")
    with pytest.raises(DataError, match=r"from, to; .*citing and cited"):
        load_benchmark("aan", folder)
    (folder / "aan_citations.csv").write_text("citing_id,cited_id\nx,y\n")
    with pytest.raises(EmptyCorpusError, match="no pair"):
        load_benchmark("aan", folder)
