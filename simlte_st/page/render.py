"""Documents and hits as HTML and labels, escaped: all text from outside passes through here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from simlte_st.search import Hit
from simlte_st.search.hits import shortened

SHOWN = 600
"""Characters of a document's beginning or best passage that a hit shows."""

COSINE = "How near the meaning is, by the model: 1 for the same, about 0 for nothing in common. Models differ in scale."
BM25 = "How many of the query's words are in the text, rare ones counting more. The scale depends on the query."

_VALUE = 120  # characters of a value of the metadata
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")

_ADDRESS = re.compile(r"https?://[^\s<>\"']+")


def highlighted(text: str, sentences: Iterable[str] = (), words: Sequence[str] = ()) -> str:
    """Return a text as HTML, with sentences and words marked."""
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
    pieces = re.split(rf"(?i)(?<!\w)({'|'.join(map(re.escape, words))})(?!\w)", text)
    return "".join(f"<b>{escape(piece)}</b>" if number % 2 else escape(piece) for number, piece in enumerate(pieces))


def described(values: Mapping[str, Any], title: str | None = None) -> str:
    """Return metadata but the title as HTML on one line, with web addresses as links and without missing values."""
    items = ((name, str(value)) for name, value in values.items() if name != title and value not in (None, ""))
    return " · ".join(f"<span>{escape(name)}: {_linked(value)}</span>" for name, value in items)


def _linked(value: str) -> str:
    shown = escape(shortened(value, _VALUE))
    return f'<a href="{escape(value)}" target="_blank">{shown}</a>' if _ADDRESS.fullmatch(value) else shown


def as_label(text: str) -> str:
    """Return a text as a label of Streamlit, with its Markdown escaped."""
    return _SIGN.sub(r"\\\g<0>", text)


def hit_html(hit: Hit, rank: int, title: str | None = None) -> str:
    """Return a hit as HTML without its title: id, scores, metadata, beginning or best passage, explanation.

    ``title`` is the column of titles.
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
        parts.append(f'<div class="label">nearest sentences</div><ul>{"".join(rows)}</ul>')
    if words:
        parts.append(f'<div class="label">shared words</div><p class="words">{highlighted(", ".join(words))}</p>')
    return f'<div class="simlte hit">{"".join(parts)}</div>'
