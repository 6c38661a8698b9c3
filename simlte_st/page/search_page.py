"""The search page: a form, the hits, and a dialog with a document and its nearest neighbours.

Functions that return HTML escape all text from documents and queries.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import streamlit as st

from simlte_st.errors import ConfigurationError, SimlteError
from simlte_st.reading.document import Document, title_column
from simlte_st.search import Hit, Index
from simlte_st.search.hits import TOP_K, Mode, shorten

_LEAD = 300  # characters that an open document shows before the passage; a button shows the rest

COSINE = "Similarity in meaning, from about 0 (unrelated) to 1 (identical). The scale depends on the model."
BM25 = "Match with the query's words; rare words count more. The scale depends on the query."

_MAX_VALUE = 120  # characters of a metadata value
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_SYMBOL = re.compile(r"[-<>=~](?=[-<>=])|:(?=streamlit:)")  # Streamlit replaces these even if escaped

_ADDRESS = re.compile(r"(https?://[^\s<>\"']+)")


@st.cache_resource(show_spinner=False)
def open_index(folder: str, model: str | None, rerank: str | None) -> tuple[Index, threading.Lock]:
    """Open an index and load its models once per process, with a lock that admits one interaction at a time."""
    return Index.open(folder, model).load(rerank), threading.Lock()


class Page:
    """The page during one interaction."""

    def __init__(self, folder: str, model: str | None, rerank: str | None) -> None:
        self.name, self.reranker = Path(folder).resolve().name, rerank
        self.index, self.turn = open_index(folder, model, rerank)
        self.columns = self.index.columns
        self.titles, self.state = title_column(self.columns), st.session_state

    def draw(self) -> None:
        """Show the page."""
        state, linked = self.state, st.query_params.get("q", "")
        if moved := state.get("linked") != linked:  # by a link, or by the browser's Back button
            state.text = linked
        head = f'<h1><a href="?">{escape(self.name)}</a></h1>'
        st.html(f'<div class="simlte">{head}<div class="about">{len(self.index):,} documents</div></div>')
        if self.show_form() or moved:
            state.trail, state.hits, state.unknown = [], None, []
            st.query_params.from_dict({"q": state.text} if state.text else {})
            state.linked = st.query_params.get("q", "")
            if state.text.strip():
                with st.spinner("Searching"), self.turn:
                    state.hits = self.index.search(
                        state.text, top_k=int(state.top), threshold=state.threshold, where=state.where.strip() or None,
                        mode=state.mode, explain=state.explain, rerank=self.reranker if state.get("rerank") else None,
                    )  # fmt: skip
                    state.unknown = self.index.unknown_words(state.text)
        if state.trail:
            st.dialog("Document", width="medium", on_dismiss=state.trail.clear)(self.show_document)()
        if state.unknown:
            st.html(f'<div class="simlte about">Not in any document: {escape(", ".join(state.unknown))}</div>')
        if state.hits is not None:
            self.show_hits(state.hits, "hit", "No document found.")
        elif self.columns:
            st.html(f'<div class="simlte about">Columns: {escape(", ".join(self.columns))}</div>')

    def show_form(self) -> bool:
        """Show the form; return whether it was submitted."""
        with st.form("search", border=False):
            box, button = st.columns([7, 1], vertical_alignment="bottom")
            example = "Words, a sentence or a whole document"
            box.text_input("Search", key="text", placeholder=example, label_visibility="collapsed")
            submitted = button.form_submit_button("Search", width="stretch")
            with st.expander("Options"):
                columns = st.columns([1, 1, 1, 2], vertical_alignment="bottom")
                modes = "hybrid: cosine and BM25; dense: cosine alone; text: BM25 alone"
                columns[0].selectbox("Mode", get_args(Mode), key="mode", help=modes)
                columns[1].number_input("Hits", min_value=1, value=TOP_K, key="top")
                columns[2].number_input("Minimum cosine", -1.0, 1.0, None, 0.05, key="threshold", placeholder="any")
                columns[3].text_input("SQL filter", key="where", placeholder="year > 2010 AND kind = 'news'")
                st.checkbox("Explain", True, key="explain", help="Show the nearest sentences and the shared words.")
                if self.reranker:
                    st.checkbox("Rerank", True, key="rerank", help=f"Rerank the first hits with {self.reranker}.")
        return submitted

    def show_hits(self, hits: Sequence[Hit], key: str, if_none: str) -> None:
        """Show hits."""
        if not hits:
            st.html(f'<div class="simlte about">{if_none}</div>')
        for rank, hit in enumerate(hits, start=1):
            with st.container(border=True, gap=None):
                label, add = f"**{as_label(hit.title)}**", self.state.trail.append
                st.button(label, key=f"{key} {rank}", type="tertiary", on_click=add, args=(hit,))
                st.html(hit_html(hit, rank, self.titles))

    def show_document(self) -> None:
        """Show the open document with its explanation and its nearest neighbours."""
        trail = self.state.trail
        if not trail:
            st.rerun()  # closes the dialog
        st.button("Back", key="back", on_click=trail.pop)
        try:
            with self.turn:
                document = self.index.documents([trail[-1].id])[0]
            st.html(document_html(document, trail[-1], self.titles))
            st.html('<div class="simlte"><h2>Nearest neighbours</h2></div>')
            with st.spinner("Searching"), self.turn:
                neighbours = self.index.link([document.id], top_k=int(self.state.top), explain=self.state.explain)
            self.show_hits(neighbours, f"neighbour {len(trail)}", "No other documents.")
        except SimlteError as error:
            show_problem(str(error))


def show_page(folder: str, model: str | None = None, rerank: str | None = None) -> None:
    """Show the page; Streamlit calls this for every interaction.

    Args:
        folder: Folder of the index.
        model: Name or folder of the index's model, if it has moved.
        rerank: Name or folder of the model that reranks the first hits.
    """
    st.set_page_config(page_title=f"simlte: {Path(folder).resolve().name}", layout="wide")
    st.html(f"<style>{files('simlte_st.page').joinpath('style.css').read_text(encoding='utf-8')}</style>")
    # DNS rebinding: a website could point its own name at this machine, and the browser would let it read the page.
    host = urlsplit(f"//{st.context.headers.get('Host', 'localhost')}").hostname
    try:
        if host not in ("localhost", "127.0.0.1"):
            raise ConfigurationError(f"This page cannot be opened as {host}: use localhost or 127.0.0.1.")
        Page(folder, model, rerank).draw()
    except SimlteError as error:
        show_problem(str(error))


def show_problem(text: str) -> None:
    """Show an error."""
    st.html(f'<div class="simlte problem" role="alert">{escape(text)}</div>')


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
        repeated = rf"(?:.*{word})?" if number % 2 else ""  # one mark for all words in a URL
        pieces = re.split(rf"(?i)({word}{repeated})", part)
        html += "".join(f"<b>{escape(piece)}</b>" if place % 2 else escape(piece) for place, piece in enumerate(pieces))
    return html


def document_html(document: Document, hit: Hit, title: str | None = None) -> str:
    """Return the document of a hit as HTML, open at the hit's passage, with the hit's sentences and words marked.

    The title column, ``title``, is omitted from the metadata.
    """
    start = document.text.find(hit.passage)
    start = max(document.text.rfind("\n", 0, start - _LEAD // 4) + 1, start - _LEAD) if start > 2 * _LEAD else 0
    sentences, words = [sentence for sentence, _ in hit.sentences] or [hit.passage], [word for word, _ in hit.words]
    before, after = (highlight(part, sentences, words) for part in (document.text[:start], document.text[start:]))
    before = before and f"<details><summary>{start:,} characters before</summary>{before}</details>"
    about = " · ".join(filter(None, (escape(document.id), metadata_html(document.metadata or {}, title))))
    text = f'<div class="about">{about}</div><div class="document">{before}{after}</div>'
    return f'<div class="simlte"><h2>{escape(hit.title)}</h2>{text}</div>'


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
    """Return a hit as HTML: rank, id, scores, metadata, passage and explanation.

    The title column, ``title``, is omitted from the metadata.
    """
    words = [word for word, _ in hit.words]
    parts = [f'<div class="head"><span class="rank">{rank}</span><span class="id">{escape(hit.id)}</span>']
    if hit.cosine is not None:
        parts.append(f'<span class="cosine" title="{COSINE}">cosine {hit.cosine:.3f}</span>')
    if hit.bm25 is not None:
        parts.append(f'<span class="bm25" title="{BM25}">BM25 {hit.bm25:.1f}</span>')
    parts.append('<span class="about">identical text</span>' * hit.identical)
    parts.append(f'</div><div class="about">{metadata_html(hit.metadata, title)}</div>')
    parts.append(f'<p class="text">{highlight(hit.passage, [sentence for sentence, _ in hit.sentences], words)}</p>')
    if hit.sentences:
        rows = (
            f'<li><span class="cosine">{cosine:.3f}</span> {highlight(sentence, (), words)}</li>'
            for sentence, cosine in hit.sentences
        )
        parts.append(f'<div class="label">Nearest sentences</div><ul>{"".join(rows)}</ul>')
    if words:
        parts.append(f'<div class="label">Shared words</div><p class="words">{highlight(", ".join(words))}</p>')
    return f'<div class="simlte hit">{"".join(parts)}</div>'
