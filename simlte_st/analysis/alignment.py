"""From sub-words to words: the attention to each word, and the class that the word belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simlte_st.analysis.readings import Reading
from simlte_st.analysis.tagging import TaggedWord

WORD_CLASSES = ("nouns", "verbs", "adjectives", "others")
"""The kinds of words that the paper's figure shows."""

PUNCTUATION = "punctuation"
SPECIAL = "special tokens"
CLASSES = (*WORD_CLASSES, PUNCTUATION, SPECIAL)
"""All that ``[CLS]`` can attend to; the last two are no words."""

_CLASS_OF = {
    "NOUN": "nouns",
    "PROPN": "nouns",
    "VERB": "verbs",
    "ADJ": "adjectives",
    "PUNCT": PUNCTUATION,
    "SYM": PUNCTUATION,
    "SPACE": PUNCTUATION,
}


class WordWeight(NamedTuple):
    """A word and how much ``[CLS]`` attends to it.

    Attributes:
        start: Index of its first character in the text.
        stop: Index after its last character.
        kind: One of :data:`WORD_CLASSES`, or :data:`PUNCTUATION`.
        weight: Attention, summed over the word's sub-words.
    """

    start: int
    stop: int
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class Aligned:
    """A text's words with their weights; all weights of a reading are somewhere in it.

    Attributes:
        words: The words that the model read, in order.
        between: Weight of tokens that stand in no word.
        special: Weight of special tokens, ``[CLS]`` itself among them.
        special_tokens: How many there are.
    """

    words: tuple[WordWeight, ...]
    between: float
    special: float
    special_tokens: int

    def sums(self) -> NDArray[np.float64]:
        """Count and weigh by class.

        Returns:
            ``(2, classes)`` in the order of :data:`CLASSES`: how many there are, and their weight, whose sum is 1.
        """
        sums = np.zeros((2, len(CLASSES)))
        for word in self.words:
            sums[:, CLASSES.index(word.kind)] += 1.0, word.weight
        sums[1, CLASSES.index(PUNCTUATION)] += self.between
        sums[:, CLASSES.index(SPECIAL)] = self.special_tokens, self.special
        return sums


def class_of(pos: str) -> str:
    """Name the class of a universal part of speech.

    Names are nouns; auxiliaries, adverbs, pronouns, numbers, ... are others; symbols and white space go with
    punctuation.
    """
    return _CLASS_OF.get(pos, "others")


def align(reading: Reading, words: Sequence[TaggedWord]) -> Aligned:
    """Sum the weights of tokens over the words they stand in, by character offsets.

    Args:
        reading: What the model read.
        words: The words of the text, in order, none overlapping another. Those outside of what the model read are left
            out.

    Returns:
        The words with their weights. A token that reaches over several words ("don" in "do|n't") is divided in
        proportion to its characters in each.
    """
    begin, stop = reading.extent
    read = [word for word in words if word.start < stop and word.stop > begin]
    sums = [0.0] * len(read)
    between = 0.0
    first = 0  # words before it end before the current token
    own = ~reading.special
    spans, weights = reading.spans[own], reading.weights[own]
    for place in np.argsort(spans[:, 0], kind="stable"):
        start, end, weight = int(spans[place, 0]), int(spans[place, 1]), float(weights[place])
        while first < len(read) and read[first].stop <= start:
            first += 1
        shares = []
        number = first
        while number < len(read) and read[number].start < end:
            shares.append((number, min(end, read[number].stop) - max(start, read[number].start)))
            number += 1
        total = sum(share for _, share in shares)
        if total <= 0:
            between += weight
            continue
        for number, share in shares:
            sums[number] += weight * share / total
    return Aligned(
        words=tuple(
            WordWeight(word.start, word.stop, class_of(word.pos), weight)
            for word, weight in zip(read, sums, strict=True)
        ),
        between=between,
        special=float(reading.weights[reading.special].sum()),
        special_tokens=int(reading.special.sum()),
    )
