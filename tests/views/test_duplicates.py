"""Exact and near-duplicates: which are found, and which documents remain."""

from __future__ import annotations

import json
import math
import random
import re
import time
import tracemalloc
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import WORDS, make_document, write_jsonl

from simlte_st.data import dedupe, read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.views.duplicates import find_duplicates

TEXTS = [make_document(number) for number in range(30)]


def with_words_changed(text: str, count: int, seed: int = 0) -> str:
    draw = random.Random(seed)
    words = text.split()
    for place in draw.sample(range(len(words)), count):
        words[place] = "changed" + draw.choice(WORDS)
    return " ".join(words)


def group_chunks(documents: Any, **settings: Any) -> list[int]:
    return find_duplicates(documents, **settings).groups.tolist()


def test_different_documents_are_in_different_groups() -> None:
    found = find_duplicates(TEXTS)
    assert found.groups.dtype == np.int64
    assert found.groups.tolist() == list(range(30))
    assert asdict(found.report) == {"documents": 30, "exact": 0, "near": 0, "groups": 0}


@pytest.mark.parametrize("near", [False, True])
def test_case_punctuation_and_white_space_are_ignored(near: bool) -> None:
    text = TEXTS[0]
    copies = [text, TEXTS[1], text.upper(), text.replace(" ", "\n\n  "), text.replace(".", " —!"), "\u200b" + text]
    found = find_duplicates(copies, near=near)
    assert found.groups.tolist() == [0, 1, 0, 0, 0, 0]
    assert asdict(found.report) == {"documents": 6, "exact": 4, "near": 0, "groups": 1}


@pytest.mark.parametrize(
    ("one", "other", "groups"),
    [
        *((*pair, [0, 1]) for pair in (("C++", "C#"), ("año", "ano"), ("ma", "má"), ("🌊", "🔥"), ("काम", "कम"))),
        ("Do\u00adnau\u00addampfschiff fährt", "Donaudampfschiff fährt", [0, 0]),
        ("ذَهَبَ الطَّالِبُ", "ذهب الطالب", [0, 0]),
        ("كتـــاب", "كتاب", [0, 0]),
        ("im Jahr ١٩٨٤", "im Jahr 1984", [0, 0]),
        ("Straße", "STRASSE", [0, 0]),
    ],
)
def test_only_invisible_differences_are_ignored(one: str, other: str, groups: list[int]) -> None:
    assert group_chunks([one, other], near=False) == group_chunks([one, other]) == groups


def test_changed_word_is_only_a_near_duplicate() -> None:
    copies = [TEXTS[0], TEXTS[1], with_words_changed(TEXTS[0], 1)]
    assert group_chunks(copies, near=False) == [0, 1, 2]
    found = find_duplicates(copies)
    assert found.groups.tolist() == [0, 1, 0]
    assert asdict(found.report) == {"documents": 3, "exact": 0, "near": 1, "groups": 1}
    assert re.match(r"Duplicates: 1 of 3 .*\(0 exact, 1 near\), in 1", found.report.summary())


def jaccard(one: str, other: str) -> float:
    runs = [{tuple(words[i : i + 5]) for i in range(len(words) - 4)} for words in (one.split(), other.split())]
    return len(runs[0] & runs[1]) / len(runs[0] | runs[1])


def test_duplicates_resemble_the_first_of_their_group() -> None:
    words = random.Random(1).choices(WORDS, k=400)
    # Each is similar to the next one, but the first and the last are not similar.
    chain = [" ".join(words[start : start + 300]) for start in (0, 35, 70)]
    assert group_chunks(chain) == [0, 0, 2]
    assert group_chunks([chain[0], chain[2], chain[1]]) == [0, 1, 0]
    # A copy of a text that is itself a near-duplicate.
    assert group_chunks([chain[0], chain[1], chain[1].upper(), TEXTS[0], chain[0]]) == [0, 0, 0, 3, 0]
    drafts = [" ".join(f"{turn if place < 4 * turn else 0}w{place}" for place in range(100)) for turn in range(24)]
    for number, first in enumerate(group_chunks(drafts)):
        assert jaccard(drafts[number], drafts[first]) >= 0.75


@pytest.mark.parametrize("threshold", [1e-9, 0.6, 0.75, 1.0])
def test_similarity_threshold_is_exact(threshold: float) -> None:
    draw = random.Random(5)
    words = [f"w{number}" for number in range(90)]
    texts = []
    for _ in range(60):  # parts of one text, with some words of their own
        start, length = draw.randrange(6), draw.randrange(30, 80)
        texts.append(" ".join(word if draw.random() > 0.01 else "own" for word in words[start : start + length]))
    wanted: list[int] = []
    for number, text in enumerate(texts):
        kept = [other for other in range(number) if wanted[other] == other]
        alike = (other for other in kept if texts[other] == text or jaccard(text, texts[other]) >= threshold)
        wanted.append(next(alike, number))
    assert group_chunks(texts, similarity=threshold) == wanted
    assert len(set(wanted)) < 60 or threshold == 1.0


