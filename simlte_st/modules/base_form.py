"""Base form conversion: expand contractions before tokenization (TA-SBERT, section III-A)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import regex
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer

from simlte_st.extras import require

APOSTROPHES = "'\u2019\u2018\u02bc"

STRAIGHT = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))

SIGN = r"[\p{L}\p{M}\p{N}]"
"""A letter or digit, not an underscore: "_don't_" contains a word."""

ENDING = rf"(?:n[{APOSTROPHES}]t|[{APOSTROPHES}](?:d|ll|m|re|s|ve))"

CONTRACTION = regex.compile(
    # A word with endings attached to it or, as in tokenized texts, separated from it.
    rf"(?<!{SIGN})({SIGN}+)((?: {ENDING}+(?!\S)|{ENDING}+(?!{SIGN}))+)"
    # An ending without a word stays: the "d" of "'d've" is not a word.
    rf"|{ENDING}+(?!{SIGN})",
    regex.IGNORECASE,
)

EACH_ENDING = re.compile(f" ?{ENDING}", re.IGNORECASE)

AFTER_HAVE = re.compile(r"\s+(?:(?:already|also|always|just|never|not)\s+)?(been|better|got|had)\b", re.IGNORECASE)

GUESSES = {"'s": ("is", "has", ("been", "got", "had")), "'d": ("would", "had", ("been", "better", "got", "had"))}
"""Readings that spaCy leaves open: the usual one, and another one before some words."""

STEMS = ("ca", "sha", "wo")
"""Stems that are not words. spaCy also has readings of other stems, but they lose the tense: "do" for "did"."""


class BaseForm(Transformer):
    """A ``Transformer`` that expands English contractions: "won't" becomes "will not". Possessives stay.

    A WordPiece tokenizer splits "won't" into "won", "'" and "t", and "won" is another word. The readings come from
    spaCy's list of English contractions, which needs no model. Ambiguous endings follow rules. After the pronouns and
    question words of that list, 's becomes "has" before been, got and had, and otherwise "is". After its pronouns, 'd
    becomes "had" before these words and better, and otherwise "would". After all other words 's and 'd stay, as 's is
    mostly a possessive there; "ain't" and "y'all" stay, too. Separated endings, as in tokenized texts ("ca n't",
    "it 's"), follow the same rules. Expansions are in lower case; all other characters stay. Prompts are converted
    separately.

    Use it as a model's first module; it is saved with the model::

        SentenceTransformer(modules=[BaseForm("google-bert/bert-base-uncased"), TokenAttention(768)])

    It takes the arguments of ``Transformer``.

    Raises:
        MissingExtraError: spaCy is not installed (extra ``pos``).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _readings()  # raise now rather than at the first text
        super().__init__(*args, **kwargs)

    def preprocess(self, inputs: Any, prompt: str | None = None, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Expand contractions in texts and prompt, then preprocess them as ``Transformer`` does."""
        # Transformer prepends the prompt as given, and measures its length with this method.
        features: dict[str, Any] = super().preprocess(_converted(inputs), _converted(prompt), *args, **kwargs)
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
        MissingExtraError: spaCy is not installed (extra ``pos``).

    Example:
        ::

            list(expand_contractions(["She won't."]))  # ["She will not."]
    """
    for text in texts:
        yield CONTRACTION.sub(_expanded, text) if any(sign in text for sign in APOSTROPHES) else text


def texts_as_read(model: SentenceTransformer, texts: Iterable[str]) -> list[str]:
    """Return texts or prompts as a model's tokenizer sees them: expanded for ``BaseForm``."""
    return list(expand_contractions(texts) if isinstance(model[0], BaseForm) else texts)


def _expanded(contraction: re.Match[str]) -> str:
    text, word = contraction.string, contraction[1]
    if word is None:
        return contraction[0]
    before = word.lower()
    parts = [word]
    for ending_match in EACH_ENDING.finditer(text, contraction.end(1), contraction.end()):
        written = ending_match[0].strip()
        ending = written.casefold().translate(STRAIGHT)
        after = AFTER_HAVE.match(text, ending_match.end())
        joined = ending_match[0] == written and ending_match.start() == contraction.end(1)
        reading = _reading(before, ending, joined, after[1].lower() if after else "")
        if reading is None:
            parts.append(ending_match[0])
        else:
            if ending == "n't" and before in STEMS:
                parts = [_readings()[before]]
            parts += [" ", reading]
        before = ending
    return "".join(parts)


def _reading(before: str, ending: str, joined: bool, after: str) -> str | None:
    """Return the reading of an ending; None if it stays."""
    readings = _readings()
    known = readings.get(before + ending)
    if ending in GUESSES:
        usual, other, signs = GUESSES[ending]
        return known if known != "" else other if after in signs else usual
    if ending == "n't" and before == "ai":
        return None  # "ain't" may be am, is, are, has or have not
    if ending in ("n't", "'m") and known is None and joined:
        return None  # "con't" is not a negation, "ma'm" has no "am"
    return readings[ending]


def _converted(inputs: Any) -> Any:
    """Convert all texts of a nested input."""
    if isinstance(inputs, str):
        return next(expand_contractions([inputs]))
    if isinstance(inputs, dict):
        return {key: _converted(value) for key, value in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, (bytes, bytearray)):
        return [_converted(part) for part in inputs]
    return inputs


@functools.cache
def _readings() -> dict[str, str]:
    """Return spaCy's list of English contractions."""
    spacy: Any = require("spacy.lang.en.tokenizer_exceptions", "pos", "Base form conversion")
    readings = {"here's": ""}  # the only frequent one that spaCy lacks
    for contraction, pieces in spacy.TOKENIZER_EXCEPTIONS.items():
        if len(pieces) == 2 and "'" in contraction:
            norms = {piece[spacy.ORTH].lower(): piece.get(spacy.NORM, "") for piece in pieces}
            words = {part: norm for part, norm in norms.items() if norm.isalpha()}
            readings |= words | {contraction.lower(): words.get(pieces[1][spacy.ORTH], "")}
    for word in ("how", "what", "when", "where", "why"):
        del readings[f"{word}'d"]  # "how'd you know" means did more often than would
    return readings
