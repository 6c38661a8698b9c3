from __future__ import annotations

import itertools
import sys

import pytest

from benchmarks.papers.tagging import PIPELINES, SpacyTagger
from simlte_st.errors import MissingExtraError


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
    found = {TEXT[word.start : word.stop]: (word.pos, word.lemma) for word in tagger.tag(TEXT)}
    assert found["cats"] == ("NOUN", "cat")
    assert found["running"] == ("VERB", "run")
    assert found["old"][0] == "ADJ"
    assert found["Mary"][0] == "PROPN"
    assert found["."][0] == "PUNCT"
    assert found["\n\n"][0] == "SPACE"
    assert tagger.description["pipeline"] in PIPELINES
    assert set(tagger.description) == {"pipeline", "version", "spacy"}


def test_texts_beyond_spacys_limit_are_tagged_to_their_end(tagger: SpacyTagger) -> None:
    text = TEXT + "\n" * 1_000_000 + TEXT
    words = tagger.tag(text)
    spaces = {text[before.stop : after.start] for before, after in itertools.pairwise(words)}
    assert (words[0].start, words[-1].stop) == (0, len(text))
    assert spaces <= {"", " "}
    assert sum(text[word.start : word.stop] == "cats" and word.pos == "NOUN" for word in words) == 2
