"""Ids and labels as text, titles, and the types of columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from simlte_st.data import Document, read_documents
from simlte_st.reading.document import UntypedText, collect_columns, document_titles, to_name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (10, "10"),
        (10.0, "10"),
        (np.float32(10), "10"),
        (Decimal("10.00"), "10"),
        (UntypedText("10.0"), "10"),
        (UntypedText("-3.00"), "-3"),
        (UntypedText("007.0"), "007.0"),
        (UntypedText("1.10"), "1.10"),
        ("10.0", "10.0"),
        (0.5, "0.5"),
        (float("inf"), "inf"),
        (True, "True"),
        (np.bool_(True), "True"),
        (UntypedText("TRUE"), "True"),
        (UntypedText("false"), "False"),
        ("true", "true"),
        ("Ma\u0308rz\ud800", "M\xe4rz\ufffd"),
        (date(2024, 1, 15), "2024-01-15"),
        (None, None),
        (float("nan"), None),
        (" ", None),
    ],
)
def test_equal_values_have_the_same_name(value: Any, name: str | None) -> None:
    assert to_name(value) == name


def test_file_ids_are_unicode_normalised(tmp_path: Any) -> None:
    names = []
    for form in ("M\xe4rz", "Ma\u0308rz"):
        folder = tmp_path / str(len(form))
        folder.mkdir()
        (folder / f"{form}.txt").write_text("Ba bei.")
        names.append([document.id for document in read_documents(folder)])
    assert names[0] == names[1] == ["M\xe4rz.txt"]


def documents(**columns: list[Any]) -> list[Document]:
    count = len(next(iter(columns.values())))
    return [
        Document(str(n), f"Text {n}", metadata={name: values[n] for name, values in columns.items()})
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "number"),
        (["1", "2.5", ""], "number"),
        ([float("nan"), 1, 2], "number"),
        ([date(2020, 1, 1), datetime(2021, 1, 1, tzinfo=UTC), None], "date"),
        (["2020-01-01", "2020-02-01T10:00:00", None], "date"),
        (["a", "b", "a"], "category"),
        ([True, False, True], "category"),
        (["a", "b", "c"], "text"),
        (["a", "a", "a"], "text"),
        ([None, None, None], "text"),
        ([["a"], {"b": 1}, 2], "text"),
        (["1", "inf", "2"], "text"),
        ([10**309, -(10**4000), 10**308 * 17], "text"),
        (["n/a", *map(str, range(19))], "number"),
        (["31.12.2020", *(f"2020-01-{day:02d}" for day in range(1, 20))], "date"),
        (["n/a", "none", *map(str, range(10))], "text"),
        ([f"label {number % 50}" for number in range(60)], "category"),
    ],
)
def test_column_kinds(values: list[Any], kind: str) -> None:
    [column] = collect_columns(documents(column=values))
    assert column.kind == kind
    assert all(isinstance(shown, str) for shown in column.short_values())
    assert len(column.to_arrow()) == len(values)


def test_dates_are_seconds() -> None:
    [column] = collect_columns(documents(day=["1970-01-02", None]))
    assert list(column.numbers) == [86_400.0, None]


def test_titles() -> None:
    corpus = documents(Title=["One <b>", "", "Three"], other=["x", "y", "z" * 500])
    columns = collect_columns(corpus)
    assert document_titles(corpus, columns) == ["One <b>", "Text 1", "Three"]
    assert document_titles(corpus, columns, "other")[0] == "x"
    assert len(document_titles(corpus, columns, "other")[2]) == 120
    titles = {
        "\n\n The first line \nsecond": "The first line",
        "Hello,\n\nwho knows the way?\nThanks": "Hello, who knows the way?", "12\n34": "12 34",
        "- Feature: `x`\n- Date: 2024\n\n## Summary\n[a]: #a\n\n===\nAdd [a type](b.md).\n\n## Why\n": "Add a type.",
        "- Feature: `x`\n\n# The **x** type\n\n## Summary\n```\n# code\n```\n": "The **x** type",
        "Updated: May\n![](a.png)\n======\nTerms of Use\n======\n\nText.\n\nScope\n---\n": "Terms of Use",
        "# Privacy\n\n# Scope\n": "Privacy",
        "PEP: 8\nTitle: Style Guide\nAuthor: A\n  B\n\nText\n====\n": "Style Guide",
        "From: a@b\nSubject: Re: floods\n\nHi": "Re: floods", "Rust: the book\nText.": "Rust: the book",
        "* * *": "* * *", "---\ntitle: \"Floods\"\n---\n# North": "Floods", "---\ntags: [a]\n---\n# North": "North",
    }  # fmt: skip
    assert {text: document_titles([Document("a", text)], [])[0] for text in titles} == titles
