"""A data set of papers and citation links: pairs as they are published, or made from papers and their links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simlte_st.data.columns import Event, RawRow, Row, Skip, Table
from simlte_st.data.streams import read_lines
from simlte_st.data.tables import BLANK_LINE, WRONG_FIELDS, open_table, table_suffix
from simlte_st.datasets.card import Card
from simlte_st.datasets.places import ReadOptions
from simlte_st.datasets.textset import describe_file, where_to_get
from simlte_st.errors import ConfigurationError, DataError

BAD_LABEL = "label neither 0 nor 1"
NO_LINK = "no link"

PARTS = (("train", 0.8), ("validation", 0.1), ("test", 0.1))
"""Splits that are made of papers and links, with their shares of the citing papers."""

_FIELDS = 5  # label, id1, id2, text1, text2
_LINK_COLUMNS = (("citing", "cited"), ("citing_id", "cited_id"))
_BYTES = re.compile(r"""b(['"]).*\1""", re.DOTALL)

Pair = tuple[str, str, int, str]
"""Citing paper, cited paper, 1 for a citation or 0 for none, split."""


class Papers:
    """The papers of a citation data set, read from their beginning by :meth:`events`, and its pairs, known after that.

    Subclasses say where both come from.
    """

    def events(self) -> Iterator[Event]:
        """Give the papers as rows for a document reader."""
        raise NotImplementedError

    def pairs(self, known: set[str]) -> tuple[list[Pair], int]:
        """Give the pairs whose papers were both usable, and how many are left out because one was not.

        Args:
            known: Ids of the papers that the reader gave.
        """
        raise NotImplementedError


class PairFiles(Papers):
    """The Long Range Arena's files: a pair a line, tab-separated, no header, no quoting: label, ids, both texts.

    Args:
        files: The split of each file, and the file.
        encoding: Their encoding.
        max_characters: Longest text wanted.
        limit: Pairs to read of each file; None for all.
    """

    def __init__(
        self, files: Sequence[tuple[str, Path]], encoding: str, max_characters: int, limit: int | None
    ) -> None:
        self._files, self._encoding, self._max_characters, self._limit = files, encoding, max_characters, limit
        self._pairs: list[Pair] = []

    def events(self) -> Iterator[Event]:
        """Give each paper where its id first occurs."""
        self._pairs = []
        seen: set[str] = set()
        for split, path in self._files:
            taken = 0
            for label, papers in self._lines(path):
                if isinstance(label, Skip):
                    yield label
                    continue
                if taken == self._limit:
                    break
                taken += 1
                self._pairs.append((papers[0][0], papers[1][0], label, split))
                for id_, text in papers:
                    if id_ not in seen:
                        seen.add(id_)
                        yield Row(f"{path.name}: {id_}", None, plain_text(text), id=id_, has_id=True)

    def _lines(self, path: Path) -> Iterator[tuple[int | Skip, Sequence[tuple[str, str]]]]:
        for line in read_lines(path, self._encoding, self._max_characters):
            where = f"{path.name} line {line.number:,}"
            fields = line.text.rstrip("\r\n").split("\t")
            label = _LABELS.get(fields[0].strip())
            if line.problem:
                yield Skip(where, line.problem, line.what), ()
            elif not line.text.strip():
                yield Skip(where, BLANK_LINE, ignored=True), ()
            elif len(fields) != _FIELDS:
                yield Skip(where, WRONG_FIELDS, f"{len(fields)} instead of {_FIELDS}"), ()
            elif label is None:
                yield Skip(where, BAD_LABEL, repr(fields[0])), ()
            else:
                one, two = plain_text(fields[1]), plain_text(fields[2])
                yield label, ((one, fields[3]), (two, fields[4]))

    def pairs(self, known: set[str]) -> tuple[list[Pair], int]:
        """Give the pairs as they are published."""
        pairs = [pair for pair in self._pairs if pair[0] in known and pair[1] in known]
        return pairs, len(self._pairs) - len(pairs)


_LABELS = {"0": 0, "0.0": 0, "1": 1, "1.0": 1}


def plain_text(field: str) -> str:
    """Undo Python's notation of bytes (``b'...'``), in which texts were written to the Arena's files."""
    if _BYTES.fullmatch(field):
        try:
            value = ast.literal_eval(field)
        except (ValueError, SyntaxError):
            return field
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else field
    return field


class PapersAndLinks(Papers):
    """A table of papers (id, text) and a table of links (citing, cited); pairs are made of them.

    Args:
        papers: The papers' file.
        links: The links' file.
        options: How to read them.
        limit: Links to read, and the papers they name; None for all.
        seed: Decides the pairs without a link, and the split.
    """

    def __init__(self, papers: Path, links: Path, options: ReadOptions, limit: int | None, seed: int) -> None:
        self._papers, self._options, self._seed = papers, options, seed
        self._encoding = options.encoding_or("utf-8")
        self._skipped: list[Skip] = []
        self._links = list(dict.fromkeys(self._read_links(links)))[:limit]
        self._wanted = None if limit is None else {paper for link in self._links for paper in link}

    def _read_links(self, path: Path) -> Iterator[tuple[str, str]]:
        table = open_table(path, self._encoding, self._options.max_characters)
        columns = next((pair for pair in _LINK_COLUMNS if set(pair) <= set(table.columns)), None)
        if columns is None:
            wanted = "; or ".join(" and ".join(pair) for pair in _LINK_COLUMNS)
            raise DataError(f"{path} has the columns {', '.join(table.columns)}; it should have: {wanted}.")
        for raw in table.rows(columns, ()):
            values = raw.values if isinstance(raw, RawRow) else {}
            citing, cited = values.get(columns[0]), values.get(columns[1])
            if isinstance(raw, Skip):
                self._skipped.append(raw)
            elif citing is None or cited is None or str(citing) == str(cited):
                self._skipped.append(Skip(f"{path.name} {raw.where}", NO_LINK, f"{citing!r} to {cited!r}"))
            else:
                yield str(citing), str(cited)

    def events(self) -> Iterator[Event]:
        """Give the papers; those that no link names too, unless there is a limit."""
        yield from self._skipped
        text, id_ = self._options.text_column or "text", self._options.id_column or "id"
        table: Table = open_table(self._papers, self._encoding, self._options.max_characters)
        if not {text, id_} <= set(table.columns):
            raise DataError(
                f"{self._papers} has the columns {', '.join(table.columns)}; it should have {id_} and {text}."
            )
        for raw in table.rows((id_, text), ()):
            if not isinstance(raw, RawRow):
                yield raw
            elif self._wanted is None or str(raw.values.get(id_)) in self._wanted:
                yield Row(raw.where, raw.made_id, raw.values.get(text), raw.values.get(id_), has_id=True)

    def pairs(self, known: set[str]) -> tuple[list[Pair], int]:
        """Make a pair without a link for each link, and divide them by citing paper.

        The paper that is not cited is the one of another link, drawn at random. So a paper occurs in pairs without a
        link as often as it is cited, and that a paper is popular tells nothing.
        """
        links = [link for link in self._links if link[0] in known and link[1] in known]
        linked = {*links, *((cited, citing) for citing, cited in links)}
        generator = np.random.default_rng([self._seed, len(links)])
        citing = sorted({link[0] for link in links})
        split = _divide([citing[index] for index in generator.permutation(len(citing))])
        pairs: list[Pair] = []
        for source, target in links:
            pairs.append((source, target, 1, split[source]))
            for index in generator.integers(len(links), size=100):
                other = links[index][1]
                if other != source and (source, other) not in linked:
                    pairs.append((source, other, 0, split[source]))
                    break
        return pairs, len(self._links) - len(links)


def _divide(papers: Sequence[str]) -> dict[str, str]:
    split: dict[str, str] = {}
    start, share = 0, 0.0
    for name, part in PARTS:
        share += part
        stop = round(len(papers) * share)
        split.update(dict.fromkeys(papers[start:stop], name))
        start = stop
    return split


@dataclass(frozen=True, slots=True)
class FoundPapers:
    """A citation data set that was found: where, what of, which version, and who made its pairs."""

    name: str
    papers: Papers
    key: list[Any]
    origin: str


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

    def find(
        self, path: Path | None, options: ReadOptions, own: Mapping[str, Any], limit: int | None, seed: int
    ) -> FoundPapers:
        """Find the data set in a folder.

        Raises:
            DataError: There is no folder, or none of its forms in it (the message says where to get it).
            ConfigurationError: An option that it does not have.
        """
        if own or options.label_column or options.split_column:
            asked = ", ".join([*own, *(["label_column"] if options.label_column else [])]) or "split_column"
            raise ConfigurationError(f"{self.card.name!r} has no option {asked}.")
        if path is None:
            raise DataError(f"There is no {self.card.name!r} here. {where_to_get(self.card)}")
        folder = path.parent if path.is_file() else path
        if not folder.is_dir():
            raise DataError(f"There is no file or folder {str(path)!r}. {where_to_get(self.card)}")
        files = [(split, folder / name) for name, split in self.pair_files.items() if (folder / name).exists()]
        if files:
            reading = [options.encoding_or("utf-8"), options.max_characters, limit]
            return FoundPapers(
                str(folder),
                PairFiles(files, options.encoding_or("utf-8"), options.max_characters, limit),
                ["pairs", *reading, *(describe_file(file) for _, file in files)],
                "of the data set",
            )
        papers, links = _table_of(folder, self.papers), _table_of(folder, self.links)
        if papers is None or links is None:
            raise DataError(f"{folder} holds no {self.card.name!r}. {where_to_get(self.card)}")
        parts = ", ".join(f"{share:.0%} {name}" for name, share in PARTS)
        return FoundPapers(
            str(folder),
            PapersAndLinks(papers, links, options, limit, seed),
            ["links", repr(options), limit, seed, describe_file(papers), describe_file(links)],
            f"made here of the links: as many pairs without a link, divided by citing paper ({parts}), seed {seed}",
        )


def _table_of(folder: Path, names: Sequence[str]) -> Path | None:
    files = sorted(path for path in folder.iterdir() if path.is_file() and table_suffix(path) is not None)
    return next((file for name in names for file in files if file.name.split(".")[0] == name), None)
