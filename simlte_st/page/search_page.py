"""The page: a form, the hits, and a document with its nearest neighbours above them."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import streamlit as st

from simlte_st.data.columns import title_of
from simlte_st.data.document import Document
from simlte_st.errors import SimlteError
from simlte_st.page import filters
from simlte_st.page.overview import Overview, look_over
from simlte_st.page.render import as_label, described, highlighted, hit_html, spreadsheet_csv
from simlte_st.search import Hit, Hits, Index
from simlte_st.search.config import Mode, SearchConfig
from simlte_st.search.searcher import TOP_K

_TO_THE_TOP = "<script>/* {} */ document.querySelector('[role=dialog]').scrollIntoView()</script>"
"""Shows a document from its beginning where another was read to its end; the browser runs it anew where it differs."""

PLAIN = {"text": "", "mode": "hybrid", "top": TOP_K, "threshold": None, "where": "", "why": True}
"""What the form holds at first; what differs stands in the address, under the same names."""

_READ: dict[str, tuple[str, Any]] = {"mode": ("mode", str), "top": ("top_k", int), "threshold": ("threshold", float)}
"""Fields of the form that have a range: the settings that they are, and their types."""


class Turns:
    """Lets one interaction at a time use an index; those that wait when the page ends do not begin any more."""

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


@st.cache_resource(show_spinner="Looking the index over", max_entries=2)
def _overview(folder: str, model: str | None, count: int, title: str | None) -> Overview:
    return look_over(open_index(folder, model)[0], title)


class Page:
    """What one interaction shows."""

    def __init__(self, folder: str, model: str | None, title: str | None, show: Sequence[str] | None) -> None:
        self.name = Path(folder).resolve().name
        self.index, self.turns = open_index(folder, model)
        with self.turns:
            self.overview = _overview(folder, model, len(self.index), title)
        self.menus = filters.usable(self.overview.columns)
        names = [column.name for column in self.overview.columns]
        self.show = [name for name in names if name != self.overview.title] if show is None else show
        self.state = st.session_state

    def draw(self) -> None:
        """Show it."""
        state, about = self.state, f"{self.overview.count:,} documents"
        self.read_address()
        head = f'<h1><a href="?">{escape(self.name)}</a></h1>'
        st.html(f'<div class="simlte">{head}<div class="about">{about}</div></div>')
        submitted = self.form()
        state.to_send = max(0, state.to_send - 1)  # not where a run is interrupted before its form
        if submitted:
            state.trail, state.unread = [], []
        if submitted or state.pop("ask", False):
            state.hits, state.explained = None, {}
            if state.text.strip():
                with st.spinner("Searching"), self.turns:
                    state.hits = self.search()
        self.write_address()
        if state.unread:
            asked = ", ".join(f"{name}={text}" for name, text in state.unread)
            show_problem(f"Not understood in the address, and left out: {asked}")
        if state.get("trail"):
            st.dialog("Document", width="medium", on_dismiss=self.close)(self.document)()
        if state.get("hits") is None:
            self.start()
        else:
            self.exports(state.hits)
            self.hits(state.hits, "hit", "No document was found.", state.explained, self.overview.weak)

    def form(self) -> bool:
        """Show the form; tell whether it was submitted."""
        with st.form("search", border=False):
            box, button = st.columns([7, 1], vertical_alignment="bottom")
            box.text_input(
                "Search", key="text", placeholder="words, a sentence, a whole text", label_visibility="collapsed"
            )
            submitted = button.form_submit_button("Search", width="stretch")
            with st.expander("Filters and options"):
                places = st.columns(3)
                for number, column in enumerate(self.menus):
                    with places[number % 3]:
                        filters.show_filter(column)
                columns = st.columns([1, 1, 1, 2], vertical_alignment="bottom")
                columns[0].selectbox(
                    "Mode",
                    get_args(Mode),
                    key="mode",
                    help="dense: by vectors, text: by BM25, hybrid: by the ranks in both",
                )
                columns[1].number_input("Most hits", min_value=1, key="top")
                columns[2].number_input("Lowest cosine", -1.0, 1.0, step=0.05, key="threshold", placeholder="any")
                columns[3].text_input("Filter in SQL", key="where", placeholder="year > 2010 AND kind = 'news'")
                st.checkbox("Reasons", key="why", help="nearest sentences and shared words")
        return submitted

    def search(self) -> Hits:
        """Search for what the form holds."""
        state = self.state
        conditions = [filters.condition(column, state[filters.PREFIX + column.name]) for column in self.menus]
        own = f"({state.where})" if state.where.strip() and any(conditions) else state.where.strip()
        where = " AND ".join(each for each in (*conditions, own) if each)
        return self.index.search(
            state.text, top_k=int(state.top), threshold=state.threshold, where=where or None, mode=state.mode
        )

    def start(self) -> None:
        """Show what is in the index, and queries to click."""
        overview, trail = self.overview, self.state.trail
        if overview.queries:
            st.html('<div class="simlte label">for example</div>')
            with st.container(horizontal=True):
                for number, query in enumerate(overview.queries):
                    st.button(as_label(query), key=f"ask {number}", on_click=self.ask, args=(query,))
        places = st.columns(2)
        for number, topic in enumerate(overview.topics):
            with places[number % 2].container(border=True, gap=None):
                st.html(f'<div class="simlte"><h2>{escape(topic.name)}</h2></div>')
                for place, (name, title) in enumerate(topic.documents):
                    st.button(
                        as_label(title), key=f"typical {number} {place}", type="tertiary",
                        on_click=trail.append, args=(name,),
                    )  # fmt: skip
                st.button("Search for it", key=f"topic {number}", on_click=self.ask, args=(topic.name,))
        names = ", ".join(column.name for column in overview.columns)
        if names:
            st.html(f'<div class="simlte about">columns: {escape(names)}</div>')

    def ask(self, text: str) -> None:
        """Search for a text."""
        self.state.text, self.state.ask, self.state.trail = text, True, []

    def close(self) -> None:
        """Close the document."""
        self.state.trail = []

    def hits(self, hits: Hits, key: str, otherwise: str, explained: dict[str, Hit], weak: float) -> None:
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
                place = st.html(hit_html(explained.get(hit.id, hit), rank, languages, weak, self.show, wait))
                if wait:
                    places.append((place, rank, hit))
        for place, rank, hit in places:
            with self.turns:
                explained[hit.id] = hits.explain(hit)
            place.html(hit_html(explained[hit.id], rank, languages, weak, self.show))

    def title(self, metadata: Any, text: str) -> str:
        """Return the title of a document."""
        return title_of((metadata or {}).get(self.overview.title), text)

    def exports(self, hits: Hits) -> None:
        """Offer the hits as files."""
        rows = [hit.to_dict() for hit in hits]
        if not rows:
            return
        flat = [{name: value for name, value in row.items() if name not in ("sentences", "words")} for row in rows]
        table = spreadsheet_csv(flat)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.html(f'<div class="simlte about">{escape(self.about(len(rows)))}</div>')
            st.download_button("CSV", table, "hits.csv", "text/csv", type="tertiary", on_click="ignore")
            text = json.dumps(rows, ensure_ascii=False, indent=1)
            st.download_button("JSON", text, "hits.json", "application/json", type="tertiary", on_click="ignore")

    def about(self, count: int) -> str:
        """Show the number of hits and the filters."""
        values = [(column, self.state[filters.PREFIX + column.name]) for column in self.menus]
        chosen = [f"{column.name}: {', '.join(filters.to_address(column, value))}" for column, value in values
                  if filters.condition(column, value)]  # fmt: skip
        hits = "1 hit" if count == 1 else f"{count:,} hits"
        return " · ".join([hits, *chosen, *([self.state.where] if self.state.where.strip() else [])])

    def document(self) -> None:
        """Show the document that is open with the reasons it was found for, and those that are nearest to it."""
        trail = self.state.trail
        if not trail:
            st.rerun()  # which closes it
        self.write_address()
        st.button("Back", key="back", on_click=trail.pop)
        try:
            with self.turns:
                document = self.index.documents([trail[-1]])[0]
            st.html(_TO_THE_TOP.format(len(trail)), unsafe_allow_javascript=True)
            st.html(self.document_html(document))
            st.html('<div class="simlte"><h2>Nearest neighbours</h2></div>')
            with st.spinner("Searching"), self.turns:
                neighbours = self.index.link([document.id], top_k=int(self.state.top))
            weak = self.overview.weak_neighbour
            self.hits(neighbours, f"neighbour {len(trail)}", "There is no other document.", {}, weak)
        except SimlteError as error:
            show_problem(str(error))

    def document_html(self, document: Document) -> str:
        """Write a document."""
        hit = self.state.explained.get(document.id)
        sentences = [sentence for sentence, _ in hit.sentences] if hit else []
        words = [word for word, _ in hit.words] if hit else []
        names = [name for name in document.metadata or {} if name != self.overview.title]
        title = escape(self.title(document.metadata, document.text))
        about = " · ".join(filter(None, (escape(document.id), described(document.metadata or {}, names))))
        text = f'<p class="document">{highlighted(document.text, sentences, words, self.index.languages)}</p>'
        return f'<div class="simlte"><h2>{title}</h2><div class="about">{about}</div>{text}</div>'

    def read_address(self) -> None:
        """Bring the form, the hits and the document to what the address says, if it is another than this page wrote."""
        state, address = self.state, {name: st.query_params.get_all(name) for name in st.query_params}
        menus = {filters.PREFIX + column.name: column for column in self.menus}
        if state.get("address") == address:
            if state.get("to_send"):
                # A query may be sent before the browser has drawn the form. It then draws what the next run sends, and
                # where that sets no values, those of the widgets themselves: a single hit, without reasons.
                for name in (*PLAIN, *menus):
                    state[name] = state[name]
            return
        state.to_send = 2
        for name, value in PLAIN.items():
            state[name] = value
        unread = [(key, text) for key in address if key.startswith(filters.PREFIX) and key not in menus
                  for text in address[key]]  # fmt: skip
        for key, column in menus.items():
            value, strange = filters.from_address(column, address.get(key, []))
            state[key] = value
            unread += [(key, text) for text in strange]
        for name in ("text", "where"):
            state[name] = address.get(name, [""])[0]
        state["why"] = address.get("why") != ["no"]
        for name, (setting, kind) in _READ.items():
            text = address.get(name, [""])[0]
            try:
                state[name] = getattr(SearchConfig(**{setting: kind(text)}), setting) if text else PLAIN[name]
            except ValueError:
                state[name] = PLAIN[name]
                unread.append((name, text))
        state.unread = unread
        state.hits, state.explained, state.trail = None, {}, address.get("document", [])[-1:]
        state.ask, state.address = bool(state.text.strip()), address

    def write_address(self) -> None:
        """Bring the address to what the page shows."""
        state = self.state
        address = {name: [str(state[name])] for name, value in PLAIN.items() if state[name] != value and name != "why"}
        address |= {} if state.why else {"why": ["no"]}
        for column in self.menus:
            key = filters.PREFIX + column.name
            if texts := filters.to_address(column, state[key]):
                address[key] = texts
        if state.get("hits") is None:
            address = {}
        address |= {"document": state.trail[-1:]} if state.trail else {}
        if address != state.get("address"):
            state.address = address
            st.query_params.from_dict(address)


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
