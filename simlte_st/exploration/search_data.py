"""Prepare the data with which the page's script searches documents, by words and by the vectors of a static model.

The script ranks documents as :meth:`simlte_st.search.Index.search` does. It cannot stem, so it gets the terms of each
word of the corpus. It tokenizes as BERT does; with other tokenizers, the page searches by words alone.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from simlte_st.exploration.html import pack
from simlte_st.models.vectors import Floats, Ints, TokenVectors
from simlte_st.prompts import query_prompt
from simlte_st.reading.document import peek
from simlte_st.search.hits import VECTORS
from simlte_st.words.analyzer import extract_terms, normal, query_terms
from simlte_st.words.languages import LanguageFinder, stop_words
from simlte_st.words.tokens import counted_ids, unknown_id

_MAX_LEVEL, _MIN_LEVEL = 127, 3
_WORDPIECE = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "continuing_subword_prefix": "##"},
}
"""Settings of the tokenizers that the page's script can replace."""


def index_words(texts: Sequence[str], language: str | None) -> dict[str, object]:
    """Return the terms of each word of the corpus, the postings of each term, and the stop words of each language.

    A posting is the number of documents since the term's previous one, followed by minus the term's count if it is
    above 1.
    """
    find_language = LanguageFinder(peek(texts, len)[0], language)
    words, languages = dict[str, str](), dict[str, None]()
    postings, last_rows = defaultdict[str, list[int]](list), defaultdict[str, int](int)
    for row, text in enumerate(texts):
        languages[text_language := find_language(text)] = None
        terms = extract_terms(text, text_language)
        words.update((normal(term.word), term.word) for term in terms)
        for term, count in Counter(term.term for term in terms).items():
            postings[term] += [row - last_rows[term], *([-count] if count > 1 else [])]
            last_rows[term] = row
    variants = ((term for language in languages for term in query_terms(word, language)) for word in words.values())
    return {
        "words": dict(sorted(zip(words, (" ".join(dict.fromkeys(terms)) for terms in variants), strict=True))),
        "terms": " ".join(postings),
        "postings": "\n".join(" ".join(map(str, numbers)) for numbers in postings.values()),
        "stops": {language: sorted(stop_words(language)) for language in languages},
    }


def can_tokenize(model: TokenVectors) -> bool:
    """Return whether the page's script can tokenize as the model does."""
    settings = json.loads(model.tokenizer.to_str())
    expected = ((settings[part], values) for part, values in _WORDPIECE.items())
    is_uncased = all(actual is not None and values.items() <= actual.items() for actual, values in expected)
    return is_uncased and settings["normalizer"]["strip_accents"] is not False


def seen_tokens(model: TokenVectors, texts: Sequence[str]) -> Ints:
    """Return the ids of the tokens in the corpus, and of the unknown token, sorted."""
    unknown = unknown_id(model.tokenizer)
    ids = counted_ids(model.tokenizer, texts)[0]
    return np.unique(ids if unknown is None else [*ids, unknown])


def tokens(model: TokenVectors, seen: Ints) -> dict[str, object]:
    """Return the settings for vector search, with the vocabulary: tokens with vectors first.

    The script needs the others to split words.
    """
    ids = [*seen.tolist(), *np.setdiff1d(np.arange(len(model.table)), seen).tolist()]
    names = [model.tokenizer.id_to_token(number) for number in ids]
    return {"tokens": names, "seen": len(seen), "prompt": query_prompt(model), "weight": VECTORS}


def pack_vectors(table: Floats, documents: Floats, max_bytes: int) -> str:
    """Pack vectors of tokens and documents: a scale for each, as float32, and then its values as int8.

    The fewer levels the values of tokens have, the smaller they become. With 1,000 articles of the BBC, six levels in
    each direction remain.
    """
    level = _MAX_LEVEL
    while True:
        pairs = zip(_quantize(table, level), _quantize(documents, _MAX_LEVEL), strict=True)
        packed = pack(b"".join(array.tobytes() for pair in pairs for array in pair), zlib.Z_HUFFMAN_ONLY)
        if len(packed) <= max_bytes or level <= _MIN_LEVEL:
            return packed
        level = level * 4 // 5


def _quantize(vectors: Floats, level: int) -> tuple[Floats, NDArray[np.int8]]:
    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-9) / level
    return scales.astype(np.float32), np.rint(vectors / scales[:, None]).astype(np.int8)
