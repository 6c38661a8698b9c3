from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from paper_support import load_random
from sentence_transformers import SentenceTransformer
from support import make_document
from tagger_support import EndingTagger

from benchmarks.papers.parts_of_speech import CLASSES, attention_table, measure_attention, sum_by_class
from benchmarks.papers.reading import ReadText, cls_attention, read_text
from benchmarks.papers.tagging import TaggedWord
from simlte_st.data import Document
from simlte_st.evaluation import bootstrap_interval
from simlte_st.modules import BaseForm

DOCUMENTS = [Document(f"d{number}", make_document(number, sentences=1 + number)) for number in range(9)]


@pytest.fixture
def model(bert_path: Path) -> SentenceTransformer:
    return load_random(bert_path)


def by_hand(model: SentenceTransformer, document: Document) -> dict[str, list[float]]:
    """Weights by class of a document whose words are one token each."""
    read = read_text(model, document.text)
    tokens = model.tokenizer.convert_ids_to_tokens(read.features["input_ids"][0])
    found: dict[str, list[float]] = {kind: [] for kind in CLASSES}
    endings = {"a": "nouns", "ei": "nouns", "o": "verbs", "un": "adjectives"}
    for token, weight in zip(tokens, cls_attention(model, read), strict=True):
        kind = next((kind for ending, kind in endings.items() if token.endswith(ending)), "others")
        kind = {"[CLS]": "special tokens", "[SEP]": "special tokens", ".": "punctuation"}.get(token, kind)
        found[kind].append(weight)
    return found


def test_weights_and_shares_by_hand(model: SentenceTransformer) -> None:
    found = measure_attention({"m": model}, DOCUMENTS, EndingTagger(), seed=4)
    assert (found["documents"], found["max_seq_length"]) == (9, 64)
    hands = [by_hand(model, document) for document in DOCUMENTS]
    for kind in CLASSES:
        of_class = found["models"]["m"][kind]
        lists = [hand[kind] for hand in hands]
        weights = [np.mean(values) for values in lists if values]
        assert of_class["words"] == sum(len(values) for values in lists)
        assert of_class["weight"] == pytest.approx([np.mean(weights), *bootstrap_interval(weights, seed=4)], abs=1e-6)
        assert of_class["share"] == pytest.approx(np.mean([sum(values) for values in lists]), abs=1e-6)
    assert sum(of_class["share"] for of_class in found["models"]["m"].values()) == pytest.approx(1)


def test_models_are_paired_by_document_at_a_common_length(bert_path: Path) -> None:
    models = {name: load_random(bert_path, seed) for name, seed in (("before", 0), ("after", 1), ("same", 0))}
    models["same"].max_seq_length = 12
    found = measure_attention(models, DOCUMENTS, EndingTagger(), seed=2)
    assert found["max_seq_length"] == 12
    for kind in CLASSES:
        before, after = (found["models"][name][kind]["weight"][0] for name in ("before", "after"))
        change, low, high = found["changes"]["after"][kind]
        assert change == pytest.approx(after - before)
        assert low <= change <= high
        assert found["changes"]["same"][kind] == [0, 0, 0]
    table = attention_table(found)
    assert "+0% (unclear)" in table
    assert "9 documents, their first 12 tokens" in table


def test_tagger_reads_the_same_words_as_the_model(model: SentenceTransformer, bert_path: Path) -> None:
    converting = SentenceTransformer(modules=[BaseForm(str(bert_path)), model[1]], device="cpu").eval()
    converting[0].load_state_dict(model[0].state_dict())
    written, read = ["Ba won't go, it's ra."], ["Ba will not go, it is ra."]
    found = measure_attention({"m": converting}, written, EndingTagger())
    assert found == measure_attention({"m": model}, read, EndingTagger())
    assert found != measure_attention({"m": model}, written, EndingTagger())
    tagger = EndingTagger()
    measure_attention({"m": model}, [make_document(1, sentences=400)], tagger)
    assert 500 < len(tagger.texts[0]) < 1100, "a little more than the model reads"


def reading(tokens: list[tuple[int, int, float]], special: tuple[float, float]) -> tuple[ReadText, list[float]]:
    """Make a reading of tokens and their weights between two special ones."""
    weights = [special[0], *(weight for _, _, weight in tokens), special[1]]
    return ReadText("", [token[:2] for token in tokens], list(range(1, len(tokens) + 1)), {}), weights


def test_subword_weights_are_summed_by_class() -> None:
    # "Don't unbelievable cats run."  as spaCy has it: Do|n't|unbelievable|cats|run|. and a word that was not read
    places = [(0, 2), (2, 5), (6, 18), (19, 23), (24, 27), (27, 28), (29, 33)]
    kinds = ["AUX", "PART", "ADJ", "PROPN", "VERB", "PUNCT", "NOUN"]
    words = [TaggedWord(*place, pos, "") for place, pos in zip(places, kinds, strict=True)]
    # As BERT has it: don|'|t|un|##believ|##able|cats|run|. and two bytes of a character in no word.
    tokens = [
        (0, 3, 0.09), (3, 4, 0.01), (4, 5, 0.02), (6, 8, 0.1), (8, 14, 0.05), (14, 18, 0.05), (19, 23, 0.2),
        (24, 27, 0.1), (27, 28, 0.05), (28, 29, 0.02), (28, 29, 0.01),
    ]  # fmt: skip
    counts, weights = sum_by_class(*reading(tokens, (0.1, 0.2)), words)
    assert dict(zip(CLASSES, counts, strict=True)) == {
        "nouns": 1, "verbs": 1, "adjectives": 1, "others": 2, "punctuation": 1, "special tokens": 2
    }  # fmt: skip
    assert weights == pytest.approx([0.2, 0.1, 0.2, 0.12, 0.08, 0.3])
