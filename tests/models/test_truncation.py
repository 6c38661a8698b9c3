"""Reports on truncation count prompts too, and their advice works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from simlte_st.models.encode import encode_documents
from simlte_st.models.loading import load_model
from simlte_st.models.truncation import Truncation, prompt_as_read, text_lengths, warn_of_truncation
from simlte_st.search import Index

TEXTS = ["ba bun bis", "ba " * 100, "bo " * 62, "bo " * 63]


@pytest.mark.parametrize("prompt", [None, "", "ba bei bo: "])
def test_counts_match_the_tokenizer(model: SentenceTransformer, prompt: str | None) -> None:
    truncation = Truncation.of(model, prompt=prompt).add(text_lengths(model, TEXTS, prompt))
    before, tokenizer = prompt or "", model.tokenizer
    whole = [len(tokenizer(before + text)["input_ids"]) for text in TEXTS]
    read = [len(tokenizer(before + text, truncation=True, max_length=64)["input_ids"]) for text in TEXTS]
    lost = [all_of - part for all_of, part in zip(whole, read, strict=True)]
    assert (truncation.texts, truncation.cut_texts, truncation.cut_tokens) == (4, sum(map(bool, lost)), sum(lost))
    assert truncation.tokens == 3 + 100 + 62 + 63
    assert (truncation.max_seq_length, truncation.taken) == (64, 2 + 4 * bool(prompt))


def test_default_prompt_reduces_the_budget(model: SentenceTransformer) -> None:
    model.prompts, model.default_prompt_name = {"document": "ba bei bo: "}, "document"
    truncation = Truncation.of(model).add(text_lengths(model, ["bo " * 58, "bo " * 59]))
    assert prompt_as_read(model) == "ba bei bo: "
    assert (truncation.budget, truncation.cut_texts, truncation.cut_tokens) == (58, 1, 1)
    said = "reads the first 64 tokens of a text: 1 of 2 texts is longer; 0.9% of all tokens are"
    assert said in truncation.summary()


def test_advice_names_the_model(encoder_path: Path, tmp_path: Path) -> None:
    (tmp_path / "my own model").symlink_to(encoder_path)
    truncation = Truncation.of(load_model(tmp_path / "my own model").model).add([62])
    assert truncation.advice == ""
    name = shlex.quote(f"{tmp_path}/my own model")
    assert truncation.add([63]).advice.startswith(f"simlte convert {name} --output LONGER ")


def test_trained_model_is_not_mistaken_for_its_base(model: SentenceTransformer, tmp_path: Path) -> None:
    pairs = Dataset.from_dict({"anchor": TEXTS, "positive": TEXTS})
    arguments = SentenceTransformerTrainingArguments(tmp_path, max_steps=1, report_to="none", use_cpu=True)
    SentenceTransformerTrainer(model, arguments, pairs, loss=MultipleNegativesRankingLoss(model)).train()
    assert Truncation.of(model).add([100]).advice.startswith("simlte convert MODEL --output LONGER ")
    model.save_pretrained(str(tmp_path / "trained"))
    assert Truncation.of(load_model(tmp_path / "trained").model).model == str(tmp_path / "trained")


def test_truncation_warning_comes_before_encoding(
    model: SentenceTransformer,
    static_model: SentenceTransformer,
    documents: list[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    short = [text[:100] for text in documents]
    warn_of_truncation(model, short)
    warn_of_truncation(static_model, documents)
    assert caplog.messages == []
    long = [text * 4 for text in documents] * 2
    warn_of_truncation(model, long, "{times:.1f} times the work")
    read = Truncation.of(model).add(text_lengths(model, long[:64]))
    share = read.cut_tokens / read.tokens
    [said] = caplog.messages
    assert said.startswith(f"About {share:.0%} of the text will be truncated. ")
    assert said.endswith(f"{1 + 1 / (1 - share):.1f} times the work")
    caplog.clear()
    report = encode_documents(model, long, tmp_path / "v.parquet")
    assert " are longer; " in report.summary()
    assert re.search(r"truncated\. simlte convert .* whole texts; simlte index --parts finds texts", caplog.messages[0])
    caplog.clear()
    for parts in (False, True):
        Index.create(tmp_path / f"index-{parts}", model, parts=parts).add(long[:30])
    said = [message for message in caplog.messages if "truncated" in message]
    assert len(said) == 1
    assert re.search(r"parts=True finds documents by all of their text, for about \d+\.\d times the work\.", said[0])
