"""Files and folders that a data set is read from, whichever data set it is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simlte_st.data.columns import Columns, Event, Row, Skip
from simlte_st.data.sources import UNREADABLE, Reading, text_row
from simlte_st.data.streams import check_encoding
from simlte_st.data.tables import open_table, table_suffix
from simlte_st.datasets.shapes import Shape, split_name, table_events


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a data set, beside what is its own.

    Attributes:
        text_column: Column of the text, where a table has it under a name of its own.
        label_column: Column of the class, likewise.
        id_column: Column of the id, likewise.
        split_column: Column of the split, likewise.
        encoding: Encoding of text files and tables; None for the one the data set comes in.
        max_characters: Longer texts are skipped and counted.
    """

    text_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    split_column: str | None = None
    encoding: str | None = None
    max_characters: int = 20_000_000

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


def split_tables(folder: Path) -> list[tuple[str, Path]]:
    """Find the tables of a folder that are named after a split (``train.jsonl``, ``test.parquet``), in their order."""
    found = []
    for path in sorted(folder.iterdir()):
        part = split_name(path.name.split(".")[0])
        if part is not None and path.is_file() and table_suffix(path) is not None:
            found.append((part, path))
    order = {"train": 0, "validation": 1, "test": 2}
    return sorted(found, key=lambda item: order[item[0]])


def read_tables(
    tables: Sequence[tuple[str | None, Path]], shapes: Sequence[Shape], options: ReadOptions
) -> Iterator[Event]:
    """Read tables one after another, each a split or all of the data set (None)."""
    encoding = options.encoding_or("utf-8")
    for part, path in tables:
        yield from table_events(open_table(path, encoding, options.max_characters), shapes, part)


def has_class_folders(folder: Path) -> bool:
    """Tell whether a folder holds folders, as one of classes does."""
    return any(path.is_dir() and not path.name.startswith(".") for path in folder.iterdir())


def class_folders(
    root: Path, encoding: str, max_characters: int, part: str | None = None, prefix: str = ""
) -> Iterator[Row | Skip]:
    """Read the files of a folder's folders: the folder's name is the class, its path from the root the id.

    Args:
        root: Folder of class folders; files that lie beside them (a README) are ignored and counted.
        encoding: Encoding of the files.
        max_characters: Larger files are skipped and counted.
        part: The split of all of them.
        prefix: What comes before the path, in the id.
    """
    how = Reading(Columns(), encoding, max_characters)
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            yield Skip(entry.name, "hidden", ignored=True)
        elif not entry.is_dir():
            yield Skip(entry.name, "not in a class folder", ignored=True)
        else:
            yield from _one_class(Path(entry.path), how, part, f"{prefix}{entry.name}/")


def _one_class(folder: Path, how: Reading, part: str | None, prefix: str) -> Iterator[Row | Skip]:
    try:
        files = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skip(prefix, UNREADABLE, error.strerror or str(error))
        return
    for file in files:
        name = prefix + file.name
        if file.name.startswith("."):
            yield Skip(name, "hidden", ignored=True)
        elif not file.is_file():
            yield Skip(name, "not a file", ignored=True)
        else:
            row = text_row(Path(file.path), name, how)
            if isinstance(row, Row):
                row = Row(row.where, row.made_id, row.text, label=folder.name, split=part)
            yield row
