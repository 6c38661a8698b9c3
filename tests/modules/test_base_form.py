from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

import simlte_st
from simlte_st.modules import BaseForm, expand_contractions
from simlte_st.search.encoder import Encoder


def expanded(text: str) -> str:
    [found] = expand_contractions([text])
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She won't, it's Ann's.", "She will not, it is Ann's."),
        ("I'm sure you're right", "I am sure you are right"),
        ("we've seen they'll go, he'd too", "we have seen they will go, he would too"),
        ("let's go; here's how", "let us go; here is how"),
        ("It\u2019s it\u2018s it\u02bcs John\u2019s; DON\u2019T", "It is it is it is John\u2019s; DO not"),
        ("that's what  it's\tnot", "that is what  it is\tnot"),
        # more than one
        ("you shouldn't've, I'd've been", "you should not have, I would have been"),
        ("someone's've, y'all're, they'dn't", "someone's have, y'all are, they would not"),
        # stems that are words keep their tense
        ("I didn't go. We hadn't met.", "I did not go. We had not met."),
        ("Can't you? Shan't I? I don't.", "can not you? shall not I? I do not."),
        # nothing around them changes
        ("(won't)", "(will not)"),
        ('"Can\'t you?" _don\'t_', '"can not you?" _do not_'),
        ("Why\ncan't I--it's 'here'", "Why\ncan not I--it is 'here'"),
        # 's and 'd
        ("it's been, He's got it, she's\nhad", "it has been, He has got it, she has\nhad"),
        ("you'd better, it'd been, we'd had, he'd got", "you had better, it had been, we had had, he had got"),
        ("it's not been, I'd never had", "it has not been, I had never had"),
        ("it's better, it's not", "it is better, it is not"),
        # texts split into tokens
        ("i ca n't , they 're n't , I 'm", "i can not , they are not , I am"),
        ("the film 's end ; it 's it 's been", "the film 's end ; it is it has been"),
        ("I 'd 've , I 'd've , the 2 'll , couldn't 've", "I would have , I would have , the 2 will , could not have"),
        ("so n't , them 'm , AI 've n't", "so not , them am , AI have not"),
        # for any word before them
        ("should've could've that've Tom'll AI've Wo'll", "should have could have that have Tom will AI have Wo will"),
        # case
        ("WON'T! I'D I'M IT'S IT's let'S", "will not! I would I am IT is IT is let us"),
        ("Won't CAN'T It'll WO N'T It's BEEN", "will not can not It will will not It has BEEN"),
        ("it'\u017f \u0130'll", "it is \u0130 will"),
    ],
)  # fmt: skip
def test_contractions_are_expanded(text: str, expected: str) -> None:
    assert expanded(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "the dogs' tails", "James' book", "Ann's hat, Ann 's hat", "how'd you know", "rock 'n' roll of the '90s",
        "someone's car, everybody's, nobody's fault, nothing's, Tom'd", "give 'em, give\n'em", "'re 'd've, n't",
        "o'clock, ma'm, con't, I'ma, she'lls, they're2", "ain't it, ai n't, AIN'T, y'all", "they 're-elect' him, '",
        "cannot", "",
    ],
)  # fmt: skip
def test_other_apostrophes_stay(text: str) -> None:
    assert expanded(text) == text


TOLD = [("won't", "will not"), ("It\u2019s", "It is"), ("I'D", "I would"), ("Tom'll", "Tom will"), ("'em", "'em")]
TOLD += [(word, word) for word in ("Ann's", "ain't", "dogs'", "a_b", "\u0130x", "5'6")]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(TOLD), st.sampled_from([" ", "\n", ") (", "--", '." ', "  \t", "\u2026"]))))
def test_only_contractions_change(parts: list[tuple[tuple[str, str], str]]) -> None:
    text = "".join(written + between for (written, _), between in parts)
    assert expanded(text) == "".join(meant + between for (_, meant), between in parts)


