"""The page: a form, the hits, and a document beside its nearest neighbours."""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import get_args

import streamlit as st

from simlte_st.errors import SimlteError
from simlte_st.index import Hit, Hits, Index
from simlte_st.index.index import TOP
from simlte_st.index.queries import Mode
from simlte_st.page.highlighting import described, highlighted, hit_html

_STYLE = """<style>
.block-container {max-width: 72rem; padding-top: 2.5rem;}
.simlte {overflow-wrap: anywhere; line-height: 1.55;}
.simlte span {unicode-bidi: isolate;}
.simlte h1 {font-size: 1.6rem; padding: 0; margin: 0;}
.simlte h2 {font-size: 1.2rem; padding: 0; margin: 0;}
.simlte .about, .simlte .label, .simlte .bm25 {opacity: .65; font-size: .85rem;}
.simlte .head {display: flex; gap: .75rem; align-items: baseline; flex-wrap: wrap;}
.simlte .rank {opacity: .5; min-width: 1.2rem;}
.simlte .id {font-weight: 600;}
.simlte .cosine {font-variant-numeric: tabular-nums; opacity: .75; font-size: .85rem;}
.simlte p {margin: .35rem 0 .6rem;}
.simlte p.document {white-space: pre-wrap;}
.simlte ul {list-style: none; padding: 0; margin: .1rem 0 .6rem;}
.simlte li {margin: .15rem 0; padding: 0; font-size: .9rem;}
.simlte .words {font-size: .9rem; margin-top: .1rem;}
.simlte mark {background: rgba(240, 190, 60, .28); color: inherit; border-radius: .2rem; padding: .05rem 0;}
.simlte b {font-weight: 600; text-decoration: underline; text-decoration-color: rgba(60, 120, 180, .7);
  text-decoration-thickness: .12em; text-underline-offset: .2em;}
.simlte.problem {border-left: .25rem solid rgba(200, 110, 60, .8); padding: .4rem .8rem;}
</style>"""


@st.cache_resource(show_spinner=False)
def open_index(folder: str, model: str | None) -> tuple[Index, threading.Lock]:
    """Open an index with its model, once in a process.

    Returns:
        The index, and what is to be held while it works: two tabs, or two clicks, are two threads, and a tokenizer
        serves one at a time.

    Raises:
        SimlteError: As :meth:`Index.open` and :meth:`Index.load`.
    """
    return Index.open(folder, model).load(), threading.Lock()


def show_page(folder: str, model: str | None = None) -> None:
    """Show the page, as the last interaction left it.

    Args:
        folder: The index.
        model: Its model, where it is elsewhere now.
    """
    index, lock = open_index(folder, model)
    name = Path(folder).resolve().name
    st.set_page_config(page_title=f"simlte: {name}", layout="wide")
    st.html(_STYLE)
    try:
        _show(index, lock, name)
    except SimlteError as error:
        st.html(f'<div class="simlte problem" role="alert">{escape(str(error))}</div>')


def _show(index: Index, lock: threading.Lock, name: str) -> None:
    with lock:
        about = f"{len(index):,} documents"
    st.html(f'<div class="simlte"><h1>{escape(name)}</h1><div class="about">{about}</div></div>')
    search = _form(index)
    state = st.session_state
    if search is not None:
        state.chosen = state.hits = None
        with st.spinner("Searching"), lock:
            state.hits = search()
    if state.get("chosen") is not None:
        _show_document(index, lock, state.chosen)
    elif state.get("hits") is not None:
        _show_hits(state.hits, "No document was found.")


def _form(index: Index) -> Callable[[], Hits] | None:
    """Show the form; give the search that was just submitted for."""
    with st.form("search", border=False):
        box, button = st.columns([7, 1], vertical_alignment="bottom")
        text = box.text_input("Search", key="text", placeholder="words, a sentence, a whole text")
        submitted = button.form_submit_button("Search")
        columns = st.columns([1.4, 1, 1.2, 4, 1.2], vertical_alignment="bottom")
        mode: Mode = columns[0].selectbox(
            "Mode", get_args(Mode), key="mode", help="dense: by vectors, text: by BM25, hybrid: by the ranks in both"
        )
        top = int(columns[1].number_input("Most hits", min_value=1, value=TOP, key="top"))
        threshold = columns[2].number_input("Lowest cosine", -1.0, 1.0, None, 0.05, key="threshold", placeholder="any")
        where = columns[3].text_input("Filter", key="where", placeholder="year > 2010 AND kind = 'news'")
        why = columns[4].checkbox("Reasons", value=True, key="why", help="nearest sentences and shared words")
    if not submitted:
        return None
    return lambda: index.search(
        text, top=top, threshold=threshold, where=where if where.strip() else None, mode=mode, why=why
    )


def _show_hits(hits: Hits, otherwise: str) -> None:
    if not hits:
        st.html(f'<div class="simlte about">{otherwise}</div>')
    for rank, hit in enumerate(hits, start=1):
        with st.container(border=True):
            st.html(hit_html(hit, rank))
            st.button("Document and neighbours", key=f"choose {rank}", on_click=_choose, args=(hit,))


def _choose(hit: Hit | None) -> None:
    st.session_state.chosen = hit


def _show_document(index: Index, lock: threading.Lock, hit: Hit) -> None:
    """Show a document with the reasons it was found for, beside those that are nearest to it."""
    st.button("Back to the hits", key="back", on_click=_choose, args=(None,))
    with lock:
        document = index.documents([hit.id])[0]
    left, right = st.columns(2, gap="large")
    with left:
        text = highlighted(document.text, [each for each, _ in hit.sentences], [word for word, _ in hit.words])
        about = f'<div class="about">{described(document.metadata or {})}</div>'
        st.html(f'<div class="simlte"><h2>{escape(hit.id)}</h2>{about}<p class="document">{text}</p></div>')
    with right:
        st.html('<div class="simlte"><h2>Nearest neighbours</h2></div>')
        with st.spinner("Searching"), lock:
            neighbours = index.link([hit.id], top=st.session_state.top, why=st.session_state.why)
        _show_hits(neighbours, "There is no other document.")
