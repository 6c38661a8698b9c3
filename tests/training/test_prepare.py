from __future__ import annotations

from operator import length_hint
from pathlib import Path

from simlte_st.training.prepare import HeldOut

from simlte_st.data import DocSplit, DocSplitTransform, Document

CORPUS = [Document(f"d{number}", "text") for number in range(2000)]


def test_a_share_is_diverted_whatever_the_order() -> None:
    forward, backward = HeldOut(0.1, seed=1), HeldOut(0.1, seed=1)
    rest = list(forward.divert(CORPUS))
    list(backward.divert(CORPUS[::-1]))
    assert 150 < len(forward.documents) < 250
    assert {*rest, *forward.documents} == {*CORPUS}
    assert len(rest) + len(forward.documents) == len(CORPUS)
    assert {d.id for d in forward.documents} == {d.id for d in backward.documents}
    other = HeldOut(0.1, seed=2)
    list(other.divert(CORPUS))
    assert {d.id for d in other.documents} != {d.id for d in forward.documents}


def test_of_few_documents_more_are_held_out_whatever_the_order() -> None:
    for number in (120, 400, 900):
        forward, backward = HeldOut(0.1), HeldOut(0.1)
        rest = list(forward.divert(CORPUS[:number]))
        list(backward.divert(CORPUS[:number][::-1]))
        assert {d.id for d in forward.documents} == {d.id for d in backward.documents}
        assert {*rest, *forward.documents} == {*CORPUS[:number]}
        assert len(forward.documents) <= 100 or number == 900
    few = HeldOut(0.1)
    list(few.divert(CORPUS[:120]))
    assert 20 < len(few.documents) < 55, "three times the share at most"
    exactly = HeldOut(0.1)
    list(exactly.divert(CORPUS[:600]))
    assert len(exactly.documents) == 100


def test_no_more_than_asked_for_and_none_at_zero() -> None:
    few, none = HeldOut(0.5, most=10), HeldOut(0.0)
    assert len(list(few.divert(CORPUS))) == 1990
    assert list(none.divert(CORPUS)) == CORPUS


def test_how_many_are_left_to_train_on_is_told_before_they_are_read() -> None:
    assert length_hint(HeldOut().divert(CORPUS)) == len(CORPUS) - 200
    assert length_hint(HeldOut().divert(CORPUS[:50])) == 50 - 15, "of few, three times the share"
    assert length_hint(HeldOut(share=0.0).divert(CORPUS)) == len(CORPUS)
    assert length_hint(HeldOut().divert(iter([])), -1) == 0
    assert length_hint(HeldOut().divert(document for document in CORPUS), -1) == -1


def test_no_text_is_both_trained_on_and_held_out(tmp_path: Path) -> None:
    texts = [f"Number {number} begins. And it ends." for number in range(300)]
    corpus = [Document(f"{turn}-{number}", text) for turn in range(3) for number, text in enumerate(texts)]
    holder, views = HeldOut(0.1), DocSplitTransform(DocSplit())
    trained = views.attach(corpus, directory=tmp_path, hold_out=holder.divert).with_format(None)
    held = [document.text for document in holder.documents]
    left = [" ".join(sentences).replace("  ", " ") for sentences in trained["sentences"][:]]
    assert sorted([*held, *left]) == sorted(texts), "each text once, whichever of its copies would be held out"
    assert {document.id[:2] for document in holder.documents} == {"0-"}, "the first copy decides"
    assert views.report is not None
    assert views.report.left_out == {"exact copy of another document": 600}
