from __future__ import annotations

import gc
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from support import make_document, make_static_model, make_tokenizer
from tokenizers import AddedToken, Tokenizer, normalizers
from tokenizers_support import TOKENIZERS

from simlte_st.words import sentences, tokens

BY_WORD = {"word_piece", "word_level"}
PIECES = [
    *("ba", "Bo,", "won't", "\u00e9t\u00e9", "e\u0301", "\u0301", "\u65e5\u672c", "[MASK]", "[UNK]", "a[SEP]b"),
    *("\x00", "\ufffd", "\u200b", "x" * 40),
]
SPACES = [" ", "\n", "\t", "\r\n", "  ", "\u00a0", "\u3000", "\x1c", "\x85", "\u2028", ""]


def bare(name: str) -> Tokenizer:
    return TOKENIZERS[name]().backend_tokenizer


def cut_whole(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


def cut(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [list(ids) for ids in tokens.token_ids(tokenizer, texts)]


def counts(tokenizer: Tokenizer, texts: list[str]) -> list[Counter[int]]:
    ids, times, sizes = tokens.counted_ids(tokenizer, texts)
    ends, found = np.cumsum(sizes)[:-1], [Counter[int]() for _ in texts]
    for own, ids_, times_ in zip(found, np.split(ids, ends), np.split(times, ends), strict=True):
        for token, number in zip(ids_.tolist(), times_.tolist(), strict=True):
            own[token] += number
    assert tokens.group_sums(times, sizes).tolist() == [own.total() for own in found]
    return found


TOKENIZER = bare("word_piece")
KEEPS = tokens.word_tokens(TOKENIZER) is not None or tokenizers.__version__ >= "0.23"
"""Before version 0.23, tokenizers cannot hold a cache for their lifetime."""


@given(st.lists(st.tuples(st.sampled_from(PIECES) | st.text(max_size=4), st.sampled_from(SPACES)), max_size=20))
def test_tokens_by_word_match_tokens_of_the_text(drawn: list[tuple[str, str]]) -> None:
    text = "".join(piece + space for piece, space in drawn).encode("utf-8", "ignore").decode()
    for special in (False, True):
        TOKENIZER.encode_special_tokens = special
        assert (tokens.word_tokens(TOKENIZER) is not None) == KEEPS
        assert cut(TOKENIZER, [text, text, ""]) == cut_whole(TOKENIZER, [text, text, ""])
        assert counts(TOKENIZER, [text, "", text]) == [Counter(each) for each in cut_whole(TOKENIZER, [text, "", text])]


def test_white_space_matches_the_tokenizer() -> None:
    spaces = [char for char in map(chr, range(0x110000)) if char.isspace()]
    texts = [f"ba{char}bo {char}" for char in [*spaces, "\u180e", "\ufeff", "\u2060"]]
    assert len(spaces) == 29
    for normalizer in (TOKENIZER.normalizer, normalizers.NFKC(), normalizers.Lowercase()):
        for pre_tokenizer in tokens._SPLITTERS:
            tokenizer = bare("word_piece")
            tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer()
            assert cut(tokenizer, texts) == cut_whole(tokenizer, texts), (normalizer, pre_tokenizer)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_token_ids_match_the_tokenizer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = bare(name)
    assert (tokens.word_tokens(tokenizer) is not None) == (name in BY_WORD and KEEPS)
    texts = [*map(make_document, range(8)), "", "It's  na\u00efve:\t1,234.5%", " ".join(map(make_document, range(30)))]
    expected = cut_whole(tokenizer, texts)
    tokenizer.enable_truncation(8)  # as model2vec saves it
    tokenizer.enable_padding(length=64)
    assert cut(tokenizer, texts) == expected
    assert tokens.count_tokens(tokenizer, texts) == [len(ids) for ids in expected]
    if name != "sentence_piece_bpe":  # which puts a space before each piece
        monkeypatch.setattr(tokens, "TOKENIZED_CHARACTERS", 400)
        assert cut(tokenizer, texts) == expected
        assert counts(tokenizer, texts) == [Counter(ids) for ids in expected]


@pytest.mark.skipif(not KEEPS, reason="needs tokenizers 0.23")
def test_cache_is_bounded_and_follows_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, texts = bare("word_piece"), [make_document(number) for number in range(12)]
    monkeypatch.setattr(tokens, "MAX_CACHED_WORDS", 50)
    for text in [*texts, *texts]:
        assert cut(tokenizer, [text]) == cut_whole(tokenizer, [text])
    cache = tokens.word_tokens(tokenizer)
    assert cache is not None
    assert 0 < len(cache._ids) <= 100
    assert cache._earlier
    assert cut(tokenizer, ["y" * 33]) == cut_whole(tokenizer, ["y" * 33])
    assert "y" * 33 not in cache._ids
    before = cut(tokenizer, ["zebra"])
    tokenizer.add_tokens(["zebra"])
    assert cut(tokenizer, ["zebra"]) == cut_whole(tokenizer, ["zebra"]) != before
    tokenizer.add_tokens([AddedToken("ba bo")])
    assert tokens.word_tokens(tokenizer) is None
    assert cut(tokenizer, ["ba bo ba"]) == cut_whole(tokenizer, ["ba bo ba"])
    reference = weakref.ref(tokens._CACHES[tokenizer])
    del tokenizer
    gc.collect()
    assert reference() is None, "the cache goes with the tokenizer"


def test_threads_share_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_CACHED_WORDS", 60)
    tokenizer, texts = bare("word_piece"), [make_document(number) for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: cut(tokenizer, [text])[0], texts)) == cut_whole(tokenizer, texts)


def test_both_tokenizer_classes_count_the_same() -> None:
    fast, own = make_tokenizer(), make_static_model().tokenizer
    texts = [make_document(1), "", "ba [MASK] bo", "ba " * 300]
    for longest in (None, 5):
        expected: Any = tokens.token_ids(fast, texts, longest)
        assert [list(ids) for ids in tokens.token_ids(own, texts, longest)] == [list(ids) for ids in expected]
    assert tokens.count_tokens(own, texts) == tokens.count_tokens(fast, texts)
    assert sentences.tokenizer_counter(own)(texts) == tokens.count_tokens(fast, texts)
    assert cut(own, []) == []
    assert tokens.vocabulary_size(own) == tokens.vocabulary_size(fast)
    assert sorted(tokens.special_ids(own)) == sorted(tokens.special_ids(fast)) == [0, 1, 2, 3, 4]


def test_unknown_id() -> None:
    for name in TOKENIZERS:
        assert tokens.unknown_id(bare(name)) == (None if name.startswith("byte_level") else 1), name
