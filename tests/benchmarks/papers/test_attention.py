from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from longformer_support import randomise
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document
from tagger_support import EndingTagger

from benchmarks.papers import tagging
from benchmarks.papers.cls_attention import TextAttention
from benchmarks.papers.parts_of_speech import CLASSES, WordWeight, align, document_attention, measure_attention
from benchmarks.papers.tagging import TaggedWord
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError
from simlte_st.evaluation import bootstrap_interval
from simlte_st.models.truncation import Truncation
from simlte_st.modules import BaseForm

DOCUMENTS = [Document(f"d{number}", make_document(number, sentences=1 + number)) for number in range(9)]


def make_model(bert_path: Path, seed: int) -> SentenceTransformer:
    model = SentenceTransformer(modules=[Transformer(str(bert_path)), Pooling(32, "cls")], device="cpu").eval()
    randomise(model, seed)
    return model


@pytest.fixture
def model(bert_path: Path) -> SentenceTransformer:
    return make_model(bert_path, 0)


def by_hand(model: SentenceTransformer, document: Document) -> dict[str, list[float]]:
    """Weights by class of a document whose words are one token each, from the stock model's own weights."""
    transformer = model[0]
    transformer.auto_model.set_attn_implementation("eager")
    features = {name: value for name, value in model.preprocess([document.text]).items() if torch.is_tensor(value)}
    with torch.no_grad():
        weights = transformer.auto_model(**features, output_attentions=True).attentions[-1][0, :, 0].mean(0)
    transformer.auto_model.set_attn_implementation("sdpa")
    tokens = model.tokenizer.convert_ids_to_tokens(features["input_ids"][0])
    found: dict[str, list[float]] = {kind: [] for kind in CLASSES}
    endings = {"a": "nouns", "ei": "nouns", "o": "verbs", "un": "adjectives"}
    for token, weight in zip(tokens, weights.tolist(), strict=True):
        kind = next((kind for ending, kind in endings.items() if token.endswith(ending)), "others")
        kind = {"[CLS]": "special tokens", "[SEP]": "special tokens", ".": "punctuation"}.get(token, kind)
        found[kind].append(weight)
    return found


def test_weights_and_shares_are_those_of_a_count_by_hand(model: SentenceTransformer) -> None:
    result = measure_attention({"m": model}, DOCUMENTS, EndingTagger(), seed=4)
    hands = [by_hand(model, document) for document in DOCUMENTS]
    shares = 0.0
    for kind in CLASSES:
        found = result.models["m"].classes[kind]
        lists = [hand[kind] for hand in hands]
        weights = [np.mean(values) for values in lists if values]
        assert found.words == sum(len(values) for values in lists)
        assert found.documents == len(weights)
        assert found.weight.mean == pytest.approx(np.mean(weights), abs=1e-6)
        assert (found.weight.low, found.weight.high) == pytest.approx(bootstrap_interval(weights, seed=4), abs=1e-6)
        assert found.share.mean == pytest.approx(np.mean([sum(values) for values in lists]), abs=1e-6)
        shares += found.share.mean or 0.0
    assert shares == pytest.approx(1)


def test_what_was_cut_is_said(model: SentenceTransformer) -> None:
    found = measure_attention({"m": model}, DOCUMENTS, EndingTagger()).models["m"]
    # Document n has 9 (n + 1) tokens, of which 62 fit: all but the documents 6, 7 and 8, of 63, 72 and 81.
    assert found.documents == 9
    assert found.truncation == Truncation(64, 2, 0, 9, 405, 3, 1 + 10 + 19, 81, found.truncation.model, positions=64)


def test_the_tagger_sees_a_little_more_than_the_model(model: SentenceTransformer) -> None:
    tagger = EndingTagger()
    long = Document("long", make_document(1, sentences=400))
    measure_attention({"m": model}, [long], tagger)
    assert len(long.text) > 5000
    assert 500 < len(tagger.seen[0]) < 1100


def test_two_models_are_compared_document_by_document(bert_path: Path, model: SentenceTransformer) -> None:
    models = {"before": model, "after": make_model(bert_path, 1), "same": make_model(bert_path, 0)}
    result = measure_attention(models, DOCUMENTS, EndingTagger(), seed=2)
    alone = measure_attention({"after": models["after"]}, DOCUMENTS, EndingTagger(), seed=2)
    assert result.models["after"] == alone.models["after"]
    assert alone.changes == {}
    assert set(result.changes) == {"after", "same"}
    for kind in CLASSES:
        before, after = (result.models[name].classes[kind].weight.mean for name in ("before", "after"))
        assert before is not None
        assert after is not None
        change = result.changes["after"][kind]
        assert change.mean == pytest.approx(after - before)
        assert change.low is not None
        assert change.high is not None
        assert change.low <= after - before <= change.high
        assert result.changes["same"][kind].mean == 0
    table = result.table().splitlines()
    assert len(table) == 2 + len(CLASSES)
    assert "+0% (unclear)" in table[2]
    assert json.loads(json.dumps(result.to_dict()))["changes"]["same"]["nouns"]["mean"] == 0


