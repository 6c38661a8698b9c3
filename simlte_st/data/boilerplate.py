"""Boilerplate: lines that many documents share, such as headers, footers, licences and menus; found and left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from simlte_st.data.document import text_key
from simlte_st.data.tables import Event, Row, Skip

BOILERPLATE = "boilerplate"
NOTHING_ELSE = "nothing but boilerplate"

SHARE = 0.1
"""Boilerplate are the lines that stand in more than this part of the documents, ..."""

LEAST = 5
"""... and in as many of them at least."""

TOLD = 0.05
"""From this part of the words on, the report tells of boilerplate."""

_COUNTERS = 1 << 22  # of each of two tables, in which a line is counted by its hash: 32 MB for any number of lines
_MOST_SAMPLED, _MOST_CHARACTERS = 1_000, 5_000_000
_FEW = 20  # documents that tell nothing
_SHOWN = 60
_NUMBER = re.compile(r"[0-9]+")
_BLANK_LINES = re.compile(r"\n{3,}")


def _is_shared(number: int, documents: int) -> bool:
    return number >= LEAST and number > SHARE * documents


def _lines(text: str) -> list[str]:
    """Return the lines of a text as they are compared: case, white space and what numbers stand in them are alike."""
    return [" ".join(line.split()) for line in _NUMBER.sub("0", text.lower()).split("\n")]


def _different(texts: Iterable[str]) -> Iterator[str]:
    """Leave out texts that were there before: copies of a document do not make its lines boilerplate."""
    seen = set[int]()
    for text in texts:
        key = text_key(text)
        if key not in seen:
            seen.add(key)
            yield text


class Boilerplate:
    """The lines that many of some documents share, in memory that does not grow with the lines.

    In how many documents a line stands is never counted too low, and too high only where two others have its places in
    both tables (Cormode and Muthukrishnan, Count-Min, 2005).
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._documents = 0
        self._counts = np.zeros((2, _COUNTERS), dtype=np.uint32)
        for text in _different(texts):
            self._documents += 1
            places = np.array([_places(line) for line in set(_lines(text)) - {""}], dtype=np.int64).reshape(-1, 2)
            for table, column in zip(self._counts, places.T, strict=True):
                table[np.unique(column)] += 1

    def _holds(self, line: str) -> bool:
        return line != "" and _is_shared(
            min(int(table[place]) for table, place in zip(self._counts, _places(line), strict=True)), self._documents
        )

    def split(self, text: str) -> tuple[str, list[str]]:
        """Return a text without its lines that are boilerplate, and these."""
        kept, dropped = list[str](), list[str]()
        for line, compared in zip(text.split("\n"), _lines(text), strict=True):
            (dropped if self._holds(compared) else kept).append(line)
        return (_BLANK_LINES.sub("\n\n", "\n".join(kept)).strip(), dropped) if dropped else (text, [])

    def take_out(self, events: Iterable[Event]) -> Iterator[Event]:
        """Leave the lines out of the rows among events."""
        for event in events:
            if isinstance(event, Row) and isinstance(event.text, str):
                text, dropped = self.split(event.text)
                if dropped and not text:
                    event = Skip(event.where, NOTHING_ELSE, _shown(dropped[0]), id=event.made_id)
                elif dropped:
                    several = f"{len(dropped):,} lines such as " * (len(dropped) > 1)
                    what = several + _shown(dropped[0])
                    event = replace(event, text=text, left_out=(*event.left_out, (BOILERPLATE, what)))
            yield event


class BoilerplateSample:
    """How much of the first documents is boilerplate."""

    def __init__(self) -> None:
        self._documents = self._words = self._characters = 0
        self._counts: Counter[str] = Counter()
        self._seen = set[str]()

    def add(self, text: str) -> None:
        """Count the lines of one of the first documents."""
        if self._documents < _MOST_SAMPLED and self._characters < _MOST_CHARACTERS and text not in self._seen:
            self._seen.add(text)
            self._documents += 1
            self._characters += len(text)
            self._words += len(text.split())
            self._counts.update(set(_lines(text)))

    def told(self) -> str:
        """Return in a sentence how much of them is boilerplate; "" if that is little, or they are few."""
        if self._documents < _FEW:
            return ""
        shared = {line: number for line, number in self._counts.items() if _is_shared(number, self._documents)}
        words = {line: number * len(line.split()) for line, number in shared.items()}
        if (part := sum(words.values()) / self._words) < TOLD:
            return ""
        return (
            f"{part:.0%} of the words of the first {self._documents:,} documents are lines that stand in more than a "
            f"tenth of them, such as {_shown(max(words, key=lambda line: words[line]))}: drop_boilerplate=True leaves "
            "them out"
        )


def _places(line: str) -> tuple[int, int]:
    key = text_key(line)
    return key % _COUNTERS, (key >> 32) % _COUNTERS


def _shown(line: str) -> str:
    line = line.strip()
    return repr(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…")
