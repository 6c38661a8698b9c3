"""Base form conversion: expand contractions before tokenization (TA-SBERT, section III-A)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import regex
from sentence_transformers.base.modules import Transformer

from simlte_st.compat import Features
from simlte_st.extras import require

APOSTROPHES = "'\u2019\u2018\u02bc"

STRAIGHT = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))

SIGN = r"[\p{L}\p{M}\p{N}]"
"""A letter, mark or digit, but not an underscore: "_don't_" contains a word."""

ENDING = rf"(?:n[{APOSTROPHES}]t|[{APOSTROPHES}](?:d|ll|m|re|s|ve))"

CONTRACTION = regex.compile(
    # A word with endings attached to it or, as in tokenized texts, separated from it.
    rf"(?<!{SIGN})({SIGN}+)((?: {ENDING}+(?!\S)|{ENDING}+(?!{SIGN}))+)"
    # An ending without a word is kept: the "d" in "'d've" is not a word.
    rf"|{ENDING}+(?!{SIGN})",
    regex.IGNORECASE,
)

EACH_ENDING = re.compile(f" ?{ENDING}", re.IGNORECASE)

AFTER_HAVE = re.compile(r"\s+(?:(?:already|also|always|just|never|not)\s+)?(been|better|got|had)\b", re.IGNORECASE)

GUESSES = {"'s": ("is", "has", ("been", "got", "had")), "'d": ("would", "had", ("been", "better", "got", "had"))}
"""Readings of ambiguous endings: the usual one, and an alternative before certain words."""

STEMS = ("ca", "sha", "wo")
"""Stems that are not words. spaCy also expands other stems, but loses their tense ("do" for "did")."""


class BaseForm(Transformer):
    """A ``Transformer`` that expands English contractions: "won't" becomes "will not". Possessives are kept.

    A WordPiece tokenizer splits "won't" into "won", "'" and "t", but "won" is a different word. Expansions come from
    spaCy's list of English contractions, which needs no model. Rules resolve ambiguous endings. After the pronouns and
    question words in that list, 's becomes "has" before been, got and had, and "is" otherwise. After its pronouns, 'd
    becomes "had" before better, been, got and had, and "would" otherwise. After all other words, where 's is mostly a
    possessive, 's and 'd are kept. "ain't" and "y'all" are also kept. Separated endings, as in tokenized texts
    ("ca n't", "it 's"), follow the same rules. Expansions are in lower case; all other text is unchanged. Prompts are
    expanded separately.

    Use it as a model's first module; it is saved with the model::

        SentenceTransformer(modules=[BaseForm("google-bert/bert-base-uncased"), TokenAttention(768)])

    It takes the arguments of ``Transformer``.

    Raises:
        MissingExtraError: spaCy is not installed (the ``pos`` extra).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _readings()  # raises now rather than at the first text
        super().__init__(*args, **kwargs)

    def preprocess(self, inputs: Any, prompt: str | None = None, *args: Any, **kwargs: Any) -> Features:
        """Expand contractions in texts and prompt, then preprocess them as ``Transformer`` does."""
        # Transformer prepends this prompt, and measures its length by calling this method.
        features: Features = super().preprocess(_expand_nested(inputs), _expand_nested(prompt), *args, **kwargs)
        return features

    def __repr__(self) -> str:
        return "BaseForm" + super().__repr__().removeprefix("Transformer")


def expand_contractions(texts: Iterable[str]) -> Iterator[str]:
    """Expand the contractions of texts: "she won't, it's Ann's" becomes "she will not, it is Ann's".

    Args:
        texts: The texts.

    Returns:
        An iterator over the expanded texts.

    Raises:
        MissingExtraError: spaCy is not installed (the ``pos`` extra).

    Example:
        ::

            list(expand_contractions(["She won't."]))  # ["She will not."]
    """
    for text in texts:
        yield CONTRACTION.sub(_expand, text) if any(apostrophe in text for apostrophe in APOSTROPHES) else text


def _expand(contraction: re.Match[str]) -> str:
    """Return the expansion of a match of :data:`CONTRACTION`."""
    text, word = contraction.string, contraction[1]
    if word is None:
        return contraction[0]
    previous = word.lower()
    parts = [word]
    for ending_match in EACH_ENDING.finditer(text, contraction.end(1), contraction.end()):
        original = ending_match[0].strip()
        ending = original.casefold().translate(STRAIGHT)
        following = AFTER_HAVE.match(text, ending_match.end())
        attached = ending_match[0] == original and ending_match.start() == contraction.end(1)
        reading = _reading(previous, ending, attached, following[1].lower() if following else "")
        if reading is None:
            parts.append(ending_match[0])
        else:
            if ending == "n't" and previous in STEMS:
                parts = [_readings()[previous]]
            parts += [" ", reading]
        previous = ending
    return "".join(parts)


def _reading(previous: str, ending: str, attached: bool, following: str) -> str | None:
    """Return the reading of an ending; None to keep it as it is."""
    readings = _readings()
    reading = readings.get(previous + ending)
    if ending in GUESSES:
        usual, alternative, words = GUESSES[ending]
        return reading if reading != "" else alternative if following in words else usual
    if ending == "n't" and previous == "ai":
        return None  # "ain't" may be am, is, are, has or have not
    if ending in ("n't", "'m") and reading is None and attached:
        return None  # "con't" is not a negation, "ma'm" has no "am"
    return readings[ending]


def _expand_nested(inputs: object) -> Any:
    """Expand the contractions of all texts in a nested input."""
    if isinstance(inputs, str):
        return next(expand_contractions([inputs]))
    if isinstance(inputs, dict):
        return {key: _expand_nested(part) for key, part in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, (bytes, bytearray)):
        return [_expand_nested(part) for part in inputs]
    return inputs


@functools.cache
def _readings() -> dict[str, str]:
    """Return spaCy's list of English contractions, with "" for an ambiguous reading."""
    spacy = require("spacy.lang.en.tokenizer_exceptions", "pos", "Base form conversion")
    readings = {"here's": ""}  # the only frequent contraction that spaCy lacks
    for contraction, pieces in spacy.TOKENIZER_EXCEPTIONS.items():
        if len(pieces) == 2 and "'" in contraction:
            norms = {piece[spacy.ORTH].lower(): piece.get(spacy.NORM, "") for piece in pieces}
            words = {part: norm for part, norm in norms.items() if norm.isalpha()}
            readings |= words | {contraction.lower(): words.get(pieces[1][spacy.ORTH], "")}
    for word in ("how", "what", "when", "where", "why"):
        del readings[f"{word}'d"]  # in "how'd you know", 'd means did more often than would
    return readings