def test_models_are_compared_at_one_length(bert_path: Path, model: SentenceTransformer) -> None:
    other = make_model(bert_path, 0)
    other.max_seq_length = 12
    models = {"a": model, "b": other}
    lengths = {}
    for wanted in (None, 6, 300):
        result = measure_attention(models, DOCUMENTS, EndingTagger(), max_seq_length=wanted)
        assert result.models["a"].classes == result.models["b"].classes
        lengths[wanted] = result.models["a"].truncation.max_seq_length
    assert lengths == {None: 12, 6: 6, 300: 64}, "a longer one than asked for where all models can read it"


def test_batches_change_nothing(model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure_attention({"m": model}, DOCUMENTS, EndingTagger(), batch_size=9).models["m"].classes
    monkeypatch.setattr(tagging, "_BATCH_DOCUMENTS", 2)
    parts = measure_attention({"m": model}, DOCUMENTS, EndingTagger(), batch_size=1).models["m"].classes
    for kind in CLASSES:
        assert parts[kind].words == whole[kind].words
        assert parts[kind].weight.mean == pytest.approx(whole[kind].weight.mean, abs=1e-7)


def test_a_class_that_no_document_has(model: SentenceTransformer) -> None:
    result = measure_attention({"m": model, "n": model}, [Document("a", "Ba.")], EndingTagger())
    verbs = result.models["m"].classes["verbs"]
    assert (verbs.documents, verbs.words, verbs.weight.mean, verbs.share.mean) == (0, 0, None, 0.0)
    nouns = result.models["m"].classes["nouns"]
    assert nouns.weight.mean == nouns.share.mean
    assert nouns.weight.low is None
    assert result.changes["n"]["verbs"].mean is None
    assert "| verbs" in result.table()


def test_one_document_word_by_word(model: SentenceTransformer) -> None:
    document = DOCUMENTS[8]
    attention = document_attention({"m": model}, document.text, EndingTagger())["m"]
    assert (attention.tokens, attention.cut) == (81, 19)
    assert len(attention.words) == 62
    assert document.text[attention.words[0].start : attention.words[0].stop] == document.text.split()[0]
    assert attention.sums()[1].sum() == pytest.approx(1)


def test_words_are_those_that_the_model_reads(model: SentenceTransformer, bert_path: Path) -> None:
    converting = SentenceTransformer(modules=[BaseForm(str(bert_path)), model[1]], device="cpu").eval()
    converting[0].load_state_dict(model[0].state_dict())
    written, read = "Ba won't go, it's ra.", "Ba will not go, it is ra."
    assert document_attention({"m": converting}, written, EndingTagger()) == document_attention(
        {"m": model}, read, EndingTagger()
    )
    found = measure_attention({"m": converting}, [written, written], EndingTagger())
    assert found == measure_attention({"m": model}, [read, read], EndingTagger())
    assert found != measure_attention({"m": model}, [written, written], EndingTagger())
    for function, texts in ((document_attention, written), (measure_attention, [written])):
        with pytest.raises(ConfigurationError, match="analyse them apart"):
            function({"m": model, "c": converting}, texts, EndingTagger())


def test_documents_are_whatever_is_read_as_documents(model: SentenceTransformer) -> None:
    texts = [document.text for document in DOCUMENTS]
    expected = measure_attention({"m": model}, DOCUMENTS, EndingTagger())
    for documents in (texts, iter(texts), [{"text": text} for text in texts]):
        assert measure_attention({"m": model}, documents, EndingTagger()) == expected
    with pytest.raises(EmptyCorpusError):
        measure_attention({"m": model}, [], EndingTagger())


def test_no_model() -> None:
    with pytest.raises(ConfigurationError, match="no model"):
        measure_attention({}, DOCUMENTS, EndingTagger())


def reading(tokens: list[tuple[int, int, float]], special: tuple[float, float] = (0.0, 0.0)) -> TextAttention:
    spans = [(0, 0), *((start, stop) for start, stop, _ in tokens), (0, 0)]
    return TextAttention(
        spans=np.array(spans, dtype=np.int64),
        special=np.array([True] + [False] * len(tokens) + [True]),
        weights=np.array([special[0], *(weight for _, _, weight in tokens), special[1]]),
        length=len(tokens),
    )


def test_subwords_are_summed_and_classes_told() -> None:
    # "Don't unbelievable cats run."  as spaCy has it: Do|n't|unbelievable|cats|run|.
    words = [
        TaggedWord(0, 2, "AUX", "do"),
        TaggedWord(2, 5, "PART", "not"),
        TaggedWord(6, 18, "ADJ", "unbelievable"),
        TaggedWord(19, 23, "NOUN", "cat"),
        TaggedWord(24, 27, "VERB", "run"),
        TaggedWord(27, 28, "PUNCT", "."),
    ]
    # As BERT has it: don|'|t|un|##believ|##able|cats|run|.
    tokens = [
        (0, 3, 0.09),
        (3, 4, 0.01),
        (4, 5, 0.02),
        (6, 8, 0.1),
        (8, 14, 0.05),
        (14, 18, 0.05),
        (19, 23, 0.2),
        (24, 27, 0.1),
        (27, 28, 0.08),
    ]
    aligned = align(reading(tokens, (0.1, 0.2)), words)
    expected = [
        WordWeight(0, 2, "others", 0.06),  # two of the three characters of "don"
        WordWeight(2, 5, "others", 0.03 + 0.01 + 0.02),
        WordWeight(6, 18, "adjectives", 0.2),
        WordWeight(19, 23, "nouns", 0.2),
        WordWeight(24, 27, "verbs", 0.1),
        WordWeight(27, 28, "punctuation", 0.08),
    ]
    assert [word[:3] for word in aligned.words] == [word[:3] for word in expected]
    assert [word.weight for word in aligned.words] == pytest.approx([word.weight for word in expected])
    counts, weights = aligned.sums()
    assert dict(zip(CLASSES, counts, strict=True)) == {
        "nouns": 1,
        "verbs": 1,
        "adjectives": 1,
        "others": 2,
        "punctuation": 1,
        "special tokens": 2,
    }
    assert weights == pytest.approx([0.2, 0.1, 0.2, 0.12, 0.08, 0.3])
    assert weights.sum() == pytest.approx(1)


def test_words_that_were_not_read_are_left_out() -> None:
    words = [TaggedWord(place, place + 1, "NOUN", "x") for place in range(0, 10, 2)]
    aligned = align(reading([(2, 3, 0.5), (4, 5, 0.5)]), words)
    assert [(word.start, word.weight) for word in aligned.words] == [(2, 0.5), (4, 0.5)]


def test_a_token_in_no_word_counts_as_punctuation() -> None:
    aligned = align(reading([(0, 1, 0.25), (1, 3, 0.75)]), [TaggedWord(0, 1, "NOUN", "x")])
    assert aligned.between == 0.75
    assert aligned.sums()[1].tolist() == [0.25, 0, 0, 0, 0.75, 0]


def test_several_tokens_of_one_character() -> None:
    # Byte-level tokens of one character all have its offsets.
    aligned = align(
        reading([(0, 1, 0.25), (0, 1, 0.25), (2, 3, 0.5)]), [TaggedWord(0, 1, "X", ""), TaggedWord(2, 3, "VERB", "")]
    )
    assert [word.weight for word in aligned.words] == [0.5, 0.5]


def test_classes() -> None:
    names = {"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs", "ADJ": "adjectives"}
    others = dict.fromkeys(("AUX", "ADV", "PRON", "DET", "ADP", "NUM", "INTJ", "CCONJ", "SCONJ", "PART", "X"), "others")
    marks = dict.fromkeys(("PUNCT", "SYM", "SPACE"), "punctuation")
    for pos, name in {**names, **others, **marks}.items():
        assert align(reading([(0, 1, 1.0)]), [TaggedWord(0, 1, pos, "")]).words == (WordWeight(0, 1, name, 1.0),)


def spans(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Draw spans that do not overlap, with and without gaps."""
    cuts = st.lists(st.integers(0, most), min_size=2, max_size=20, unique=True).map(sorted)
    pairs = cuts.map(lambda places: list(itertools.pairwise(places)))
    return pairs.flatmap(lambda all_pairs: st.lists(st.sampled_from(all_pairs), unique=True).map(sorted))


@given(spans(40), spans(40), st.data())
def test_no_attention_is_lost(words: list[tuple[int, int]], tokens: list[tuple[int, int]], data: st.DataObject) -> None:
    raw = data.draw(st.lists(st.integers(1, 100), min_size=len(tokens) + 2, max_size=len(tokens) + 2))
    weights = np.array(raw) / sum(raw)
    read = reading(
        [(start, stop, weight) for (start, stop), weight in zip(tokens, weights[1:-1], strict=True)],
        (weights[0], weights[-1]),
    )
    aligned = align(read, [TaggedWord(start, stop, "NOUN", "") for start, stop in words])
    assert aligned.sums()[1].sum() == pytest.approx(1)
    for word in aligned.words:
        # A word gets at most what the tokens have that touch it, and all that those have that lie inside.
        touching = sum(w for start, stop, w in _own(read) if start < word.stop and stop > word.start)
        inside = sum(w for start, stop, w in _own(read) if start >= word.start and stop <= word.stop)
        assert inside - 1e-9 <= word.weight <= touching + 1e-9


def _own(read: TextAttention) -> list[tuple[int, int, float]]:
    own = ~read.special
    return [(int(a), int(b), float(w)) for (a, b), w in zip(read.spans[own], read.weights[own], strict=True)]


def test_a_model_that_diverged_is_told(model: SentenceTransformer) -> None:
    with torch.no_grad():
        model[0].auto_model.encoder.layer[-1].attention.self.query.weight.fill_(float("nan"))
    with pytest.raises(DataError, match="NaN or infinity"):
        measure_attention({"m": model}, [Document("a", make_document(1))], EndingTagger())
