from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.datasets import languages
from benchmarks.datasets.languages import LANGUAGES, load_language
from simlte_st.errors import DataError

TABLE = "category\theadline\ttext\turl\n" + 'sports\tA title\t"He said ""no"".\nThen he left."\t/1\nhealth\tB\t \t/2\n'


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def german(clone: Path) -> None:
    write(clone / "test.csv", "Sport;'Er sagte: ''nein''; dann ging er.'\nWeb;Ein neues Video\nEtat; \n")


def french(clone: Path) -> None:
    write(clone / "data" / "fra" / "test.tsv", TABLE)
    write(clone / "data" / "fra" / "dev.tsv", TABLE.replace("A title", "Another"))


def japanese(clone: Path) -> None:
    texts = clone / "experiments" / "text"
    write(texts / "smax" / "smax-1.txt", "http://a\n2012-09-01\n題\n本文\n二\n")
    write(texts / "smax" / "LICENSE.txt", "a\nb\nc\nd\n")
    write(texts / "peachy" / "peachy-2.txt", "http://a\n2012-09-01\n題二\n本文\n")


def chinese(clone: Path) -> None:
    for part, labels in (("train_few_all", "aab"), ("dev_few_all", "ab"), ("test_public", "c")):
        rows = [json.dumps({"content": f"{part} {row}", "label": label}) for row, label in enumerate(labels)]
        write(clone / "datasets" / "csldcp" / f"{part}.json", "\n".join(rows) + "\n")


def arabic(clone: Path) -> None:
    for label in ("Culture", "Finance", "Medical", "Politics", "Religion", "Sports", "Tech", "Gaming"):
        write(clone / "dataset" / label / "0000.txt", f"نص {label}")
    write(clone / "dataset" / "Tech" / "1000.txt", "one of those behind the first thousand")


@pytest.mark.parametrize(
    ("name", "make", "expected"),
    [
        ("German", german, [("Er sagte: 'nein'; dann ging er.", "Sport"), ("Ein neues Video", "Web")]),
        (
            "French",
            french,
            [
                ('A title\n\nHe said "no".\nThen he left.', "sports"),
                ("B\n\n ", "health"),
                ('Another\n\nHe said "no".\nThen he left.', "sports"),
                ("B\n\n ", "health"),
            ],
        ),
        ("Japanese", japanese, [("題二\n本文\n", "peachy"), ("題\n本文\n二\n", "smax")]),
        (
            "Chinese",
            chinese,
            [("train_few_all 0", "a"), ("train_few_all 1", "a"), ("train_few_all 2", "b"), ("dev_few_all 0", "a"),
             ("dev_few_all 1", "b")],
        ),
        (
            "Arabic",
            arabic,
            [(f"نص {label}", label)
             for label in ("Culture", "Finance", "Medical", "Politics", "Religion", "Sports", "Tech")],
        ),
    ],
)  # fmt: skip
def test_documents_of_a_clone(
    name: str, make: Callable[[Path], None], expected: list[tuple[str, str]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    make(tmp_path / LANGUAGES[name].folder)
    with pytest.raises(DataError, match=f"not {LANGUAGES[name].digest}: check out the commit") as caught:
        load_language(name, tmp_path)
    digest = str(caught.value).split("digest ")[1].split(",")[0]
    classes = 2 if name == "Chinese" else LANGUAGES[name].classes
    monkeypatch.setitem(languages.LANGUAGES, name, replace(LANGUAGES[name], digest=digest, classes=classes))
    found = load_language(name, tmp_path)
    assert [(document.text, document.label) for document in found] == expected
    assert len({document.id for document in found}) == len(found)


@pytest.mark.parametrize("name", LANGUAGES)
def test_where_a_set_is_missing_the_message_has_the_command(name: str, tmp_path: Path) -> None:
    known = LANGUAGES[name]
    with pytest.raises(DataError) as caught:
        load_language(name, tmp_path)
    for part in (f"git clone https://github.com/{known.repository} {tmp_path}", known.commit, known.licence):
        assert part in str(caught.value)
