from __future__ import annotations

import numpy as np

from simlte_st.exploration.outliers import emptiness, find_outliers


def test_what_looks_empty() -> None:
    assert emptiness("ok") == "2 letters"
    assert emptiness("1 2 3 4 5 6 7 8 9 " * 200 + "a few letters at the end of it all") == "0% letters"
    assert emptiness("same words again " * 60) == "3 different of 180 words"
    assert emptiness("A sentence with enough letters to be one.") == ""
    assert emptiness("中文文本" * 10) == ""
    assert emptiness("हिन्दी में लिखा हुआ पाठ, जिसमें कई मात्राएँ हैं।") == ""
    assert emptiness("ひらがなだけで かいた ながい ぶんしょうです。" * 3) == ""


def test_kinds_of_outliers() -> None:
    texts = [f"This is the text of a document: {'word ' * number}number {number}" for number in range(12)]
    texts.append("Это другое письмо по-русски")
    cosines = np.full((13, 3), 0.8, dtype=np.float32)
    cosines[4] = 0.1
    far, longest, shortest, language, empty = find_outliers(texts, cosines)
    assert far.rows[0] == 4
    assert far.notes[0] == "mean cosine 0.10"
    assert (longest.rows[0], longest.notes[0]) == (11, "20 words")
    assert (shortest.rows[0], shortest.notes[0]) == (12, "4 words")
    assert (language.rows, language.total) == ([12], 1)
    assert language.notes[0].startswith("ru, probability 0.")
    assert "the language en" in language.about
    assert (empty.rows, empty.total) == ([], 0)
