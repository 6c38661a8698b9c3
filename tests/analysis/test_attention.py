from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from analysis_support import EndingTagger
from longformer_support import randomise
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from support import make_document

from simlte_st.analysis import tagging
from simlte_st.analysis.alignment import CLASSES
from simlte_st.analysis.attention import common_length, measure_attention, read_document
from simlte_st.data import Document
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation import bootstrap_interval

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
    assert (found.documents, found.tokens, found.cut_documents, found.cut_tokens) == (9, 405, 3, 1 + 10 + 19)
    assert found.summary() == "9 documents, of which 3 were longer than 64 tokens: 7.4% of all tokens were cut"
    short = measure_attention({"m": model}, DOCUMENTS[:6], EndingTagger()).models["m"]
    assert short.summary() == "6 documents, all read to their end"


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
    assert common_length([model, other]) == 12
    assert common_length([model, other], wanted=30) == 30
    assert common_length([model, other], wanted=300) == 64
    result = measure_attention({"a": model, "b": other}, DOCUMENTS, EndingTagger())
    assert result.models["a"] == result.models["b"]
    assert result.models["a"].max_seq_length == 12


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


def test_one_document_for_a_heat_map(model: SentenceTransformer) -> None:
    document = DOCUMENTS[8]
    reading, aligned = read_document({"m": model}, document, EndingTagger())["m"]
    assert reading.cut == 19
    assert len(aligned.words) == 62
    assert document.text[aligned.words[0].start : aligned.words[0].stop] == document.text.split()[0]
    assert aligned.sums()[1].sum() == pytest.approx(1)


def test_no_model() -> None:
    with pytest.raises(ConfigurationError, match="no model"):
        measure_attention({}, DOCUMENTS, EndingTagger())
