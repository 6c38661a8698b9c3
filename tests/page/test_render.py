from __future__ import annotations

from simlte_st.page.render import MAX_TEXT, highlight, hit_html, metadata_html
from simlte_st.search import Hit


def test_text_is_escaped() -> None:
    assert highlight("<b>a & \"b\"</b> 'c'") == "&lt;b&gt;a &amp; &quot;b&quot;&lt;/b&gt; &#x27;c&#x27;"
    assert highlight("amp & lt", words=["amp"]) == "<b>amp</b> &amp; lt"


def test_sentences_match_across_lines_without_overlap() -> None:
    text = "One two.\r\n Three\nfour. Five."
    assert highlight(text, ["Three four."]) == "One two.\r\n <mark>Three\nfour.</mark> Five."
    assert highlight("a b c d", ["b c", "a b"]) == "<mark>a b</mark> c d"
    assert highlight("x (a.b) x", ["(a.b)", "absent", " "]) == "x <mark>(a.b)</mark> x"
    assert highlight("<i> <i>", ["<i>"], ["i"]) == " ".join(["<mark>&lt;<b>i</b>&gt;</mark>"] * 2)


def test_whole_words_are_marked_in_any_case() -> None:
    assert highlight("Ba bab BA-été", words=["ba", "été"]) == "<b>Ba</b> bab <b>BA</b>-<b>été</b>"
    shown = highlight("A b: https://b.org/x/a?b c", words=["a", "b"])
    assert shown == "<b>A</b> <b>b</b>: https://<b>b.org/x/a?b</b> c", "a URL has one mark"


def test_metadata_is_escaped_and_shortened() -> None:
    values = {"year": 2010, "none": None, "empty": "", "<k>": "<v>", "long": "word " * 100, "spaces": " " * 500}
    shown = metadata_html(values)
    assert "<span>year: 2010</span> · <span>&lt;k&gt;: &lt;v&gt;</span> · <span>long: word word" in shown
    assert not any(name in shown for name in ("none", "empty"))
    assert len(shown) < 400


def test_hit_shows_scores_metadata_and_passage() -> None:
    hit = Hit("<id>", 1.0, 0.5, 2.0, "beginning", "The <passage>. " * 99, {"k": "<v>"}, (("The <passage>.", 0.25),))
    html = hit_html(hit, 3)
    for part in (">3<", "&lt;id&gt;", "cosine 0.500", "BM25 2.0", "k: &lt;v&gt;", "<mark>The &lt;passage&gt;.</mark>"):
        assert part in html
    assert "0.250</span> The &lt;passage&gt;." in html
    assert not any(part in html for part in ("beginning", "Shared words"))
    assert len(html) < 3 * MAX_TEXT + 1000
    assert "cosine" not in hit_html(Hit("a", 1.0, None, None, "beginning"), 1)
