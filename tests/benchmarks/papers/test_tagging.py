from __future__ import annotations

import pytest

from benchmarks.papers.tagging import PIPELINES, SpacyTagger

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
