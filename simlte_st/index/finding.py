"""From questions to hits: the answers, with what is shown of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from simlte_st.index.contents import read_documents
from simlte_st.index.hits import Hit, Hits
from simlte_st.index.queries import Mode, Question, find_answers
from simlte_st.index.reasons import Reasons
from simlte_st.index.snippets import shortened
from simlte_st.index.store import Store

_BEGINNING = 300  # characters


def find_hits(
    store: Store,
    reasons: Callable[[Question, Mapping[str, str]], Reasons],
    questions: Sequence[Question],
    mode: Mode,
    top: int | None,
    threshold: float | None,
    where: str | None,
    why: bool,
) -> list[Hits]:
    """Find the hits of several questions."""
    checked = None if where is None else store.check_filter(where)
    answers = find_answers(store, questions, mode, top, threshold, checked)
    flat = [answer for each in answers for answer in each]
    shown = {one.id: one for one in read_documents(store, list({answer.id: None for answer in flat}))}
    parted = sorted({answer.id for answer in flat if answer.part})
    rows = store.rows_of("id", parted, ["id", "part", "passage"], "part > 0").to_pylist() if parted else []
    passages = {(row["id"], row["part"]): row["passage"] for row in rows}
    metadata = store.metadata()
    found = []
    for question, each in zip(questions, answers, strict=True):
        hits = [
            Hit(
                answer.id,
                answer.score,
                answer.cosine,
                answer.bm25,
                shortened(shown[answer.id].text, _BEGINNING),
                passages.get((answer.id, answer.part)),
                shown[answer.id].metadata or {},
            )
            for answer in each
        ]
        explain = reasons(question, {hit.id: shown[hit.id].text for hit in hits}).of
        found.append(Hits(map(explain, hits) if why else hits, metadata, threshold, explain))
    return found
