from __future__ import annotations

import numpy as np
import pytest

from simlte_st.exploration.outliers import emptiness, find_outliers, main_script


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Hello, world", "LATIN"),
        ("Привет, мир and", "CYRILLIC"),
        ("これは日本語です", "CJK"),
        ("中文", "CJK"),
        ("नमस्ते", "DEVANAGARI"),
        ("한국어", "HANGUL"),
        ("שלום", "HEBREW"),
        ("12 34 !?", ""),
        ("", ""),
    ],
)
def test_the_script_of_most_letters(text: str, script: str) -> None:
    assert main_script(text) == script


def test_what_looks_empty() -> None:
    assert emptiness("ok") == "2 letters"
    assert emptiness("1 2 3 4 5 6 7 8 9 " * 200 + "a few letters at the end of it all") == "0% letters"
    assert emptiness("same words again " * 60) == "3 different of 180 words"
    assert emptiness("A sentence with enough letters to be one.") == ""
    assert emptiness("中文文本" * 10) == ""


def test_kinds_of_outliers() -> None:
    texts = ["word " * (20 + number) + f"unlike {number}" for number in range(12)] + ["Это другое письмо, оно длинное"]
    cosines = np.full((13, 3), 0.8, dtype=np.float32)
    cosines[4] = 0.1
    far, longest, shortest, script, empty = find_outliers(texts, cosines)
    assert far.rows[0] == 4
    assert far.notes[0] == "mean cosine 0.10"
    assert (longest.rows[0], longest.notes[0]) == (11, "33 words")
    assert (shortest.rows[0], shortest.notes[0]) == (12, "5 words")
    assert (script.rows, script.notes, script.total) == ([12], ["Cyrillic"], 1)
    assert "Latin letters" in script.about
    assert (empty.rows, empty.total) == ([], 0)
