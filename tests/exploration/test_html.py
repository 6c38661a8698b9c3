from __future__ import annotations

import re

from support import make_document

from simlte_st.exploration.html import MAX_COMPARED, difference, duplicates_section
from simlte_st.views.duplicates import find_duplicates


def test_duplicate_groups_show_differences() -> None:
    texts = [make_document(number) for number in range(8)]
    corpus = [*texts, f"{texts[2]} More.", texts[5].upper(), *(f"{texts[0]} {word}" for word in "abcdefg")]
    html = duplicates_section(find_duplicates(corpus), 0.75, corpus, "<a>{}</a>".format)
    sizes = re.findall('<h3><a>([0-9]+)</a> <span class="number">([0-9]+) documents</span>', html)
    assert sizes == [("0", "8"), ("2", "2"), ("5", "2")], "the largest group first"
    assert re.findall("<ins>([^<]*)</ins>", html)[:6] == [*"abcde", "More."]
    assert f"and {7 - MAX_COMPARED} more" in html
    assert '<span class="number">100.0%</span><div class="difference"><del>' in html, "in other letters"
    assert "Just below" not in html
    words = [f"w{number}" for number in range(3_000)]
    pair = " ".join(words), " ".join([*words[:2_200], "new"])
    below = duplicates_section(find_duplicates(pair), 0.75, pair, "<a>{}</a>".format)
    assert '<a>0</a> and <a>1</a> <span class="number">73.3%</span>' in below
    assert "w2199 <del>w2200" in below, "the first difference, however late"


def test_differences_show_words_in_context() -> None:
    words = [f"w{number}" for number in range(60)]
    other = [*words[:30], "changed", *words[31:]]
    around = " ".join(words[24:30]), " ".join(words[31:37])
    assert difference(" ".join(words), " ".join(other)) == f"{around[0]} <del>w30</del> <ins>changed</ins> {around[1]}"
    assert difference("one two", "one\n two") == "the same words"
    assert difference("", "a <b>") == "<ins>a &lt;b&gt;</ins>"
    most = [f"w{number}" for number in range(400)]
    every = [f"{word} x{number}" if number % 20 == 0 else word for number, word in enumerate(most)]
    many = difference(" ".join(every), " ".join(most))
    assert many.count("<del>") == 8 == many.count(" … ") + 1
    assert "<del>天</del>" in difference("今天很好", "今很好")
