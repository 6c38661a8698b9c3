"""The segmenters: what Punkt learns, that it survives being written down, and what happens where it is missing."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nltk.tabdata import TabEncoder

from simlte_st.data.document import Document
from simlte_st.data.sentences import PunktSegmenter, make_segmenter, peek, segment_document
from simlte_st.errors import ConfigurationError

SAMPLE = [
    "Dr. Smith came in. He saw Dr. Jones there. The patient of Dr. Smith slept. Dr. Brown was late, as always. "
    "Nobody had told Dr. Smith. They all went home. Dr. Jones drove the car. Then it rained. Dr. Brown got wet.",
    "Prof. Miller wrote a book. The book of Prof. Miller is long. Prof. Taylor read it. It took Prof. Taylor a week. "
    "Everybody likes Prof. Miller. Prof. Taylor does not say so. " * 3,
]
TEXT = "The door opened. Dr. Smith came in. He greeted Prof. Miller. Nobody spoke."
CUTS = ["The door opened.", "Dr. Smith came in.", "He greeted Prof. Miller.", "Nobody spoke."]


@pytest.fixture
def no_nltk_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty NLTK data folder instead of whatever this machine has."""
    folder = tmp_path / "nltk_data"
    folder.mkdir()
    monkeypatch.setattr("nltk.data.path", [str(folder)])
    return folder


def write_punkt_tab(folder: Path, segmenter: PunktSegmenter, language: str = "english") -> None:
    parameters, encoder = segmenter.parameters, TabEncoder()
    target = folder / "tokenizers" / "punkt_tab" / language
    target.mkdir(parents=True)
    (target / "collocations.tab").write_text(encoder.tups2tab(parameters.collocations))
    (target / "sent_starters.txt").write_text(encoder.set2txt(parameters.sent_starters))
    (target / "abbrev_types.txt").write_text(encoder.set2txt(parameters.abbrev_types))
    (target / "ortho_context.tab").write_text(encoder.ivdict2tab(parameters.ortho_context))


def test_learned_punkt_knows_the_abbreviations_of_its_sample() -> None:
    learned = PunktSegmenter.learn(SAMPLE)
    assert {"dr", "prof"} <= learned.parameters.abbrev_types
    assert learned(TEXT) == CUTS
    # ... and it is the learning that does it
    assert "Dr." in PunktSegmenter()(TEXT)


def test_parameters_survive_json() -> None:
    learned = PunktSegmenter.learn(SAMPLE)
    learned.parameters.collocations.add(("nr", "##number##"))
    learned.parameters.sent_starters.add("the")
    learned.parameters.abbrev_types.add("größe")
    written = json.dumps(learned.to_dict(), ensure_ascii=False)
    again = PunktSegmenter.from_dict(json.loads(written))
    assert json.dumps(again.to_dict(), ensure_ascii=False) == written
    assert again.parameters.abbrev_types == learned.parameters.abbrev_types
    assert again.parameters.collocations == learned.parameters.collocations
    assert again.parameters.sent_starters == learned.parameters.sent_starters
    assert dict(again.parameters.ortho_context) == dict(learned.parameters.ortho_context)
    for text in [TEXT, *SAMPLE]:
        assert again(text) == learned(text)
    assert again(TEXT) == CUTS


