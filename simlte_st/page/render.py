"""Render documents and hits as HTML and labels; every text of a document or a query is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from simlte_st.search import Hit
from simlte_st.search.hits import shortened

SHOWN = 600
"""Maximum number of characters of a document's beginning or best passage in a hit."""

COSINE = "Similarity in meaning: 1 is the same, about 0 is unrelated. The scale depends on the model."
BM25 = "Weight of the query's words in the text; rare words count more. The scale depends on the query."

_VALUE = 120  # maximum characters of a metadata value
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_SYMBOL = re.compile(r"[-<>=~](?=[-<>=])|:(?=streamlit:)")  # Streamlit replaces these even if escaped

_ADDRESS = re.compile(r"(https?://[^\s<>\"']+)")


def highlighted(text: str, sentences: Iterable[str] = (), words: Sequence[str] = ()) -> str:
    """Return a text as HTML, with the given sentences and words marked."""
    patterns = [r"\s+".join(map(re.escape, sentence.split())) for sentence in sentences]
    html, done = "", 0
    for start, end in sorted(match.span() for each in filter(None, patterns) for match in re.finditer(each, text)):
        if start >= done:
            html += f"{_marked(text[done:start], words)}<mark>{_marked(text[start:end], words)}</mark>"
            done = end
    return html + _marked(text[done:], words)


def _marked(text: str, words: Sequence[str]) -> str:
    if not words:
        return escape(text)
    word = rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)"
    html = ""
    for number, part in enumerate(_ADDRESS.split(text)):
        several = rf"(?:.*{word})?" if number % 2 else ""  # all words of an address get one mark
        pieces = re.split(rf"(?i)({word}{several})", part)
        html += "".join(f"<b>{escape(piece)}</b>" if place % 2 else escape(piece) for place, piece in enumerate(pieces))
    return html


def described(values: Mapping[str, Any], title: str | None = None) -> str:
    """Return metadata as one line of HTML, without the title and missing values, with URLs as links."""
    items = ((name, str(value)) for name, value in values.items() if name != title and value not in (None, ""))
    return " · ".join(f"<span>{escape(name)}: {_linked(value)}</span>" for name, value in items)


def _linked(value: str) -> str:
    shown = escape(shortened(value, _VALUE))
    return f'<a href="{escape(value)}" target="_blank">{shown}</a>' if _ADDRESS.fullmatch(value) else shown


def as_label(text: str) -> str:
    """Escape Markdown and Streamlit's symbols in a label."""
    return _SIGN.sub(r"\\\g<0>", _SYMBOL.sub("\\g<0>\u2060", text))


def hit_html(hit: Hit, rank: int, title: str | None = None) -> str:
    """Return a hit as HTML: rank, id, scores, metadata, beginning or best passage, and explanation.

    The column of titles, ``title``, is left out of the metadata.
    """
    words = [word for word, _ in hit.words]
    text = shortened(hit.passage or hit.beginning, SHOWN)
    parts = [f'<div class="head"><span class="rank">{rank}</span><span class="id">{escape(hit.id)}</span>']
    if hit.cosine is not None:
        parts.append(f'<span class="cosine" title="{COSINE}">cosine {hit.cosine:.3f}</span>')
    if hit.bm25 is not None:
        parts.append(f'<span class="bm25" title="{BM25}">BM25 {hit.bm25:.1f}</span>')
    parts.append(f'</div><div class="about">{described(hit.metadata, title)}</div>')
    parts.append(f'<p class="text">{highlighted(text, [each for each, _ in hit.sentences], words)}</p>')
    if hit.sentences:
        rows = (
            f'<li><span class="cosine">{cosine:.3f}</span> {highlighted(sentence, (), words)}</li>'
            for sentence, cosine in hit.sentences
        )
        parts.append(f'<div class="label">Nearest sentences</div><ul>{"".join(rows)}</ul>')
    if words:
        parts.append(f'<div class="label">Shared words</div><p class="words">{highlighted(", ".join(words))}</p>')
    return f'<div class="simlte hit">{"".join(parts)}</div>'
