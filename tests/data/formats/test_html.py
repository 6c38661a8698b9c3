"""HTML files: what of them is text, in which encoding, and what cannot be read is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_texts import texts as odd_texts
from reading_support import page, texts

from simlte_st.data.documents import read_documents
from simlte_st.errors import EmptyCorpusError


def skipped(folder: Path, **settings: int) -> dict[str, int]:
    reader = read_documents(folder, **settings)  # type: ignore[arg-type]
    list(reader)
    return reader.report.skipped


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>The <b>c</b>at\n   <i>sat</i>&nbsp;&amp; ate.</p>", "The cat sat\xa0& ate."),
        ("<h1>A</h1>\n<p>b<br>c</p><ul><li>d</li><li>e</li></ul>f", "A\n\nb\nc\n\nd\n\ne\n\nf"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a  b\n\nc"),
        ("<nav>Home</nav><p>a</p><script>var b</script><style>c</style><!-- d --><svg><text>e</text></svg>f", "a\n\nf"),
        ("<pre>one\n  two</pre>three\nfour", "one\ntwo\n\nthree four"),
        ("<p>not closed <b>at <i>all", "not closed at all"),
        ("a < b &unknown; <foo>c</foo>", "a < b &unknown; c"),
    ],
)
def test_html_is_what_a_reader_sees(tmp_path: Path, body: str, expected: str) -> None:
    (tmp_path / "a.html").write_text(page(body))
    assert texts(tmp_path / "a.html") == [expected]
    (tmp_path / "a.html").write_text(body)
    assert texts(tmp_path / "a.html") == [expected], "without a frame around it"


def test_encodings_of_html(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for declared, used in (("utf-8", "utf-8"), ("ISO-8859-1", "cp1252"), ("koi8-r", "koi8-r"), ("nonsense", "utf-8")):
        text = "дом" if used == "koi8-r" else "“café”"
        for head in (f'<meta charset="{declared}">', f"<META http-equiv=x content='text/html; charset={declared}'>"):
            path.write_bytes(page(text, head).encode(used))
            assert texts(path) == [text]
    path.write_bytes(page("café").encode("latin-1"))
    assert texts(path, encoding="latin-1") == ["café"]
    with pytest.raises(EmptyCorpusError, match=r"wrong encoding .*\n.*encoding="):
        texts(path)
    path.write_bytes(page("Ωmega", '<meta charset="latin-1">').encode("utf-16"))
    assert texts(path) == ["Ωmega"], "a byte order mark goes first"
    path.write_text(
        '<?xml version="1.0" encoding="latin-1"?><html xmlns="http://www.w3.org/1999/xhtml"><p>é</p></html>'
    )
    assert texts(path) == ["é"]


def test_odd_html_is_counted(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 9_000 + "lost" + "</div>" * 9_000)
    (tmp_path / "long.html").write_text(page("word " * 1000))
    (tmp_path / "large.html").write_text(page("<b></b>" * 200_000))
    (tmp_path / "binary.html").write_bytes(b"<p>\0\0</p>")
    (tmp_path / "empty.html").write_text("")
    (tmp_path / "tags.html").write_text(page("<br>"))
    (tmp_path / "good.html").write_text(page("good"))
    found = skipped(tmp_path, max_characters=1000)
    assert found == {"damaged": 1, "too long": 2, "binary": 1, "empty": 2}


@settings(deadline=None, max_examples=30, derandomize=True)
@given(rows=st.lists(odd_texts, min_size=1, max_size=4))
def test_any_html_is_a_document_or_counted(rows: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.html"
    path.write_text("<p>".join(rows), encoding="utf-8", errors="surrogatepass")
    try:
        (text,) = texts(path)
    except EmptyCorpusError:
        return
    assert text.strip()
