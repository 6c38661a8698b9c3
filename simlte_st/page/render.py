"""Documents and hits as HTML and labels, escaped: all text from outside passes through here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from simlte_st.data.analyzer import query_terms, terms_at
from simlte_st.search import Hit
from simlte_st.search.hits import shortened

SHOWN = 600
"""Characters of a document's beginning or best passage that a hit shows."""

COSINE = "How near the meaning is, by the model: 1 for the same, about 0 for nothing in common. Models differ in scale."
BM25 = "How many of the query's words are in the text, rare ones counting more. The scale depends on the query."

_VALUE = 120  # characters of a value of the metadata
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")

_ADDRESS = re.compile(r"https?://[^\s<>\"']+")


def highlighted(
    text: str, sentences: Iterable[str] = (), words: Sequence[str] = (), languages: Sequence[str] = ()
) -> str:
    """Return a text as HTML, with sentences and words marked; words in the languages of the index."""
    known = {term for language in languages for word in words for term in query_terms(word, language)}
    html, done = "", 0
    for start, end in _spans(text, sentences):
        sentence = _marked(text[start:end], known, languages)
        html += f"{_marked(text[done:start], known, languages)}<mark>{sentence}</mark>"
        done = end
    return html + _marked(text[done:], known, languages)


def _spans(text: str, sentences: Iterable[str]) -> list[tuple[int, int]]:
    """Return the spans of sentences; those that overlap are one."""
    patterns = [r"\s+".join(map(re.escape, sentence.split())) for sentence in sentences]
    places = sorted(match.span() for pattern in patterns if pattern for match in re.finditer(pattern, text))
    spans: list[tuple[int, int]] = []
    for start, end in places:
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return spans


def _marked(text: str, known: set[str], languages: Sequence[str]) -> str:
    html, done = "", 0
    for start, end, terms in terms_at(text, languages) if known else ():
        if terms & known:
            html += f"{escape(text[done:start])}<b>{escape(text[start:end])}</b>"
            done = end
    return html + escape(text[done:])


def described(values: Mapping[str, Any], columns: Iterable[str] | None = None) -> str:
    """Return metadata as HTML on one line, with web addresses as links and without missing values."""
    chosen = values if columns is None else {name: values[name] for name in columns if name in values}
    items = ((name, str(value)) for name, value in chosen.items() if value not in (None, ""))
    return " · ".join(f"<span>{escape(name)}: {_linked(value)}</span>" for name, value in items)


def _linked(value: str) -> str:
    shown = escape(shortened(value, _VALUE))
    return f'<a href="{escape(value)}" target="_blank">{shown}</a>' if _ADDRESS.fullmatch(value) else shown


def as_label(text: str) -> str:
    """Return a text as a label of Streamlit, with its Markdown escaped."""
    return _SIGN.sub(r"\\\g<0>", text)


def hit_html(
    hit: Hit, rank: int, languages: Sequence[str], columns: Iterable[str] | None = None, wait: bool = False
) -> str:
    """Return a hit as HTML without its title: id, scores, metadata, beginning or best passage, explanation.

    ``languages`` are those of the index.
    """
    words = [word for word, _ in hit.words]
    text = shortened(hit.passage or hit.beginning, SHOWN)
    parts = [f'<div class="head"><span class="rank">{rank}</span><span class="id">{escape(hit.id)}</span>']
    if hit.cosine is not None:
        parts.append(f'<span class="cosine" title="{COSINE}">cosine {hit.cosine:.3f}</span>')
    if hit.bm25 is not None:
        parts.append(f'<span class="bm25" title="{BM25}">BM25 {hit.bm25:.1f}</span>')
    parts.append(f'</div><div class="about">{described(hit.metadata, columns)}</div>')
    parts.append(f'<p class="text">{highlighted(text, [each for each, _ in hit.sentences], words, languages)}</p>')
    if hit.sentences:
        rows = (
            f'<li><span class="cosine">{cosine:.3f}</span> {highlighted(sentence, (), words, languages)}</li>'
            for sentence, cosine in hit.sentences
        )
        parts.append(f'<div class="label">nearest sentences</div><ul>{"".join(rows)}</ul>')
    if words:
        parts.append(f'<div class="label">shared words</div><p class="words">{highlighted(", ".join(words))}</p>')
    if wait:
        parts.append('<div class="label">reasons are on their way …</div>')
    return f'<div class="simlte hit">{"".join(parts)}</div>'
