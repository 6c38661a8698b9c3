from __future__ import annotations

import base64
import gzip
import json
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from simlte_st.data import Document
from simlte_st.exploration.page import text_limit
from simlte_st.exploration.search_data import can_tokenize, index_words, pack_model, pack_vectors
from simlte_st.models.vectors import TokenVectors, unit_rows
from simlte_st.words.analyzer import extract_terms

TEXTS = ["Floods in the north: the flood of 2004.", "The north, the NORTH.", "Snow, and no floods."]
VOCABULARY = ["[UNK]", "flood", "##s", "north", "snow", "ice"]


def make_model(normalizer: Any = None, kind: Any = models.WordPiece) -> TokenVectors:
    vocabulary = {token: number for number, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(kind(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer or normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    table = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
    table[5] = 0.5 * table[4]
    return TokenVectors(tokenizer, table, ["StaticEmbedding"], {"query": "find: "}, None)


def unpack(packed: str) -> bytes:
    return gzip.decompress(base64.b64decode(packed))


def decode_words(data: dict[str, str]) -> dict[str, list[str]]:
    words, word = dict[str, list[str]](), ""
    for line, changes in zip(data["words"].split("\n"), data["changes"].split("\n"), strict=True):
        shared, _, rest = line.partition(" ")
        word = word[: int(shared)] + rest
        pairs = (change.split(":", 1) for change in changes.split(" "))
        words[word] = [word[: len(word) - int(removed)] + added for removed, added in pairs]
    return words


def test_postings_hold_every_term_of_the_corpus() -> None:
    data: Any = index_words(
        [*map(Document, "abc", TEXTS), Document("d", "x" * 101, metadata={"title": "Fjords"})], "en"
    )
    words, counts = decode_words(data), dict[tuple[int, str], int]()
    terms = dict.fromkeys(chain(*words.values()))
    for term, posting in zip(terms, data["postings"].split("\n"), strict=True):
        numbers = [int(number) for number in posting.split()]
        rows = accumulate(max(0, number) for number in numbers)
        for row, number in zip(rows, numbers, strict=True):
            counts[row, term] = max(1, -number)
    expected = [(row, term.term) for row, text in enumerate([*TEXTS, "Fjords"]) for term in extract_terms(text, "en")]
    assert counts == {pair: expected.count(pair) for pair in expected}
    assert counts[0, "flood"] == 2
    assert words["floods"] == ["flood"]
    assert max(map(len, words)) <= 100
    assert "the" in data["stops"]["en"]
    french: Any = index_words([Document("", "Les écoles de la ville sont fermées.")], "fr")
    assert decode_words(french)["écoles"] == ["ecol"]


def test_script_replaces_only_uncased_wordpiece() -> None:
    assert can_tokenize(make_model())
    assert not can_tokenize(make_model(kind=models.WordLevel))
    bert = normalizers.BertNormalizer
    for normalizer in (bert(lowercase=False), bert(strip_accents=False), normalizers.Lowercase()):
        assert not can_tokenize(make_model(normalizer))


@pytest.mark.parametrize(("room", "level"), [(1 << 20, 31), (1, 4)])
def test_vectors_are_rounded_until_they_fit(room: int, level: int) -> None:
    model, rows = make_model(), np.array([0, 1, 2, 2])
    vectors = unit_rows(np.random.default_rng(1).normal(size=(4, 16))).astype(np.float32)
    packed, tokens = pack_model(model, TEXTS, rows)
    packed_vectors = pack_vectors(tokens, vectors, room)
    settings = json.loads(unpack(packed))
    assert settings["tokens"] == VOCABULARY
    assert settings["rows"] == [0, 1, 2, 2]
    assert settings["prompt"] == "find: "
    [(nearest, factor)] = settings["projections"]
    assert (settings["tokens"][nearest], factor) == ("snow", 0.5)
    content = unpack(packed_vectors)
    scales = np.frombuffer(content[: 4 * 9], np.float32)
    integers = np.frombuffer(content[4 * 9 :], np.int8).reshape(9, 16)
    assert np.abs(integers[:5]).max(axis=1).tolist() == [level] * 5
    expected = np.concatenate([model.table[:5], vectors])
    assert (np.abs(scales[:, None] * integers - expected) <= scales[:, None] / 2 + 1e-6).all()


def test_long_texts_take_the_room_that_short_ones_leave() -> None:
    assert text_limit([10, 20, 60_000], 2_500) >= 60_000
    lengths = [100] * 1_000 + [1_000_000] * 1_000
    limit = text_limit(lengths, 2_500)
    assert limit == 2 * 2_500 - 100
    assert sum(min(limit, length) for length in lengths) == 2_500 * len(lengths)
