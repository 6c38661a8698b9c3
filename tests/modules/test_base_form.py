from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

import simlte_st
from simlte_st.errors import MissingExtraError
from simlte_st.modules import BaseForm, base_form, expand_contractions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She won't, it's Ann's.", "She will not, it is Ann's."),
        ("Can't you? I don't.", "Can not you? I do not."),
        ("I'm sure you're right", "I am sure you are right"),
        ("we've seen they'll go, he'd too", "we have seen they will go, he would too"),
        ("WON'T! I'D", "WILL NOT! I would"),
        ("let's go", "let us go"),
        ("It\u2019s John\u2019s; they\u2019re here", "It is John\u2019s; they are here"),
        ("you shouldn't've", "you should not have"),
        ("that's what  it's\tnot", "that is what  it is\tnot"),
    ],
)  # fmt: skip
def test_contractions_are_written_out(text: str, expected: str) -> None:
    assert list(expand_contractions([text])) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "the dogs' tails",
        "James' book",
        "Ann's hat",
        "rock 'n' roll of the '90s",
        "o'clock",
        "ain't it",
        "cannot",
        "'",
        "",
    ],
)
def test_all_else_stays(text: str) -> None:
    assert list(expand_contractions([text])) == [text]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab'\u2019tnslwo \u0130\n", max_size=30))
def test_nothing_but_contractions_is_lost(text: str) -> None:
    [found] = expand_contractions([text])
    letters = [sign for sign in text if not sign.isalpha() and sign not in "'\u2019 "]
    assert [sign for sign in found if not sign.isalpha() and sign not in "'\u2019 "] == letters
    assert list(expand_contractions([found])) == [found] or "'" in found or "\u2019" in found


def make(bert_path: Path) -> SentenceTransformer:
    return SentenceTransformer(modules=[BaseForm(str(bert_path)), Pooling(32, "mean")], device="cpu")


def test_a_model_reads_the_base_form(bert_path: Path, tmp_path: Path) -> None:
    plain = SentenceTransformer(modules=[Transformer(str(bert_path)), Pooling(32, "mean")], device="cpu")
    model = make(bert_path)
    short, long = ["We don't.", "It's Ann's."], ["We do not.", "It is Ann's."]
    assert (model.encode(short) == plain.encode(long)).all()
    assert (model.encode(short) != plain.encode(short)).any()
    model.save_pretrained(str(tmp_path / "model"))
    for loaded in (
        simlte_st.SentenceTransformer(str(tmp_path / "model"), device="cpu"),
        SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True),
    ):
        assert isinstance(loaded[0], BaseForm)
        assert (loaded.encode(short) == plain.encode(long)).all()
    pairs = model.preprocess([("We don't.", "It's"), ("a", "b")])["input_ids"]
    assert torch.equal(pairs, plain.preprocess([("We do not.", "It is"), ("a", "b")])["input_ids"])


def test_without_spacy_the_extra_is_named(bert_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*names: str) -> None:
        raise MissingExtraError(f"{names[2]} needs {names[0]}: pip install simlte-st[{names[1]}]")

    base_form._english.cache_clear()
    monkeypatch.setattr(base_form, "require", missing)
    with pytest.raises(MissingExtraError, match=r"simlte-st\[pos\]"):
        make(bert_path)
