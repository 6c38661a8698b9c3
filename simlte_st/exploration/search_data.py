"""Prepare the data with which the page's script searches documents, by words and by the vectors of a static model.

The script ranks documents as :meth:`simlte_st.search.Index.search` does. It cannot stem, so it gets the terms of each
word of the corpus. It tokenizes as BERT does; with other tokenizers, the page searches by words alone.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from simlte_st.exploration.duplicates import count_shared
from simlte_st.exploration.html import pack
from simlte_st.files import to_json
from simlte_st.models.vectors import Floats, Ints, TokenVectors, row_blocks
from simlte_st.prompts import query_prompt
from simlte_st.reading.document import Document, peek, searched_text
from simlte_st.search.hits import STATIC_VECTORS
from simlte_st.words.analyzer import extract_terms, normal, query_terms
from simlte_st.words.languages import LanguageFinder, stop_words
from simlte_st.words.tokens import counted_ids

_MAX_LEVEL, _MIN_LEVEL = 31, 4
_MAX_WORD = 100  # characters; nobody types longer words, such as encoded files
_NORMALIZER = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
_TOKENIZER = {"normalizer": {"type": "BertNormalizer", **_NORMALIZER}, "pre_tokenizer": {"type": "BertPreTokenizer"}}
"""Settings of the WordPiece tokenizers that the page's script can replace."""


def index_words(documents: Sequence[Document], language: str | None) -> dict[str, object]:
    """Return the words of the corpus with their terms, the postings of each term, and the stop words of each language.

    Words are sorted, and begin with the number of characters that they share with the previous word. Terms are given
    by the number of characters removed from the end of the word, and those added. Postings are in the order in which
    words first have the terms. A posting is the number of documents since the term's previous one, followed by minus
    the term's count if it is above 1.
    """
    find_language = LanguageFinder(peek((document.text for document in documents), len)[0], language)
    words, languages = dict[str, str](), dict[str, None]()
    postings, last_rows = defaultdict[str, list[int]](list), defaultdict[str, int](int)
    for row, document in enumerate(documents):
        languages[text_language := find_language(document.text)] = None
        terms = extract_terms(searched_text(document.text, document.metadata or {}), text_language)
        words.update((normal(term.word), term.word) for term in terms)
        for term, count in Counter(term.term for term in terms).items():
            postings[term] += [row - last_rows[term], *([-count] if count > 1 else [])]
            last_rows[term] = row
    lines, changes, all_terms, previous = list[str](), list[str](), dict[str, None](), ""
    for word, written in sorted(words.items()):
        if len(word) <= _MAX_WORD:
            shared = count_shared(previous, word)
            lines.append(f"{shared} {word[shared:]}")
            variants = dict.fromkeys(term for language in languages for term in query_terms(written, language))
            shares = [(count_shared(word, term), term) for term in variants]
            changes.append(" ".join(f"{len(word) - shared}:{term[shared:]}" for shared, term in shares))
            all_terms |= variants
            previous = word
    return {
        "words": "\n".join(lines),
        "changes": "\n".join(changes),
        "postings": "\n".join(" ".join(map(str, postings[term])) for term in all_terms),
        "stops": {language: sorted(stop_words(language)) for language in languages},
    }


def can_tokenize(model: TokenVectors) -> bool:
    """Return whether the page's script can tokenize as the model does."""
    settings = json.loads(model.tokenizer.to_str())
    is_wordpiece = settings["model"]["type"] == "WordPiece" and settings["model"]["continuing_subword_prefix"] == "##"
    return is_wordpiece and all(settings[name] == expected for name, expected in _TOKENIZER.items())


def pack_model(model: TokenVectors, texts: Sequence[str], rows: Ints) -> tuple[str, Floats]:
    """Pack the vocabulary with the settings, and return the vectors of the tokens of the corpus.

    The vocabulary begins with these tokens, which alone have vectors on the page; each of the others is projected on
    the nearest of them.

    Args:
        model: The static model.
        texts: Texts of the documents.
        rows: Document of each vector of a document or passage.
    """
    seen = np.unique(counted_ids(model.tokenizer, texts)[0])
    others = np.setdiff1d(np.arange(len(model.table)), seen)
    settings = {
        "tokens": [model.tokenizer.id_to_token(number) for number in (*seen.tolist(), *others.tolist())],
        "projections": _project(model.table[others], model.table[seen]),
        "rows": rows.tolist(),
        "prompt": query_prompt(model),
        "weight": STATIC_VECTORS,
    }
    return pack(to_json(settings, indent=None).encode("utf-8")), model.table[seen]


def pack_vectors(tokens: Floats, vectors: Floats, room: int) -> str:
    """Pack the vectors of tokens, and those of documents or passages, of length 1.

    They are stored as a scale (float32; all scales come first) and integers (int8). The fewer levels the integers have,
    the better they compress, so the levels are the most that fit: for 1,000 articles of the BBC, five in each direction
    for tokens. ``room`` is the maximum size in bytes, unless this would leave fewer than four levels.
    """
    packed, level = "", _MAX_LEVEL
    values, sizes = np.concatenate([tokens, vectors]), (len(tokens), len(vectors))
    largest = np.maximum(np.abs(values).max(axis=1), 1e-9)
    while not packed or (len(packed) > room and level >= _MIN_LEVEL):
        # There are far more tokens than documents, so these can have finer levels.
        scales = (largest / np.repeat((level, min(127, 5 * level)), sizes)).astype(np.float32)
        integers = np.rint(values / scales[:, None]).astype(np.int8)
        packed = pack(scales.tobytes() + integers.tobytes(), zlib.Z_HUFFMAN_ONLY)
        level = level // 2 if level > 15 else level - 1
    return packed


def _project(others: Floats, seen: Floats) -> list[tuple[int, float]]:
    """Return the row and the factor of the nearest of the ``seen`` vectors for each other vector.

    The factor times the nearest vector is the projection on it. In place of 200 words that no article contains, it
    finds 3 of the first 10 hits.
    """
    norms, projections = np.maximum(np.linalg.norm(seen, axis=1), 1e-9), list[tuple[int, float]]()
    for block in row_blocks(len(others), len(seen)):
        lengths = others[block] @ (seen / norms[:, None]).T
        rows = lengths.argmax(axis=1)
        projections += zip(rows.tolist(), np.round(lengths.max(axis=1) / norms[rows], 1).tolist(), strict=True)
    return projections
