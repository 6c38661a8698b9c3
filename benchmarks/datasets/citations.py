"""A data set of papers and citation links: pairs as they are published, or made from papers and their links."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets.benchmark import SPLITS, Card
from benchmarks.datasets.labelled import MOST_CHARACTERS, Found, describe_file
from simlte_st.data.config import SourceConfig
from simlte_st.data.formats import format_of, open_table
from simlte_st.data.formats.base import TableFormat
from simlte_st.data.tables import BLANK_LINE, WRONG_FIELDS, Event, RawRow, Row, Skip, Table
from simlte_st.data.text_files import read_lines
from simlte_st.errors import DataError

BAD_LABEL = "label neither 0 nor 1"
NO_LINK = "no link"

_FIELDS = 5  # label, id1, id2, text1, text2
_LABELS = {"0": 0, "0.0": 0, "1": 1, "1.0": 1}
_LINK_COLUMNS = (("citing", "cited"), ("citing_id", "cited_id"))
_BYTES = re.compile(r"""b(['"]).*\1""", re.DOTALL)

Pair = tuple[str, str, int, str]
"""Citing paper, cited paper, 1 for a citation or 0 for none, split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPapers(Found):
    """A citation data set that was found.

    Attributes:
        pairs: Gives the pairs, once the papers were read: told the ids of the usable ones, the pairs of which both are
            usable, and how many were left out because one was not.
        origin: Who made the pairs and their split.
    """

    pairs: Callable[[set[str]], tuple[list[Pair], int]]
    origin: str


class PairFiles:
    """The Long Range Arena's files: a pair a line, tab-separated, no header, no quoting: label, ids, both texts."""

    def __init__(self, files: Sequence[tuple[str, Path]]) -> None:
        self._files = files
        self._pairs: list[Pair] = []

    def events(self) -> Iterator[Event]:
        """Return each paper where its id first occurs."""
        self._pairs = []
        seen: set[str] = set()
        for split, path in self._files:
            for line in read_lines(path, "utf-8", MOST_CHARACTERS):
                where = f"{path.name} line {line.number:,}"
                fields = line.text.rstrip("\r\n").split("\t")
                label = _LABELS.get(fields[0].strip())
                if line.problem:
                    yield Skip(where, line.problem, line.what)
                elif not line.text.strip():
                    yield Skip(where, BLANK_LINE, ignored=True)
                elif len(fields) != _FIELDS:
                    yield Skip(where, WRONG_FIELDS, f"{len(fields)} instead of {_FIELDS}")
                elif label is None:
                    yield Skip(where, BAD_LABEL, repr(fields[0]))
                else:
                    one, two = map(plain_text, fields[1:3])
                    self._pairs.append((one, two, label, split))
                    for id_, text in zip((one, two), fields[3:], strict=True):
                        if id_ not in seen:
                            seen.add(id_)
                            yield Row(f"{path.name}: {id_}", None, plain_text(text), id=id_, has_id=True)

    def pairs(self, known: set[str]) -> tuple[list[Pair], int]:
        """Return the pairs as they are published; see :class:`FoundPapers`."""
        pairs = [pair for pair in self._pairs if pair[0] in known and pair[1] in known]
        return pairs, len(self._pairs) - len(pairs)


def plain_text(field: str) -> str:
    """Undo Python's notation of bytes (``b'...'``), in which texts were written to the Arena's files."""
    if _BYTES.fullmatch(field):
        try:
            value = ast.literal_eval(field)
        except (ValueError, SyntaxError):
            return field
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else field
    return field


class PapersAndLinks:
    """A table of papers (id, text) and a table of links (citing, cited); pairs are made of them."""

    def __init__(self, papers: Path, links: Path, seed: int) -> None:
        self._papers, self._seed = papers, seed
        self._skipped: list[Skip] = []
        self._links = list(dict.fromkeys(self._read_links(links)))

    def _read_links(self, path: Path) -> Iterator[tuple[str, str]]:
        table = self._table(path, _LINK_COLUMNS)
        columns = next(pair for pair in _LINK_COLUMNS if set(pair) <= set(table.columns))
        for raw in table.rows(columns, ()):
            values = raw.values if isinstance(raw, RawRow) else {}
            citing, cited = map(values.get, columns)
            if isinstance(raw, Skip):
                self._skipped.append(raw)
            elif citing is None or cited is None or str(citing) == str(cited):
                self._skipped.append(Skip(f"{path.name} {raw.where}", NO_LINK, f"{citing!r} to {cited!r}"))
            else:
                yield str(citing), str(cited)

    def events(self) -> Iterator[Event]:
        """Return the papers; those that no link names too."""
        yield from self._skipped
        for raw in self._table(self._papers, [("id", "text")]).rows(("id", "text"), ()):
            if isinstance(raw, RawRow):
                yield Row(raw.where, raw.made_id, raw.values.get("text"), raw.values.get("id"), has_id=True)
            else:
                yield raw

    def _table(self, path: Path, choices: Sequence[tuple[str, str]]) -> Table:
        table = open_table(path, SourceConfig(max_characters=MOST_CHARACTERS))
        if not any(set(columns) <= set(table.columns) for columns in choices):
            wanted = "; or ".join(" and ".join(columns) for columns in choices)
            raise DataError(f"{path} has the columns {', '.join(table.columns)}; it should have: {wanted}.")
        return table

    def pairs(self, known: set[str]) -> tuple[list[Pair], int]:
        """Make a pair without a link for each link, and divide them by citing paper; see :class:`FoundPapers`.

        The paper that is not cited is the one of another link, drawn at random. So a paper occurs in pairs without a
        link as often as it is cited, and that a paper is popular tells nothing.
        """
        links = [link for link in self._links if link[0] in known and link[1] in known]
        linked = {*links, *((cited, citing) for citing, cited in links)}
        generator = np.random.default_rng([self._seed, len(links)])
        citing = sorted({link[0] for link in links})
        parts = np.split(generator.permutation(len(citing)), [round(len(citing) * share) for share in (0.8, 0.9)])
        split = {citing[index]: name for name, part in zip(SPLITS, parts, strict=True) for index in part}
        pairs: list[Pair] = []
        for source, target in links:
            pairs.append((source, target, 1, split[source]))
            for index in generator.integers(len(links), size=100):
                other = links[index][1]
                if other != source and (source, other) not in linked:
                    pairs.append((source, other, 0, split[source]))
                    break
        return pairs, len(self._links) - len(links)


@dataclass(frozen=True, slots=True)
class CitationSet:
    """How to read one data set of papers and links.

    Attributes:
        card: The data set in words.
        pair_files: Names of the files of pairs, each with its split.
        papers: Names of the table of papers, without suffix.
        links: Names of the table of links, without suffix.
    """

    card: Card
    pair_files: Mapping[str, str]
    papers: Sequence[str]
    links: Sequence[str]

    def find(self, path: Path | None, seed: int) -> FoundPapers:
        """Find the data set in a folder."""
        if path is None:
            raise DataError(f"There is no {self.card.name!r} here. {self.card.where_to_get()}")
        folder = path.parent if path.is_file() else path
        if not folder.is_dir():
            raise DataError(f"There is no file or folder {str(path)!r}. {self.card.where_to_get()}")
        files = [(split, folder / name) for name, split in self.pair_files.items() if (folder / name).exists()]
        if files:
            published = PairFiles(files)
            key: list[Any] = ["pairs", *(describe_file(file) for _, file in files)]
            return FoundPapers(str(folder), published.events, key, pairs=published.pairs, origin="of the data set")
        papers, links = _table_of(folder, self.papers), _table_of(folder, self.links)
        if papers is None or links is None:
            raise DataError(f"{folder} holds no {self.card.name!r}. {self.card.where_to_get()}")
        made = PapersAndLinks(papers, links, seed)
        key = ["links", seed, describe_file(papers), describe_file(links)]
        origin = (
            "made here of the links: as many pairs without a link, divided by citing paper (80% train, 10% validation, "
            f"10% test), seed {seed}"
        )
        return FoundPapers(str(folder), made.events, key, pairs=made.pairs, origin=origin)


def _table_of(folder: Path, names: Sequence[str]) -> Path | None:
    files = sorted(path for path in folder.iterdir() if path.is_file() and isinstance(format_of(path), TableFormat))
    return next((file for name in names for file in files if file.name.split(".")[0] == name), None)
