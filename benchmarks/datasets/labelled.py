"""A data set of labelled documents: what it comes in, and where it is looked for."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.datasets.benchmark import SPLITS, Card
from benchmarks.datasets.shapes import PLAIN_SHAPES, Shape, split_name, table_events
from simlte_st.data.formats import PLAIN_TEXT, format_of, open_table
from simlte_st.data.formats.base import TableFormat, TextFormat
from simlte_st.data.rows import UNREADABLE, Event, ReadSettings, Row, Skip
from simlte_st.data.sources.datasets import dataset_table
from simlte_st.data.sources.hub import load_hub
from simlte_st.data.streams import check_encoding
from simlte_st.errors import ConfigurationError, DataError, MissingExtraError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a data set, beside what is its own.

    Attributes:
        limit: Read the first so many usable documents only.
        text_column: Column of the text, where a table has it under a name of its own; likewise the next three.
        label_column: Column of the class.
        id_column: Column of the id.
        split_column: Column of the split.
        encoding: Encoding of text files and tables; None for the one the data set comes in.
        max_characters: Longer texts are skipped and counted.
    """

    limit: int | None = None
    text_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    split_column: str | None = None
    encoding: str | None = None
    max_characters: int = 20_000_000

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ConfigurationError(f"limit must be at least 1, or None for all documents, not {self.limit}.")
        if self.max_characters < 1:
            raise ConfigurationError(f"max_characters must be at least 1, not {self.max_characters}.")

    def encoding_or(self, default: str) -> str:
        """Give the encoding asked for, else the default.

        Raises:
            DataError: There is no encoding of that name.
        """
        return check_encoding(self.encoding or default)

    def named_shape(self) -> Shape | None:
        """Give the shape that the caller's own column names make; None where none was named."""
        if not any((self.text_column, self.label_column, self.id_column, self.split_column)):
            return None
        return Shape(
            (self.text_column or "text",),
            self.label_column or "label",
            id=self.id_column or "id",
            split=self.split_column or "split",
        )


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
        shapes: Gives the shapes of its tables, beside the plain ones; its keywords are options of the data set.
        files: Names that its table goes by in a folder (patterns).
        folder: Reads a folder of text files, given the path and the options; its further keywords are options of the
            data set. None where the data set has no such form.
        packaged: Finds it in an installed package; raises ``MissingExtraError`` where that is not there.
        hub: Where it is on the Hub.
        max_characters: Longer texts are skipped and counted, unless the caller says otherwise.
    """

    card: Card
    shapes: Callable[..., Sequence[Shape]] = lambda: ()
    files: tuple[str, ...] = ()
    folder: Callable[..., Iterator[Event]] | None = None
    packaged: Callable[[], Path] | None = None
    hub: Hub | None = None
    max_characters: int = 20_000_000

    def find(self, path: Path | None, options: ReadOptions, own: Mapping[str, Any]) -> Found:
        """Find the data set: at the path if one is given, else in an installed package, else on the Hub.

        Args:
            path: Where it is.
            options: How to read it.
            own: Options of this data set only.

        Raises:
            DataError: It is nowhere (the message says where to get it), or what is at the path is not it.
            ConfigurationError: An option that its form does not have.
        """
        if path is not None:
            if not path.exists():
                raise DataError(f"There is no file or folder {str(path)!r}. {self.card.where_to_get()}")
            return self._at(path, options, own)
        tried = []
        if self.packaged is not None:
            try:
                return self._at(self.packaged(), options, own)
            except MissingExtraError as error:
                tried.append(str(error))
        if self.hub is not None:
            try:
                return self._on_hub(self.hub, options, own)
            except DataError as error:
                tried.append(str(error))
        raise DataError(" ".join([f"There is no {self.card.name!r} here.", self.card.where_to_get(), *tried]))

    def _at(self, path: Path, options: ReadOptions, own: Mapping[str, Any]) -> Found:
        tables: Sequence[tuple[str | None, Path]] = [(None, path)]
        if path.is_dir():
            known = [file for pattern in self.files for file in sorted(path.glob(pattern))]
            tables = [(None, known[0])] if known else split_tables(path)
        if tables:
            shapes = self._shapes(options, own)

            def events() -> Iterator[Event]:
                settings = ReadSettings(encoding=options.encoding_or("utf-8"), max_characters=options.max_characters)
                for part, file in tables:
                    yield from table_events(open_table(file, settings), shapes, part)

            return Found(str(path), events, [describe_file(file) for _, file in tables])
        read = self.folder
        if read is None or not any(entry.is_dir() and not entry.name.startswith(".") for entry in path.iterdir()):
            raise DataError(
                f"The folder {path} holds none of {', '.join((*self.files, 'train.* and test.* tables'))}. "
                f"{self.card.where_to_get()}"
            )
        self._check(read, own)
        files = [describe_file(file, path) for file in sorted(path.rglob("*")) if file.is_file()]
        return Found(str(path), lambda: read(path, options, **own), files)

    def _on_hub(self, hub: Hub, options: ReadOptions, own: Mapping[str, Any]) -> Found:
        shapes = self._shapes(options, own)
        parts = list(zip(hub.splits.items(), load_hub(hub.id, list(hub.splits)), strict=True))
        if hub.note:
            logger.info("%s: %s", hub.id, hub.note)

        def events() -> Iterator[Event]:
            for (name, part), dataset in parts:
                yield from table_events(dataset_table(dataset, f"{hub.id} ({name})"), shapes, part)

        # The path of the cache's files holds the revision.
        key = [[*split, *sorted(file["filename"] for file in dataset.cache_files)] for split, dataset in parts]
        return Found(f"{hub.id} on the Hub", events, key, (hub.note,) if hub.note else ())

    def _shapes(self, options: ReadOptions, own: Mapping[str, Any]) -> Sequence[Shape]:
        self._check(self.shapes, own)
        named = options.named_shape()
        if named is not None:
            if own:
                raise ConfigurationError(
                    f"{', '.join(own)}: options of {self.card.name!r} in the form it comes in, which named columns "
                    "replace. Give the ones or the others."
                )
            return (named,)
        # An option that the plain shapes would pass over must not be passed over in silence.
        return self.shapes(**own) if own else (*self.shapes(), *PLAIN_SHAPES)

    def _check(self, form: Callable[..., Any], own: Mapping[str, Any]) -> None:
        """Check that a form of the data set has the options it was given: they are its keyword-only parameters."""
        parameters = inspect.signature(form).parameters.values()
        has = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
        if unknown := [option for option in own if option not in has]:
            raise ConfigurationError(
                f"{self.card.name!r} in this form has no option {', '.join(map(repr, unknown))}; it has: "
                f"{', '.join(has) or 'none'}."
            )


def describe_file(file: Path, root: Path | None = None) -> list[Any]:
    """Tell a file from what it was before: its path, its size and when it was last changed."""
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


def class_folders(root: Path, encoding: str, max_characters: int, part: str | None = None) -> Iterator[Row | Skip]:
    """Read the files of a folder's folders: the folder's name is the class, its path from the root the id.

    Args:
        root: Folder of class folders; files that lie beside them (a README) are ignored and counted.
        encoding: Encoding of the files.
        max_characters: Larger files are skipped and counted.
        part: The split of all of them, which then comes first in the id.
    """
    settings = ReadSettings(encoding=encoding, max_characters=max_characters)
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
