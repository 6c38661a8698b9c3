from __future__ import annotations

import pytest
import Stemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from simlte_st.errors import ConfigurationError
from simlte_st.words.languages import STEMMERS, LanguageFinder, check_language, is_latin, stemmer, stop_words

TEXTS = {
    "de": "Die Regierung hat sich mit den Ländern darauf geeinigt, dass es so nicht weitergehen kann.",
    "fr": "Le gouvernement ne veut pas que nous allions avec eux dans la maison de la région.",
    "es": "El gobierno no quiere que vayamos con ellos a la casa de la región, pero lo hará.",
    "ru": "Правительство не хочет, чтобы мы поехали с ними в дом на берегу, но это будет так.",
    "hi": "सरकार नहीं चाहती कि हम उनके साथ घर में जाएं, लेकिन यह होगा और वह भी है।",
    "ar": "لا تريد الحكومة أن نذهب معهم إلى البيت في هذه المنطقة، ولكن ذلك سوف يكون من بعد",
    "zh": "政府不希望我们和他们一起去那个地区的房子里，但是这是会发生的事情。",
    "en": "The government does not want us to go with them to the house in the region, but it will be so.",
}


def test_language_of_each_text_is_found() -> None:
    find = LanguageFinder(list(TEXTS.values()))
    assert {language: find(text) for language, text in TEXTS.items()} == {language: language for language in TEXTS}
    for first in TEXTS.values():
        find = LanguageFinder([first] * 20)
        assert {language: find(text) for language, text in TEXTS.items()} == {language: language for language in TEXTS}


@pytest.mark.parametrize("language", TEXTS)
def test_unclear_texts_take_the_language_of_the_others(language: str) -> None:
    find = LanguageFinder([TEXTS[language]] * 20)
    for text in ("", "12 34", "Peter Smith, Madrid", "London 3:2 Paris", "🌊"):
        assert find(text) == language


def test_short_texts_identify_a_language_together() -> None:
    assert LanguageFinder(TEXTS["de"].split()).languages == ["de"]
    assert LanguageFinder([]).languages == ["en"]
    assert LanguageFinder([], languages=["fi"]).languages[0] == "fi"


def test_language_option_applies_to_all_texts() -> None:
    find = LanguageFinder([TEXTS["en"]], "sv")
    assert {find(text) for text in TEXTS.values()} == {"sv"}
    assert check_language("NB") == "no"
    for wrong in ("xx", "german", "", "de-DE"):
        with pytest.raises(ConfigurationError, match="language="):
            check_language(wrong)


def test_stemmers_and_stop_words() -> None:
    assert set(STEMMERS.values()) <= set(Stemmer.algorithms())
    assert len(STEMMERS) > 30
    for language in STEMMERS:
        assert stemmer(language)("a") == "a"
    assert stemmer("zh")("的") == "的"
    assert stop_words("en") < ENGLISH_STOP_WORDS, "which the terms of an index were made with"
    assert {"fire", "system"} == {"fire", "system"} & ENGLISH_STOP_WORDS - stop_words("en")
    assert "москва" not in stop_words("ru")
    assert {"что", "и"} <= stop_words("ru")
    assert stop_words("zxx") == frozenset()
    assert [is_latin(language) for language in ("de", "vi", "ru", "zh", "hi")] == [True, True, False, False, False]