@pytest.mark.parametrize("text", ["a" * 300_000 + "'", "a" + "'ll" * 50_000 + "x", "it's" + " " * 300_000 + "x"])
def test_expansion_takes_linear_time(text: str) -> None:
    began = time.process_time()
    expanded(text)
    assert time.process_time() - began < 2  # takes seconds; backtracking at each character would take minutes


def make(bert_path: Path) -> SentenceTransformer:
    return SentenceTransformer(modules=[BaseForm(str(bert_path)), Pooling(32, "mean")], device="cpu")


def test_model_reads_the_base_form(bert_path: Path, model: SentenceTransformer, tmp_path: Path) -> None:
    expander = make(bert_path)
    short, long = ["We don't.", "It's Ann's."], ["We do not.", "It is Ann's."]
    assert (expander.encode(short) == model.encode(long)).all()
    assert (expander.encode(short) != model.encode(short)).any()
    expander.save_pretrained(str(tmp_path / "model"))
    assert "BaseForm({'transformer_task'" in (tmp_path / "model" / "README.md").read_text()
    for kind in (simlte_st.SentenceTransformer, SentenceTransformer):
        loaded = kind(str(tmp_path / "model"), device="cpu")
        assert isinstance(loaded[0], BaseForm)
        assert (loaded.encode(short) == model.encode(long)).all()


@pytest.mark.parametrize(
    ("inputs", "meant"),
    [
        ([("We don't.", "It's"), ("a", "b")], [("We do not.", "It is"), ("a", "b")]),
        ([["We don't.", "It's"]], [["We do not.", "It is"]]),
        ([{"text": "We don't."}], ["We do not."]),
        (["it won't " * 50], ["it will not " * 50]),  # 64 tokens are read
        (["", "We don't."], ["", "We do not."]),
        ([""], [""]),
    ],
)
def test_every_type_of_input(inputs: list[Any], meant: list[Any], bert_path: Path, model: SentenceTransformer) -> None:
    found, expected = make(bert_path).preprocess(inputs), model.preprocess(meant)
    assert torch.equal(found["input_ids"], expected["input_ids"])
    assert torch.equal(found["attention_mask"], expected["attention_mask"])


def test_prompt_length_counts_the_expanded_prompt(bert_path: Path, model: SentenceTransformer) -> None:
    expander = make(bert_path)
    found = expander.preprocess(["We can't.", "It's"], prompt="Don't think: ")
    expected = model.preprocess(["We can not.", "It is"], prompt="Do not think: ")
    assert torch.equal(found["input_ids"], expected["input_ids"])
    assert found["prompt_length"] == expected["prompt_length"] == 5  # [CLS] do not think :
    for each in (expander, model):
        each.set_pooling_include_prompt(False)
    encoded = model.encode("We can not.", prompt="Do not think: ")
    assert (expander.encode("We can't.", prompt="Don't think: ") == encoded).all()
    pairs = expander.preprocess([("We can't.", "It's")], prompt="Don't think: ")["input_ids"]
    assert torch.equal(pairs, model.preprocess([("We can not.", "It is")], prompt="Do not think: ")["input_ids"])


def test_truncation_counts_expanded_tokens(bert_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = simlte_st.SentenceTransformer(modules=list(make(bert_path)), device="cpu")
    model.max_seq_length = 12
    fits, longer = "won't " * 5, "won't " * 6  # two tokens each, where "won't" itself has three
    caplog.clear()  # messages from loading
    with caplog.at_level("WARNING", "simlte_st"):
        model.encode([fits], prompt="")
        assert caplog.messages == []
        model.encode([fits], prompt="it's ")
    assert "20.0%" in caplog.text  # 2 of 10; "it is" before them is the prompt's
    report = simlte_st.encode_documents(model, [fits, longer], tmp_path / "v.parquet")
    counted = report.truncation
    assert (counted.tokens, counted.cut_texts, counted.cut_tokens) == (22, 1, 2)
    assert Encoder(model).count([fits]) == [10]
