from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.datasets import load_benchmark
from benchmarks.datasets.arxiv import ARCHIVES

PAPERS: list[dict[str, Any]] = [
    {"id": "0704.0001", "title": "Of\n  Quarks", "abstract": "  We count\nquarks.\n", "categories": "hep-ph"},
    {"id": "0704.0002", "title": "Graphs", "abstract": "Trees.", "categories": "math.CO cs.CG"},
    {"id": "cmp-lg/9404001", "title": "Parsing", "abstract": "Words.", "categories": "cmp-lg cs.CL"},
    {"id": "0704.0004", "title": "Lists", "abstract": "Both.", "categories": ["cs.CL math.CO"]},
    {"id": "0704.0005", "title": "Unknown", "abstract": "Of no archive.", "categories": "magic.XX"},
    {"id": "0704.0006", "title": "", "abstract": " \n", "categories": "cs.AI"},
    {"id": "0704.0007", "title": "None", "abstract": "Without.", "categories": None},
]  # fmt: skip


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "arxiv-metadata-oai-snapshot.json"
    path.write_text("".join(json.dumps(paper) + "\n" for paper in PAPERS) + '{"id": "cut\n')
    return path


def test_the_snapshot(snapshot: Path) -> None:
    for place in (snapshot, snapshot.parent):
        benchmark = load_benchmark("arxiv", place)
        assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [
            ("0704.0001", "Of Quarks\n\nWe count quarks.", "hep-ph"),
            ("0704.0002", "Graphs\n\nTrees.", "math"),
            ("cmp-lg/9404001", "Parsing\n\nWords.", "cmp-lg"),
            ("0704.0004", "Lists\n\nBoth.", "cs"),
            ("0704.0007", "None\n\nWithout.", None),
        ]
        assert benchmark.report.skipped == {"unknown label": 1, "empty": 1, "malformed JSON": 1}


def test_a_packed_snapshot(snapshot: Path) -> None:
    packed = snapshot.with_name("arxiv-metadata-oai-snapshot.json.gz")
    packed.write_bytes(gzip.compress(snapshot.read_bytes()))
    snapshot.unlink()
    assert len(load_benchmark("arxiv", packed.parent)) == 5


def test_a_plain_table_has_its_own_classes(tmp_path: Path) -> None:
    path = tmp_path / "abstracts.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "text": ["One.", "Two."], "label": ["q-bio.QM", "q-fin.ST"]}), path)
    assert set(load_benchmark("arxiv", path).rows["label"][:]) == {"q-bio.QM", "q-fin.ST"}


def test_the_papers_number_of_classes() -> None:
    assert len(ARCHIVES) == 38
