"""A data set of labelled documents: what it comes in, and where it is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.datasets.benchmark import SPLITS, Card
from benchmarks.datasets.shapes import PLAIN_SHAPES, Shape, split_name, table_events
from simlte_st.data.config import SourceConfig
from simlte_st.data.formats import PLAIN_TEXT, format_of, open_table
from simlte_st.data.formats.base import TableFormat, TextFormat
from simlte_st.data.hub import dataset_table, load_hub
from simlte_st.data.tables import UNREADABLE, Event, Row, Skip
from simlte_st.errors import DataError, MissingExtraError

MOST_CHARACTERS = 20_000_000
"""Longer texts are skipped and counted."""


@dataclass(frozen=True, slots=True)
class Found:
    """A data set that was found.

    Attributes:
        name: Where, in words.
        events: Reads its documents from the beginning.
        key: What tells this version of it from another one (JSON values).
        notes: What is special to this place.
    """

    name: str
    events: Callable[[], Iterator[Event]]
    key: list[Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hub:
    """A data set on the Hugging Face Hub.

    Attributes:
        id: Its repository.
        splits: Its splits, each with the name it has here; None where the whole data set is one.
        note: How it differs from what the papers used.
    """

    id: str
    splits: Mapping[str, str | None] = field(default_factory=lambda: {"train": "train", "test": "test"})
    note: str = ""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """How to read one data set of labelled documents: one of these in :mod:`benchmarks.datasets.sets` makes a new one.

    Attributes:
        card: The data set in words.
        shapes: The shapes that its tables have, beside the plain ones.
        files: Names that its table goes by in a folder (patterns).
        folder: Reads a folder of text files. None where the data set has no such form.
        packaged: Finds it in an installed package; raises ``MissingExtraError`` where that is not there.
        hub: Where it is on the Hub.
        max_characters: Longer texts of a table are skipped and counted.
    """

    card: Card
    shapes: tuple[Shape, ...] = ()
    files: tuple[str, ...] = ()
    folder: Callable[[Path], Iterator[Event]] | None = None
    packaged: Callable[[], Path] | None = None
    hub: Hub | None = None
    max_characters: int = MOST_CHARACTERS

    def find(self, path: Path | None) -> Found:
        """Find the data set: at the path if one is given, else in an installed package, else on the Hub."""
        if path is not None:
            if not path.exists():
                raise DataError(f"There is no file or folder {str(path)!r}. {self.card.where_to_get()}")
            return self._at(path)
        tried = []
        if self.packaged is not None:
            try:
                return self._at(self.packaged())
            except MissingExtraError as error:
                tried.append(str(error))
        if self.hub is not None:
            try:
                return self._on_hub(self.hub)
            except DataError as error:
                tried.append(str(error))
        raise DataError(" ".join([f"There is no {self.card.name!r} here.", self.card.where_to_get(), *tried]))

    def _at(self, path: Path) -> Found:
        tables: Sequence[tuple[str | None, Path]] = [(None, path)]
        if path.is_dir():
            known = [file for pattern in self.files for file in sorted(path.glob(pattern))]
            tables = [(None, known[0])] if known else split_tables(path)
        if tables:

            def events() -> Iterator[Event]:
                settings = SourceConfig(max_characters=self.max_characters)
                for part, file in tables:
                    yield from table_events(open_table(file, settings), (*self.shapes, *PLAIN_SHAPES), part)

            return Found(str(path), events, [describe_file(file) for _, file in tables])
        read = self.folder
        if read is None or not any(entry.is_dir() and not entry.name.startswith(".") for entry in path.iterdir()):
            raise DataError(
                f"The folder {path} holds none of {', '.join((*self.files, 'train.* and test.* tables'))}. "
                f"{self.card.where_to_get()}"
            )
        files = [describe_file(file, path) for file in sorted(path.rglob("*")) if file.is_file()]
        return Found(str(path), lambda: read(path), files)

    def _on_hub(self, hub: Hub) -> Found:
        parts = list(zip(hub.splits.items(), load_hub(hub.id, list(hub.splits)), strict=True))

        def events() -> Iterator[Event]:
            for (name, part), dataset in parts:
                table = dataset_table(dataset, f"{hub.id} ({name})")
                yield from table_events(table, (*self.shapes, *PLAIN_SHAPES), part)

        # The path of the cache's files holds the revision.
        key = [[*split, *sorted(file["filename"] for file in dataset.cache_files)] for split, dataset in parts]
        return Found(f"{hub.id} on the Hub", events, key, (hub.note,) if hub.note else ())


def describe_file(file: Path, root: Path | None = None) -> list[Any]:
    """Return what identifies a version of a file: its path, its size and when it was last changed."""
    status = file.stat()
    return [str(file.relative_to(root) if root else file.resolve()), status.st_size, status.st_mtime_ns]


def split_tables(folder: Path) -> list[tuple[str, Path]]:
    """Find the tables of a folder that are named after a split (``train.jsonl``, ``test.parquet``), in their order."""
    found = [
        (part, path)
        for path in sorted(folder.iterdir())
        if (part := split_name(path.name.split(".")[0])) and path.is_file() and isinstance(format_of(path), TableFormat)
    ]
    return sorted(found, key=lambda item: SPLITS.index(item[0]))


def class_folders(root: Path, encoding: str, part: str | None = None) -> Iterator[Row | Skip]:
    """Read the files of a folder's folders: the folder's name is the class, its path from the root the id."""
    settings = SourceConfig(encoding=encoding, max_characters=MOST_CHARACTERS)
    for folder in sorted(root.iterdir()):
        if folder.name.startswith(".") or not folder.is_dir():
            reason = "hidden" if folder.name.startswith(".") else "not in a class folder"
            yield Skip(folder.name, reason, ignored=True)
            continue
        prefix = f"{part}/{folder.name}/" if part else f"{folder.name}/"
        try:
            files = sorted(folder.iterdir())
        except OSError as error:
            yield Skip(prefix, UNREADABLE, error.strerror or str(error))
            continue
        for file in files:
            name = prefix + file.name
            if file.name.startswith(".") or not file.is_file():
                yield Skip(name, "hidden" if file.name.startswith(".") else "not a file", ignored=True)
            else:
                known = format_of(file)
                row = (known if isinstance(known, TextFormat) else PLAIN_TEXT).row(file, name, settings)
                yield replace(row, label=folder.name, split=part) if isinstance(row, Row) else row