def test_installed_punkt_tab_is_used_and_nothing_is_learned(
    no_nltk_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = PunktSegmenter.learn(SAMPLE)
    write_punkt_tab(no_nltk_data, learned)
    installed = PunktSegmenter.installed()
    assert installed is not None
    assert installed.to_dict() == learned.to_dict()
    assert installed(TEXT) == CUTS
    assert PunktSegmenter.installed("klingon") is None

    def learning(*args: Any) -> None:
        raise AssertionError("learned, though punkt_tab is installed")

    monkeypatch.setattr(PunktSegmenter, "learn", learning)
    made = make_segmenter("punkt", lambda: SAMPLE)
    assert isinstance(made, PunktSegmenter)
    assert made.to_dict() == learned.to_dict()


GERMAN = (
    "Die Regierung hat am Montag ein neues Gesetz beschlossen, und das Parlament wird darüber bald abstimmen. Das Haus "
    "bzw. Gebäude ist alt. Es wurde nicht gebaut, weil die Stadt dafür kein Geld hatte."
)
ENGLISH = (
    "The government has passed a new law on Monday, and the parliament will vote about it soon. The house of "
    "Dr. Smith is old. It was not built because the town did not have the money for it."
)
HINDI = "सरकार ने सोमवार को एक नया कानून पारित किया है और संसद जल्द ही इस पर मतदान करेगी। घर बहुत पुराना है। यह शहर में है।"


@pytest.fixture
def two_languages(no_nltk_data: Path) -> Path:
    """English and German parameters, of which each knows an abbreviation that the other does not."""
    for language, abbreviation in (("english", "dr"), ("german", "bzw")):
        known = PunktSegmenter()
        known.parameters.abbrev_types.add(abbreviation)
        write_punkt_tab(no_nltk_data, known, language)
    return no_nltk_data


def sentences_of(segmenter: Any, text: str) -> int:
    return len(segment_document(Document("", text), segmenter).sentences)


@pytest.mark.usefixtures("two_languages")
def test_sentences_end_as_in_the_language_of_the_document() -> None:
    mixed = make_segmenter("punkt", lambda: [GERMAN, ENGLISH] * 20)
    assert (sentences_of(mixed, GERMAN), sentences_of(mixed, ENGLISH)) == (3, 3)
    swapped = GERMAN.replace("bzw.", "Dr."), ENGLISH.replace("Dr.", "bzw.")
    assert [sentences_of(mixed, text) for text in swapped] == [4, 4], "the other's abbreviation ends a sentence"
    again = PunktSegmenter.from_dict(json.loads(json.dumps(mixed.to_dict())))  # type: ignore[union-attr]
    loaded = pickle.loads(pickle.dumps(mixed))
    for text in (GERMAN, ENGLISH, *swapped, HINDI):
        cut = segment_document(Document("", text), mixed)
        assert cut == segment_document(Document("", text), again) == segment_document(Document("", text), loaded)


@pytest.mark.usefixtures("two_languages")
def test_one_language_has_parameters_of_its_own_and_others_the_english_ones() -> None:
    german = PunktSegmenter.installed("german")
    english = PunktSegmenter.installed()
    assert german is not None
    assert english is not None
    for texts, language, expected in (
        ([GERMAN] * 20, None, german),
        ([ENGLISH] * 20, None, english),
        ([HINDI] * 20, None, english),
        ([ENGLISH] * 20, "de", german),
        ([GERMAN] * 20, "hi", english),
        ([], None, english),
    ):
        made = make_segmenter("punkt", lambda texts=texts: texts, language)  # type: ignore[misc]
        assert made.to_dict() == expected.to_dict()  # type: ignore[union-attr]


def test_without_punkt_tab_the_language_changes_nothing(no_nltk_data: Path) -> None:
    assert PunktSegmenter.installed() is None
    assert make_segmenter("punkt", lambda: SAMPLE)(TEXT) == CUTS
    texts = [*SAMPLE, GERMAN, ENGLISH] * 3
    expected = PunktSegmenter.learn(texts).to_dict()
    for language in (None, "de", "en"):
        assert make_segmenter("punkt", lambda: texts, language).to_dict() == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["spacy", "nupunkt"])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="'punkt' or"):
        make_segmenter(name, list)


def test_punkt_that_gives_up_returns_the_text_whole(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    segmenter = PunktSegmenter()

    def spans(text: str) -> Iterator[tuple[int, int]]:
        yield (0, 4)
        raise TimeoutError("regular expression took too long")

    monkeypatch.setattr(segmenter._tokenizer, "span_tokenize", spans)
    with caplog.at_level(logging.WARNING):
        assert segmenter("One. Two.") == ["One. Two."]
    assert "One. Two." in caplog.text


@pytest.mark.parametrize(("enough", "taken"), [(5, 1), (6, 2), (1000, 4)])
def test_peek_gives_back_the_full_stream(enough: int, taken: int) -> None:
    words = ["aaaaa", "bbbbb", "ccccc", "ddddd"]
    read = []

    def stream() -> Iterator[str]:
        for word in words:
            read.append(word)
            yield word

    first, everything = peek(stream(), len, enough)
    assert first == words[:taken]
    assert read == words[:taken]  # no more than asked for
    assert list(everything) == words
    assert read == words
