"""Base form conversion: contractions are written out before the tokenizer sees them (TA-SBERT, section III-A)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sentence_transformers.base.modules import Transformer

from simlte_st.extras import require

APOSTROPHES = ("'", "\u2019")

VERBS_OF_SUBJECTS = {"'s": "is", "'d": "would"}
"""What spaCy leaves open: after a noun 's is a possessive (or not), after one of :data:`SUBJECTS` it is a verb."""

SUBJECTS = frozenset({
    "i", "you", "he", "she", "it", "we", "they", "this", "that", "these", "those", "there", "here", "what", "who",
    "where", "when", "why", "how", "everybody", "everyone", "everything", "nobody", "nothing", "somebody", "someone",
    "something",
})  # fmt: skip
"""Words that have no possessive in 's, or hardly ever."""


class BaseForm(Transformer):
    """``Transformer`` that reads "will not" where a text says "won't"; possessives stay as they are.

    A WordPiece tokenizer makes "won", "'" and "t" of "won't", and "won" is another word. spaCy's rules for English say
    which words contractions stand for; they need no model. 's and 'd, which they leave open, become "is" and "would"
    after pronouns and the like, and nowhere else. All other characters stay as they are.

    It is the first module of a model and is saved with it, so that training and inference agree::

        SentenceTransformer(modules=[BaseForm("google-bert/bert-base-uncased"), TokenAttention(768)])

    Args and the rest are those of ``Transformer``.

    Raises:
        MissingExtraError: spaCy is not installed (extra ``pos``).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _english()  # better now than at the first text
        super().__init__(*args, **kwargs)

    def preprocess(self, inputs: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Write contractions out, then do as ``Transformer`` does."""
        features: dict[str, Any] = super().preprocess(_converted(inputs), *args, **kwargs)
        return features


def expand_contractions(texts: Iterable[str]) -> Iterator[str]:
    """Write out the contractions of texts: of "she won't, it's Ann's" is made "she will not, it is Ann's".

    Texts without an apostrophe are given back at once.

    Raises:
        MissingExtraError: spaCy is not installed.
    """
    for text in texts:
        yield _expanded(text) if any(sign in text for sign in APOSTROPHES) else text


def _expanded(text: str) -> str:
    lower = text.lower()
    if len(lower) != len(text):  # of a few letters outside English
        lower = text
    tokens = list(_english()(lower.replace("\u2019", "'")))
    parts: list[str] = []
    end = 0
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number and not tokens[number - 1].whitespace_ else None
        after = tokens[number + 1] if number + 1 < len(tokens) and not token.whitespace_ else None
        word = _base_form(token, before, after)
        if word is not None:
            start, stop = token.idx, token.idx + len(token)
            gap = " " if before is not None else ""  # "n't" is written to the word before it; the stem "wo" is not
            parts += [text[end:start], gap, _cased(word, text[start:stop])]
            end = stop
    return "".join([*parts, text[end:]])


def _base_form(token: Any, before: Any, after: Any) -> str | None:
    """Give what a part of a contraction stands for; None where it stands for itself, or is no part of one.

    Args:
        token: Of spaCy, in lower case.
        before: The token that it is written to, if any.
        after: The one that is written to it.
    """
    text, norm = token.text, token.norm_
    stem = after is not None and after.text == "n't"
    ending = before is not None and (text == "n't" or text.startswith("'"))
    if "ai" in (text if stem else "", before.text if ending else ""):
        return None  # "ain't" may be am, is, are, has or have not
    if ending and text in VERBS_OF_SUBJECTS and not norm.isalpha():
        return VERBS_OF_SUBJECTS[text] if before.text in SUBJECTS else None
    return norm if (stem or ending) and norm.isalpha() and norm != text else None


def _cased(word: str, like: str) -> str:
    letters = [letter for letter in like if letter.isalpha()]
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return word.upper()
    return word.capitalize() if letters and letters[0].isupper() and len(letters) > 1 else word


def _converted(inputs: Any) -> Any:
    """Convert all texts of an input, in whatever they are nested."""
    if isinstance(inputs, str):
        return next(expand_contractions([inputs]))
    if isinstance(inputs, dict):
        return {key: _converted(value) for key, value in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, (bytes, bytearray)):
        return type(inputs)(_converted(part) for part in inputs)  # type: ignore[call-arg]
    return inputs


@functools.cache
def _english() -> Any:
    spacy = require("spacy", "pos", "Base form conversion")
    return spacy.blank("en").tokenizer
