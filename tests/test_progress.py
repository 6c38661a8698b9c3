from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator

import pytest
from sentence_transformers import SentenceTransformer

from simlte_st.evaluation.comparison import compare_halves
from simlte_st.progress import complete, counting_texts, logs_above_bars, progress_bar, with_progress_bar


def test_a_bar_has_a_name_and_the_total_of_its_items(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress_bar([1, 2, 3], "Counting")) == [1, 2, 3]
    last = capsys.readouterr().err.rstrip("\n").split("\r")[-1]
    assert last.startswith("Counting: 100%")
    assert "3/3" in last
    assert list(with_progress_bar([1, 2], "Counting", shown=False)) == [1, 2]
    assert capsys.readouterr().err == ""


def test_a_total_that_was_too_high_is_put_right_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    list(with_progress_bar(iter("ab"), "Reading", 5))
    assert "2/2" in capsys.readouterr().err.rstrip("\n").split("\r")[-1]
    with progress_bar("Reading", shown=True) as bar:
        bar.update(3)
        complete(bar)
    assert "3doc" in capsys.readouterr().err, "without a total there is none to put right"


def test_an_error_closes_the_bar_once(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("The disk is gone.")

    with pytest.raises(OSError, match="gone"):
        list(with_progress_bar(broken(), "Reading", 2))
    text = capsys.readouterr().err
    assert text.endswith("\n"), "the next line of the terminal is free"
    assert "1/2" in text, "not said to be complete"


def test_texts_are_counted_while_a_model_encodes(model: SentenceTransformer, documents: list[str]) -> None:
    with progress_bar("Encoding", len(documents), shown=True) as bar:
        with counting_texts(model, bar):
            with_bar = model.encode(documents, batch_size=10)
        assert bar.n == len(documents)
        without = model.encode(documents, batch_size=10)
        assert bar.n == len(documents)
    assert (with_bar == without).all()


def test_what_is_encoded_is_named(
    model: SentenceTransformer, documents: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    compare_halves({"models/tiny": model}, documents[:6], progress=True)
    text = capsys.readouterr().err
    assert re.search(r"\(tiny\): 100%", text)
    assert "12/12" in text
    assert "Batches" not in text


def test_log_lines_stand_above_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    monkeypatch.setattr(logging.root, "handlers", [handler])
    with logs_above_bars(), progress_bar("Training", 4):
        logging.getLogger("simlte_st").warning("A line.")
    assert "A line." in capsys.readouterr().err.replace("\r", "\n").split("\n"), "on a line of its own"
    assert logging.root.handlers == [handler]
    monkeypatch.setattr(logging.root, "handlers", [])
    with logs_above_bars():
        assert logging.root.handlers == []
