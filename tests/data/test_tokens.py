"""Sentences to ids: put together, the ids of sentences are the ids of the sentences put together."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from odd_texts import texts
from support import make_tokenizer
from tokenizers_support import TOKENIZERS, byte_level, byte_level_prefixed, crossing, word_piece
from transformers import BertConfig

from simlte_st.data.document import Document
from simlte_st.data.segmenters import PunktSegmenter
from simlte_st.data.sentences import cut_document
from simlte_st.data.tokens import SentenceTokenizer
from simlte_st.data.words import word_spans
from simlte_st.errors import ModelError


@functools.cache
def made(name: str) -> Any:
    return TOKENIZERS[name]()


@functools.cache
def encoder(name: str) -> SentenceTokenizer:
    return SentenceTokenizer(made(name))


def sentences_of(text: str) -> list[str]:
    return cut_document(Document("d", text), PunktSegmenter())[0]


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=80)
@given(text=texts)
@example(text="ba bei. Bo bun!\n\nIt's 1,234. 'S (bo) \"a\" “b”. É e\u0301. \u0301x. ...")
@example(text="x" * 60 + ". かなカナ漢字。漢字。 ba.")
def test_joined_ids_are_the_ids_of_the_joined_text(name: str, text: str) -> None:
    sentences = sentences_of(text)
    tokenized = encoder(name)(sentences)
    assert tokenized.ids.dtype == tokenized.word_starts.dtype == tokenized.head_ids.dtype == np.int32
    if not sentences:
        assert len(tokenized.ids) == len(tokenized.sizes) == len(tokenized.words) == 0
        return
    ids = tokenized.ids.tolist()
    if len(tokenized.head_sizes):
        assert not encoder(name).drops_space
        ids[: tokenized.head_replaces[0]] = tokenized.head_ids[: tokenized.head_sizes[0]].tolist()
    assert ids == made(name)(" ".join(sentences), add_special_tokens=False)["input_ids"]
    assert encoder(name).joins(sentences)
    assert tokenized.sizes.sum() == len(tokenized.ids)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=40)
@given(text=texts)
def test_every_token_belongs_to_one_word(name: str, text: str) -> None:
    sentences = sentences_of(text)
    tokenized = encoder(name)(sentences)
    spans = [word_spans(sentence) for sentence in sentences]
    assert tokenized.words.tolist() == [len(each) for each in spans]
    starts = tokenized.word_starts.tolist()
    assert starts == sorted(starts)
    first_tokens = np.cumsum([0, *tokenized.sizes])[:-1]
    first_words = np.cumsum([0, *tokenized.words])[:-1].astype(int)
    assert [starts[word] for word in first_words] == first_tokens.tolist()


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_begin_where_their_letters_do(name: str) -> None:
    text = "It's bobun  (ba) 1,234\nnaïve end."
    tokenized = encoder(name)([text])
    bounds = [*tokenized.word_starts.tolist(), len(tokenized.ids)]
    tokens = made(name).convert_ids_to_tokens(tokenized.ids.tolist())
    plain = ["".join(tokens[start:stop]) for start, stop in pairwise(bounds)]
    if name in ("word_level", "unigram", "unigram_metaspace"):  # unknown words
        assert all(plain)
        return
    letters = [part.strip("ĠĊ▁").replace("##", "").replace("▁", "").lower() for part in plain]
    assert letters[:4] == ["it's", "bobun", "(ba)", "1,234"]
    assert letters[5] == "end."


def test_which_tokenizers_know_an_opening_form() -> None:
    assert [name for name in TOKENIZERS if encoder(name).drops_space] == ["word_piece", "word_level"]
    heads = {name: len(encoder(name)(["ba bei.", "Bo"]).head_sizes) for name in TOKENIZERS}
    assert {name for name, count in heads.items() if count} == {"byte_level", "byte_level_split"}


def test_the_opening_form_is_kept_where_it_differs() -> None:
    tokenizer = byte_level()
    sentences = ["ba bei.", "Kun kun kun ba."]
    tokenized = SentenceTokenizer(tokenizer)(sentences)
    splits, heads = np.cumsum([0, *tokenized.sizes]), np.cumsum([0, *tokenized.head_sizes])
    for number, sentence in enumerate(sentences):
        ids = tokenized.ids[splits[number] : splits[number + 1]].tolist()
        assert ids == tokenizer(f" {sentence}", add_special_tokens=False)["input_ids"]
        ids[: tokenized.head_replaces[number]] = tokenized.head_ids[heads[number] : heads[number + 1]].tolist()
        assert ids == tokenizer(sentence, add_special_tokens=False)["input_ids"]
    assert tokenized.head_replaces.tolist() == [1, 1]  # the first word only


def test_tokens_across_spaces_are_noticed() -> None:
    assert not SentenceTokenizer(crossing()).joins(["One two.", "One two.", "Three four."])
    # The sentences' own tokens are all there, whatever stands between them.
    tokenized = SentenceTokenizer(crossing())(["One two.", "Three four."])
    text = crossing().decode(tokenized.ids.tolist())
    assert "".join(text.split()) == "Onetwo.Threefour."


def test_the_identity_is_that_of_the_ids() -> None:
    tokenizer = word_piece()
    identity = SentenceTokenizer(tokenizer).identity
    assert len(identity) == 32
    tokenizer(["ba bei", "bo"], padding=True, truncation=True, max_length=8)  # leaves its marks on the tokenizer
    tokenizer.model_max_length = 12
    assert SentenceTokenizer(tokenizer).identity == identity
    others = [byte_level(), byte_level_prefixed(), make_tokenizer(), word_piece()]
    others[-1].add_tokens(["bobun"])
    split = word_piece()
    split.split_special_tokens = True
    identities = [SentenceTokenizer(other).identity for other in (*others, split)]
    assert len({identity, *identities}) == 6


def test_padding_and_truncation_of_the_tokenizer_do_not_matter() -> None:
    tokenizer = word_piece()
    text = "ba bei bo bun " * 40
    wanted = tokenizer(text, add_special_tokens=False)["input_ids"]
    tokenizer(["ba", text], padding=True, truncation=True, max_length=8)
    encode = SentenceTokenizer(tokenizer)
    tokenizer(["ba", text], padding=True, truncation=True, max_length=8)
    assert encode([text.strip(), "ba"]).ids.tolist()[: len(wanted)] == encode.encode(text) == wanted
    assert tokenizer.backend_tokenizer.truncation is not None  # a copy was made


def test_special_tokens_in_a_text_are_what_the_tokenizer_makes_of_them() -> None:
    for split in (False, True):
        tokenizer = word_piece()
        tokenizer.split_special_tokens = split
        wanted = tokenizer("ba [SEP] bo.", add_special_tokens=False)["input_ids"]
        assert (tokenizer.sep_token_id in wanted) is not split
        assert SentenceTokenizer(tokenizer)(["ba [SEP] bo."]).ids.tolist() == wanted


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(ModelError, match="not a fast tokenizer"):
        SentenceTokenizer(BertConfig())  # type: ignore[arg-type]
