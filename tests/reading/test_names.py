"""Names of documents and classes: equal values have one name."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from simlte_st.data import read_documents
from simlte_st.reading.document import UntypedText, to_name


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
        (datetime.date(2024, 1, 15), "2024-01-15"),
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