def own_words(own: int, draw: random.Random) -> list[str]:
    template = [f"t{number}" for number in range(60)]
    return [" ".join([*template[:30], *unlike(own, draw), *template[30:]]) for _ in range(1500)]


def chosen_paragraphs(chosen: int, draw: random.Random) -> list[str]:
    paragraphs = [" ".join(unlike(12, draw)) for _ in range(20)]
    return [" ".join(paragraphs[place] for place in sorted(draw.sample(range(20), chosen))) for _ in range(1500)]


def unlike(words: int, draw: random.Random) -> list[str]:
    return [f"w{draw.randrange(5000)}" for _ in range(words)]


@pytest.mark.parametrize(("template", "own"), [(own_words, 9), (chosen_paragraphs, 10)])
def test_documents_of_one_template_are_compared_quickly(template: Any, own: int) -> None:
    def seconds(texts: list[str]) -> float:
        begin = time.process_time()
        find_duplicates(texts)
        return time.process_time() - begin

    draw = random.Random(0)
    alike = template(own, draw)
    others = [" ".join(unlike(len(text.split()), draw)) for text in alike]
    seconds(others[:50])  # warm up: some tables are built once
    assert seconds(alike) < 5 * seconds(others)


def test_short_and_odd_documents() -> None:
    texts = ["", "Ba bun.", "ba BUN", "Ba cis.", "!!!", "???", "!!!", " ", "今日は天気がいい。", "今日は 天気がいい"]
    assert group_chunks(texts) == [0, 1, 1, 3, 4, 5, 4, 0, 8, 8]
    assert group_chunks([]) == []
    with pytest.raises(ConfigurationError, match=r"similarity=0\.0"):
        find_duplicates(TEXTS, similarity=0.0)


def test_large_group_of_near_duplicates_takes_little_memory() -> None:
    page = " ".join(f"word{number}" for number in range(200))
    tracemalloc.start()
    found = find_duplicates([f"{page} page {number}" for number in range(400)], near=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(found.groups.tolist()) == {0}
    assert peak < 30_000_000


FEW = [make_document(number) for number in range(6)]
NEAR = f"{FEW[1]} One more."


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_dedupe_keeps_the_first_of_each_group(tmp_path: Path) -> None:
    source, output = tmp_path / "pile.jsonl", tmp_path / "kept.jsonl"
    texts = [*FEW, NEAR, FEW[0].upper(), "\u2028 été"]
    rows = [{"doc_id": f"d{number}", "body": text, "year": 2000 + number} for number, text in enumerate(texts)]
    rows[1]["year"] = math.nan
    write_jsonl(source, rows)
    report = dedupe(source, output)
    rows[1]["year"] = None  # JSON has no NaN
    assert lines(output) == [*rows[:6], rows[8]]
    assert lines(tmp_path / "kept.removed.jsonl") == [{"id": "d6", "copy_of": "d1"}, {"id": "d7", "copy_of": "d0"}]
    assert (report.kept, report.copies.exact, report.copies.near) == (7, 1, 1)
    assert re.match(r"Duplicates: 2 of 9 .*\(1 exact, 1 near\), in 2 groups\. 7", report.summary())
    assert [each.text for each in read_documents(output)] == [*FEW, texts[8]]

    assert dedupe(source, output, near=False, overwrite=True).kept == 8
    assert dedupe(source, output, similarity=1.0, overwrite=True).kept == 8


def test_unwritable_output_is_reported_first(tmp_path: Path) -> None:
    source = tmp_path / "kept.jsonl"
    source.write_text('{"text": "a b c"}\n')
    with pytest.raises(ConfigurationError, match="would overwrite the input documents"):
        dedupe(source, source, overwrite=True)
    (tmp_path / "other.removed.jsonl").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"other\.removed\.jsonl already exists"):
        dedupe(source, tmp_path / "other.jsonl")


class Turning(list[str]):
    """A list that rotates each time it is read."""

    def __iter__(self) -> Any:
        self.insert(0, self.pop())
        return super().__iter__()


def test_changing_source_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="changed while it was being read"):
        dedupe(Turning(FEW), tmp_path / "kept.jsonl")
    with pytest.raises(DataError, match="only be read once"):
        dedupe(iter(FEW), tmp_path / "kept.jsonl")
    assert list(tmp_path.iterdir()) == []
