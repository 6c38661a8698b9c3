from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.evaluation.comparison import compare_halves
from simlte_st.models import pace
from simlte_st.models.conversion import convert_base
from simlte_st.models.pace import TokenBar, reading
from simlte_st.models.passes import TextReader
from simlte_st.models.truncation import text_lengths


def states_of(bar: TokenBar) -> list[tuple[float, float | None]]:
    """Note what a bar shows, each time that it is moved."""
    seen: list[tuple[float, float | None]] = []
    move = bar._bar.update

    def update(tokens: float = 1) -> None:
        move(tokens)
        seen.append((bar._bar.n, bar._bar.total))

    bar._bar.update = update
    return seen


@pytest.mark.parametrize("kind", ["encoder", "longformer", "chunk-mean", "static"])
def test_it_moves_with_every_pass_to_the_tokens_of_all_texts(
    kind: str, encoder_path: Path, static_model: SentenceTransformer, tmp_path: Path, documents: list[str]
) -> None:
    model = static_model
    if kind == "encoder":
        model = SentenceTransformer(str(encoder_path), device="cpu")
    elif kind != "static":
        convert_base(str(encoder_path), tmp_path / "model", backbone=kind, max_length=512)
        model = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    texts = documents * 4
    with TokenBar(model, "Encoding", len(texts), shown=True) as bar:
        seen = states_of(bar)
        bar.begin(len(texts))
        with bar.reading(texts):
            reader = TextReader(model, 8, texts)
            reader.model.encode(texts, batch_size=reader.batch_size)
    read = sum(min(length + 2, model.max_seq_length or length) for length in text_lengths(model, texts))
    if kind == "static":
        read = sum(text_lengths(model, texts))
    assert read <= bar._bar.n <= 1.2 * read, "special tokens of chunks and some padding count"
    moved = [n for n, _ in seen if n]
    assert moved == sorted(moved)
    assert len(set(moved)) > (0 if kind == "static" else 5)  # a static one reads a million characters at once
    assert bar._bar.total == bar._bar.n


@pytest.mark.parametrize("documents_in_all", [30, None])
def test_documents_that_have_not_been_read_count_as_the_mean_so_far(
    model: SentenceTransformer, documents: list[str], documents_in_all: int | None
) -> None:
    with TokenBar(model, "Indexing", documents_in_all, shown=True) as bar:
        for start in (0, 10):
            bar.begin(10)
            with bar.reading(documents[start : start + 10]):
                model.encode(documents[start : start + 10])
        bar.begin(5)  # of which none has to be read
        n, total = bar._bar.n, bar._bar.total
        assert total is None if documents_in_all is None else total == pytest.approx(n * 30 / 25)
        assert documents_in_all is None or bar._bar.postfix == "20 of 30 documents"


def test_a_resumed_run_counts_what_was_made_before_and_not_its_pace(
    model: SentenceTransformer, documents: list[str]
) -> None:
    with TokenBar(model, "Encoding", 20, shown=True) as bar:
        bar.skip(documents[:10])
        assert bar._bar.initial == bar._bar.n > 0
        bar.begin(10)
        with bar.reading(documents[10:20]):
            model.encode(documents[10:20])
        assert bar._bar.n > 1.5 * bar._bar.initial


def test_a_bar_that_is_not_shown_neither_counts_nor_speaks(
    model: SentenceTransformer, documents: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with reading(model, "Encoding", documents, shown=False):
        assert not any(module._forward_hooks for module in model.modules())
        model.encode(documents)
    assert capsys.readouterr().err == ""


def test_hooks_are_gone_after_an_error(model: SentenceTransformer) -> None:
    with pytest.raises(OSError, match="gone"), reading(model, "Encoding", ["A text."], shown=True):
        raise OSError("The disk is gone.")
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(("seconds", "said"), [(2.0, True), (0.01, False)])
def test_the_cost_of_long_work_is_said_once_and_how_to_have_it_cheaper(
    model: SentenceTransformer,
    documents: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    seconds: float,
    said: bool,
) -> None:
    now = 100.0
    monkeypatch.setattr(pace.time, "perf_counter", lambda: now)
    caplog.set_level(logging.INFO, "simlte_st")
    with TokenBar(model, "Indexing", 1_000, shown=True) as bar:
        for text in documents[:8]:
            bar.begin(1)
            with bar.reading([text]):
                now += seconds
                model.encode([text])
    about = r"Indexing takes about 33 minutes: [\d,]+ tokens, \d+ a second\. simlte-static .* limit= tries fewer"
    assert [bool(re.match(about, message)) for message in caplog.messages] == [True] * said


def test_what_is_encoded_is_named(
    model: SentenceTransformer, documents: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    compare_halves({"models/tiny": model}, documents[:6], progress=True)
    text = capsys.readouterr().err
    assert re.search(r"\(tiny\): 100%.*12 of 12 documents", text)
    assert "Batches" not in text


def test_a_model_of_word_vectors_has_a_bar_too(documents: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from sentence_transformers.sentence_transformer.modules import BoW

    model = SentenceTransformer(modules=[BoW(vocab=["one", "two"])], device="cpu")
    with reading(model, "Encoding", documents, shown=True), torch.inference_mode():
        model.encode(documents)
    assert "100%" in capsys.readouterr().err
