"""Render documents and hits as HTML and labels; every text of a document or a query is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from simlte_st.search import Hit
from simlte_st.search.hits import shorten

MAX_TEXT = 600
"""Maximum number of characters of a document's beginning or best passage in a hit."""

COSINE = "Similarity in meaning: 1 is the same, about 0 is unrelated. The scale depends on the model."
BM25 = "Weight of the query's words in the text; rare words count more. The scale depends on the query."

_MAX_VALUE = 120  # characters of a metadata value
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_SYMBOL = re.compile(r"[-<>=~](?=[-<>=])|:(?=streamlit:)")  # Streamlit replaces these even if escaped

_ADDRESS = re.compile(r"(https?://[^\s<>\"']+)")


def highlight(text: str, sentences: Iterable[str] = (), words: Sequence[str] = ()) -> str:
    """Return a text as HTML with the sentences and words marked."""
    patterns = [r"\s+".join(map(re.escape, sentence.split())) for sentence in sentences]
    html, offset = "", 0
    spans = (match.span() for pattern in filter(None, patterns) for match in re.finditer(pattern, text))
    for start, end in sorted(spans):
        if start >= offset:
            html += f"{_mark_words(text[offset:start], words)}<mark>{_mark_words(text[start:end], words)}</mark>"
            offset = end
    return html + _mark_words(text[offset:], words)


def _mark_words(text: str, words: Sequence[str]) -> str:
    if not words:
        return escape(text)
    word = rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)"
    html = ""
    for number, part in enumerate(_ADDRESS.split(text)):
        repeated = rf"(?:.*{word})?" if number % 2 else ""  # all words of an address get one mark
        pieces = re.split(rf"(?i)({word}{repeated})", part)
        html += "".join(f"<b>{escape(piece)}</b>" if place % 2 else escape(piece) for place, piece in enumerate(pieces))
    return html


def metadata_html(metadata: Mapping[str, object], title: str | None = None) -> str:
    """Return metadata as one line of HTML, without the title and missing values, with URLs as links."""
    items = ((name, str(value)) for name, value in metadata.items() if name != title and value not in (None, ""))
    return " · ".join(f"<span>{escape(name)}: {_link_address(value)}</span>" for name, value in items)


def _link_address(value: str) -> str:
    html = escape(shorten(value, _MAX_VALUE))
    return f'<a href="{escape(value)}" target="_blank">{html}</a>' if _ADDRESS.fullmatch(value) else html


def as_label(text: str) -> str:
    """Escape Markdown and Streamlit's symbols in a label."""
    return _SIGN.sub(r"\\\g<0>", _SYMBOL.sub("\\g<0>\u2060", text))


def hit_html(hit: Hit, rank: int, title: str | None = None) -> str:
    """Return a hit as HTML: rank, id, scores, metadata, beginning or best passage, and explanation.

    The column of titles, ``title``, is left out of the metadata.
    """
    words = [word for word, _ in hit.words]
    text = shorten(hit.passage or hit.beginning, MAX_TEXT)
    parts = [f'<div class="head"><span class="rank">{rank}</span><span class="id">{escape(hit.id)}</span>']
    if hit.cosine is not None:
        parts.append(f'<span class="cosine" title="{COSINE}">cosine {hit.cosine:.3f}</span>')
    if hit.bm25 is not None:
        parts.append(f'<span class="bm25" title="{BM25}">BM25 {hit.bm25:.1f}</span>')
    parts.append(f'</div><div class="about">{metadata_html(hit.metadata, title)}</div>')
    parts.append(f'<p class="text">{highlight(text, [sentence for sentence, _ in hit.sentences], words)}</p>')
    if hit.sentences:
        rows = (
            f'<li><span class="cosine">{cosine:.3f}</span> {highlight(sentence, (), words)}</li>'
            for sentence, cosine in hit.sentences
        )
        parts.append(f'<div class="label">Nearest sentences</div><ul>{"".join(rows)}</ul>')
    if words:
        parts.append(f'<div class="label">Shared words</div><p class="words">{highlight(", ".join(words))}</p>')
    return f'<div class="simlte hit">{"".join(parts)}</div>'
