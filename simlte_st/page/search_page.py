"""The page: a form, the hits, and a document with its nearest neighbours above them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import streamlit as st

from simlte_st.data.columns import title_column, title_of
from simlte_st.data.document import Document
from simlte_st.errors import SimlteError
from simlte_st.page.render import as_label, described, highlighted, hit_html
from simlte_st.search import Hit, Hits, Index
from simlte_st.search.query import TOP_K, Mode


class Turns:
    """Lets one interaction at a time use an index; interactions that wait when the page ends never begin."""

    def __init__(self) -> None:
        self._lock, self._ended = threading.Lock(), False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._ended:
            self._lock.release()
            threading.Event().wait()  # for good, in a thread that ends with the process

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def end(self) -> None:
        """Wait for the interaction that has its turn, and give no other one a turn."""
        self._ended = True
        self._lock.acquire()


@st.cache_resource(show_spinner=False)
def open_index(folder: str, model: str | None) -> tuple[Index, Turns]:
    """Open an index with its model, once in a process."""
    return Index.open(folder, model).load(), Turns()


class Page:
    """What one interaction shows."""

    def __init__(self, folder: str, model: str | None, title: str | None, show: Sequence[str] | None) -> None:
        self.name = Path(folder).resolve().name
        self.index, self.turns = open_index(folder, model)
        self.columns = self.index.columns
        self.titles = title_column(self.columns, title)
        self.show = [name for name in self.columns if name != self.titles] if show is None else show
        self.state = st.session_state

    def draw(self) -> None:
        """Show it."""
        state = self.state
        asked = self.read_address()
        head = f'<h1><a href="?">{escape(self.name)}</a></h1>'
        st.html(f'<div class="simlte">{head}<div class="about">{len(self.index):,} documents</div></div>')
        submitted = self.form()
        if submitted:
            state.trail = []
        if submitted or asked:
            state.hits, state.explained = None, {}
            st.query_params.from_dict({"text": state.text} if state.text else {})
            state.address = state.text
            if state.text.strip():
                with st.spinner("Searching"), self.turns:
                    where, top_k = state.where.strip() or None, int(state.top)
                    state.hits = self.index.search(
                        state.text, top_k=top_k, threshold=state.threshold, where=where, mode=state.mode
                    )
        if state.trail:
            st.dialog("Document", width="medium", on_dismiss=state.trail.clear)(self.document)()
        if state.hits is not None:
            self.hits(state.hits, "hit", "No document was found.", state.explained)
        elif self.columns:
            st.html(f'<div class="simlte about">columns: {escape(", ".join(self.columns))}</div>')

    def form(self) -> bool:
        """Show the form; return whether it was submitted."""
        with st.form("search", border=False):
            box, button = st.columns([7, 1], vertical_alignment="bottom")
            example = "words, a sentence, a whole text"
            box.text_input("Search", key="text", placeholder=example, label_visibility="collapsed")
            submitted = button.form_submit_button("Search", width="stretch")
            with st.expander("Options"):
                columns = st.columns([1, 1, 1, 2], vertical_alignment="bottom")
                ranked = "dense: by vectors, text: by BM25, hybrid: by the ranks in both"
                columns[0].selectbox("Mode", get_args(Mode), key="mode", help=ranked)
                columns[1].number_input("Most hits", min_value=1, value=TOP_K, key="top")
                columns[2].number_input(
                    "Lowest cosine", -1.0, 1.0, value=None, step=0.05, key="threshold", placeholder="any"
                )
                columns[3].text_input("Filter in SQL", key="where", placeholder="year > 2010 AND kind = 'news'")
                st.checkbox("Reasons", value=True, key="why", help="nearest sentences and shared words")
        return submitted

    def hits(self, hits: Hits, key: str, otherwise: str, explained: dict[str, Hit]) -> None:
        """Show hits at once, and their reasons as they are found."""
        if not hits:
            st.html(f'<div class="simlte about">{otherwise}</div>')
        places, languages = [], self.index.languages
        for rank, hit in enumerate(hits, start=1):
            with st.container(border=True, gap=None):
                label = as_label(self.title(hit.metadata, hit.beginning))
                st.button(
                    f"**{label}**", key=f"{key} {rank}", type="tertiary",
                    on_click=self.state.trail.append, args=(hit.id,),
                )  # fmt: skip
                wait = self.state.why and hit.id not in explained
                # Into an st.empty, a hit drawn again would vanish for a moment, and the page would lose its place.
                place = st.html(hit_html(explained.get(hit.id, hit), rank, languages, self.show, wait))
                if wait:
                    places.append((place, rank, hit))
        for place, rank, hit in places:
            with self.turns:
                explained[hit.id] = hits.explain(hit)
            place.html(hit_html(explained[hit.id], rank, languages, self.show))

    def title(self, metadata: Any, text: str) -> str:
        """Return the title of a document."""
        return title_of((metadata or {}).get(self.titles or ""), text)

    def document(self) -> None:
        """Show the document that is open with the reasons it was found for, and those that are nearest to it."""
        trail = self.state.trail
        if not trail:
            st.rerun()  # which closes it
        st.button("Back", key="back", on_click=trail.pop)
        try:
            with self.turns:
                document = self.index.documents([trail[-1]])[0]
            st.html(self.document_html(document))
            st.html('<div class="simlte"><h2>Nearest neighbours</h2></div>')
            with st.spinner("Searching"), self.turns:
                neighbours = self.index.link([document.id], top_k=int(self.state.top))
            self.hits(neighbours, f"neighbour {len(trail)}", "There is no other document.", {})
        except SimlteError as error:
            show_problem(str(error))

    def document_html(self, document: Document) -> str:
        """Return a document as HTML, with the sentences and words marked that it was found by."""
        hit = self.state.explained.get(document.id)
        sentences, words = ([pair[0] for pair in each] for each in ((hit.sentences, hit.words) if hit else ((), ())))
        names = [name for name in document.metadata or {} if name != self.titles]
        title = escape(self.title(document.metadata, document.text))
        about = " · ".join(filter(None, (escape(document.id), described(document.metadata or {}, names))))
        text = f'<p class="document">{highlighted(document.text, sentences, words, self.index.languages)}</p>'
        return f'<div class="simlte"><h2>{title}</h2><div class="about">{about}</div>{text}</div>'

    def read_address(self) -> bool:
        """Take the query from the address; return whether it differs from the one that this page wrote there."""
        state, asked = self.state, st.query_params.get("text", "")
        if state.get("address") == asked:
            return False
        state.text, state.trail = asked, []
        return True


def show_page(
    folder: str, model: str | None = None, title: str | None = None, show: Sequence[str] | None = None
) -> None:
    """Show the page, as the last interaction left it; the arguments are those of :class:`Page`."""
    st.set_page_config(page_title=f"simlte: {Path(folder).resolve().name}", layout="wide")
    st.html(f"<style>{files('simlte_st.page').joinpath('style.css').read_text(encoding='utf-8')}</style>")
    try:
        Page(folder, model, title, show).draw()
    except SimlteError as error:
        show_problem(str(error))


def show_problem(text: str) -> None:
    """Show an error."""
    st.html(f'<div class="simlte problem" role="alert">{escape(text)}</div>')
