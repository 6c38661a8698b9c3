from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import make_document

from benchmarks import languages, languages_page, languages_words
from benchmarks.bank import outcomes
from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.languages_page import (
    ADAPTED,
    BASE,
    DISTILLED,
    MINILM,
    PLAIN,
    ROWS,
    TFIDF,
    TRAINED,
    TRAININGS,
    UNPROMPTED,
)
from simlte_st.data.document import Document
from simlte_st.errors import DataError
from simlte_st.files import read_json


def toy_documents(name: str, clones: Path | None = None) -> list[Document]:
    return [Document(f"{name} {number}", make_document(number), label=str(number % 2)) for number in range(120)]


@pytest.fixture
def base(model: Any, tmp_path: Path) -> Path:
    """A base with a prompt for documents."""
    model.prompts = {"document": "ba bun: "}
    model.save_pretrained(str(tmp_path / "base"))
    return tmp_path / "base"


def test_all_rows_of_a_toy_and_what_is_finished_is_not_made_again(
    base: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("skeletoken", reason="needs the extra static")
    trained: list[dict[str, Any]] = []
    train_for_real: Callable[..., Any] = languages.train

    def train(documents: list[Document], output: str, **settings: Any) -> Any:
        assert len(documents) == 100
        trained.append(settings)
        return train_for_real(documents, output, batch_size=16, **settings)

    monkeypatch.setattr(languages, "train", train)
    monkeypatch.setattr(outcomes, "DRAWS", 1)
    monkeypatch.setattr(languages, "load_language", toy_documents)
    monkeypatch.setattr(languages, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    out = tmp_path / "out"
    out.mkdir()
    command = [
        "--base", str(base), "--work", str(tmp_path / "work"), "--output", str(out), "--documents", "50", "--held-out",
        "50", "--steps", "2", "--sets", "German",
    ]  # fmt: skip
    languages.main(command)
    found = read_json(out / "languages.json")
    german = found["results"]["German"]
    assert {row: len(each) for row, each in german.items()} == {row: 2 if row in TRAININGS else 1 for row in ROWS}
    assert all(settings["keep"] == "trained" and settings["bf16"] is not settings["static"] for settings in trained)
    assert [settings["seed"] for settings in trained] == [0] * 3 + [1] * 3
    assert german[PLAIN][0][FEW] == german[MINILM][0][FEW] != german[BASE][0][FEW], "the prompt is read"
    assert german[ADAPTED][0]["training"] > 0
    assert german[ADAPTED][0][FEW] != german[UNPROMPTED][0][FEW], "training reads it, too"
    assert {"verdict", "probability"} <= set(german[UNPROMPTED][0])

    page = re.sub(" +", " ", (out / "languages.md").read_text(encoding="utf-8"))
    assert all(f"| {row} |" in page for row in ROWS)
    values = [100 * each[FEW] for each in german[TRAINED]]
    assert f"| {TRAINED} | {np.mean(values):.1f} ± {np.std(values, ddof=1):.1f} | {np.mean(values):.1f} |" in page
    gain = 100 * (german[TRAINED][1][FEW] - german[DISTILLED][0][FEW])
    assert f"| {TRAINED}, German | 1 | {gain:+.1f} |" in page
    capsys.readouterr()
    languages.main(command)
    assert "cells/" not in capsys.readouterr().out
    assert len(trained) == 6

    shutil.move(tmp_path / "work" / "cells", tmp_path / "kept")
    languages.main(command)
    assert "cells/" not in capsys.readouterr().out, "the page has them"
    assert read_json(out / "languages.json") == found
    add = ["--seeds", "3", "--rows", UNPROMPTED]
    languages.main([*command, *add])
    assert len(trained) == 7
    assert read_json(out / "languages.json")["results"]["German"][UNPROMPTED][:2] == german[UNPROMPTED]
    with pytest.raises(SystemExit, match="held_out 50, now 20"):
        languages.main([*command, "--held-out", "20"])


def test_english_has_no_share_in_the_mean() -> None:
    length = dict.fromkeys(("documents", "judged", "classes", "words", "tokens"), 100)
    scores = {"German": 0.5, "French": 0.7, "English": 0.9}
    record = {
        "sets": dict.fromkeys(scores, length),
        "results": {name: {TFIDF: [{FEW: score, FULL: score}]} for name, score in scores.items()},
        "environments": [],
        "search": {},
        "words": {},
    }
    assert "| TF-IDF | 50.0 | 70.0 | 90.0 | 60.0 |" in re.sub(" +", " ", languages_page.page(record))


CONLLU = """# sent_id = n01001011
# text = Die Häuser brannten im Norden.
1\tDie\tder\tDET
2\tHäuser\tHaus\tNOUN
3\tbrannten\tbrennen\tVERB
4-5\tim\t_\t_
4\tin\tin\tADP
5\tdem\tder\tDET
6\tNorden\tNorden\tNOUN
7\t.\t.\tPUNCT

# sent_id = n01001012
# text = Ein Haus steht.
1\tEin\tein\tDET
2\tHaus\tHaus\tNOUN
3\tsteht\tstehen\tVERB

# sent_id = n01002011
# text = Das Haus brannte.
1\tDas\tder\tDET
2\tHaus\tHaus\tNOUN
3\tbrannte\tbrennen\tVERB
"""


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A treebank of two documents."""
    path = tmp_path / "clones" / "UD_German-PUD" / "de_pud-ud-test.conllu"
    path.parent.mkdir(parents=True)
    path.write_text(CONLLU + "\n", encoding="utf-8")
    return tmp_path / "clones"


def test_a_treebank_by_document_and_what_its_queries_should_find(clones: Path) -> None:
    treebank = languages_words.read_treebank("German", clones)
    assert [document.text for document in treebank.documents] == [
        "Die Häuser brannten im Norden. Ein Haus steht.",
        "Das Haus brannte.",
    ]
    assert treebank.lemmas["Haus NOUN"] == {"häuser": {0}, "haus": {0, 1}}
    assert treebank.forms["im"] == {0}
    assert "in" not in treebank.forms, "it is not written so"
    found = languages_words.queries(treebank)
    assert sorted(each[:2] for each in found["inflected"]) == [
        ("brannte", "brannte"), ("brannten", "brannten"), ("häuser", "häuser"),
    ], "the form that all documents have is not asked for"  # fmt: skip
    by_stem = {query: relevant for query, _, relevant, _ in found["inflected"]}
    assert by_stem == {"brannte": {0, 1}, "brannten": {0, 1}, "häuser": {0, 1}}
    assert [each[3] for each in found["inflected"]] == [{0, 1}] * 3
    assert [each[:2] for each in found["without accents"]] == [("hauser", "häuser")]


def test_words_that_are_written_as_one_count_for_the_only_inflected_one() -> None:
    rows = [
        line.split("\t")
        for line in ("1-2\tوالكتاب\t_\t_", "1\tو\tو\tCCONJ", "2\tالكتاب\tكِتَاب\tNOUN", "3\tهنا\tهنا\tADV")
    ]
    assert list(languages_words.written_words(rows)) == [("والكتاب", "كِتَاب", "NOUN"), ("هنا", "هنا", "ADV")]


def test_accents_are_taken_from_latin_letters_only() -> None:
    words = {"café": "cafe", "étés": "etes", "häuser": "hauser", "ёлка": "ёлка", "की": "की"}
    assert {word: languages_words.without_accents(word) for word in words} == words


def test_recall_of_a_toy(
    clones: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    work = tmp_path / "work"
    command = ["--clones", str(clones), "--base", str(base), "--work", str(work), "--languages", "German", "--sets"]
    languages_words.main([*command, "--called", "this one"])
    found = read_json(work / "search" / "this one" / "German.json")["result"]
    assert found["inflected"]["queries"] == 3
    assert found["inflected"]["hybrid lemma @10"] == 1, "of two documents"
    assert 0 < found["inflected"]["precision"] <= 1
    assert 0 < found["inflected"]["text lemma"] <= 1
    with pytest.raises(DataError, match=r"git clone .*/UD_French-PUD"):
        languages_words.main([*command, "--called", "this one", "--languages", "French"])

    record = {"sets": {}, "results": {}, "environments": [], "words": {}, "search": {"old": {"German": found}}}
    page = re.sub(" +", " ", languages_page.page(record))
    kind = found["inflected"]
    assert (
        f"| German | 3 | {kind['text stem']:.0%} | {kind['text lemma']:.0%} | {kind['precision']:.0%} | 100% |" in page
    )
