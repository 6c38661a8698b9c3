"""A data set of labelled documents: what it comes in, and where it is looked for."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.data.columns import Event
from simlte_st.datasets.card import Card
from simlte_st.datasets.hub import Hub, load_hub_tables
from simlte_st.datasets.places import ReadOptions, has_class_folders, read_tables, split_tables
from simlte_st.datasets.shapes import PLAIN_SHAPES, Shape, table_events
from simlte_st.errors import ConfigurationError, DataError, MissingExtraError

logger = logging.getLogger(__name__)


def no_shapes() -> Sequence[Shape]:
    """Give the shapes of a data set that only the plain ones are read from."""
    return ()


@dataclass(frozen=True, slots=True)
class Found:
    """A data set that was found.

    Attributes:
        name: Where, in words.
        events: Reads it from its beginning.
        key: What tells this version of it from another one (JSON values).
        notes: What is special to this place.
    """

    name: str
    events: Callable[[], Iterator[Event]]
    key: list[Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextSet:
    """How to read one data set of labelled documents: one of these and a line in the registry make a new one.

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
    shapes: Callable[..., Sequence[Shape]] = no_shapes
    files: tuple[str, ...] = ()
    folder: Callable[..., Iterator[Event]] | None = None
    packaged: Callable[[], Path] | None = None
    hub: Hub | None = None
    max_characters: int = 20_000_000

    def find(self, path: Path | None, options: ReadOptions, own: Mapping[str, Any]) -> Found:
        """Find the data set: at the path if one is given, else in an installed package, else on the Hub.

        Raises:
            DataError: It is nowhere (the message says where to get it), or what is at the path is not it.
            ConfigurationError: An option that its form does not have.
        """
        if path is not None:
            if not path.exists():
                raise DataError(f"There is no file or folder {str(path)!r}. {where_to_get(self.card)}")
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
        raise DataError(" ".join([f"There is no {self.card.name!r} here.", where_to_get(self.card), *tried]))

    def _at(self, path: Path, options: ReadOptions, own: Mapping[str, Any]) -> Found:
        tables: list[tuple[str | None, Path]] = [(None, path)]
        if path.is_dir():
            known = [file for pattern in self.files for file in sorted(path.glob(pattern))]
            tables = [(None, known[0])] if known else list(split_tables(path))
        if tables:
            shapes = self._shapes(options, own)
            return Found(
                str(path), lambda: read_tables(tables, shapes, options), [describe_file(file) for _, file in tables]
            )
        if self.folder is None or not has_class_folders(path):
            raise DataError(
                f"The folder {path} holds none of {', '.join((*self.files, 'train.* and test.* tables'))}. "
                f"{where_to_get(self.card)}"
            )
        read = self.folder
        check_own(self.card.name, read, own)
        files = [describe_file(file, path) for file in sorted(path.rglob("*")) if file.is_file()]
        return Found(str(path), lambda: read(path, options, **own), files)

    def _on_hub(self, hub: Hub, options: ReadOptions, own: Mapping[str, Any]) -> Found:
        shapes = self._shapes(options, own)
        tables = load_hub_tables(hub)
        if hub.note:
            logger.info("%s: %s", hub.id, hub.note)

        def events() -> Iterator[Event]:
            for part, table, _ in tables:
                yield from table_events(table, shapes, part)

        key = [[part, table.name, version] for part, table, version in tables]
        return Found(f"{hub.id} on the Hub", events, key, (hub.note,) if hub.note else ())

    def _shapes(self, options: ReadOptions, own: Mapping[str, Any]) -> Sequence[Shape]:
        check_own(self.card.name, self.shapes, own)
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


def where_to_get(card: Card) -> str:
    """Say where a data set can be had and how it is passed."""
    return (
        f"{card.title}: get it from {card.home} (licence: {card.licence}) and pass path= (on the command line: "
        f"--path): {'; or '.join(card.forms)}; or a table (.parquet, .jsonl, .csv) with the columns text and label, "
        "and split and id where it has them."
    )


def describe_file(file: Path, root: Path | None = None) -> list[Any]:
    """Tell a file from what it was before: its path, its size and when it was last changed."""
    status = file.stat()
    return [str(file.relative_to(root) if root else file.resolve()), status.st_size, status.st_mtime_ns]


def check_own(name: str, function: Callable[..., Any], own: Mapping[str, Any]) -> None:
    """Check that a data set has the options it was given.

    Raises:
        ConfigurationError: It has not.
    """
    has = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if unknown := [option for option in own if option not in has]:
        raise ConfigurationError(
            f"{name!r} in this form has no option {', '.join(map(repr, unknown))}; it has: {', '.join(has) or 'none'}."
        )
