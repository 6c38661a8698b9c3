"""Data sets of the Hugging Face Hub."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.rows import Event, ReadSettings
from simlte_st.data.sources.base import Source
from simlte_st.data.sources.datasets import dataset_table
from simlte_st.data.streams import BrokenSourceError
from simlte_st.data.tables import read_table
from simlte_st.errors import DataError

FORM = "hub:NAME[:CONFIG][:SPLIT]"

_SPLIT = re.compile(r"(train|training|validation|valid|val|dev|test|unsupervised)([^a-z].*)?")
_HUB_SECONDS = 5


def is_hub(source: object) -> bool:
    """Whether a source is the name of a data set of the Hub."""
    return isinstance(source, str) and source.startswith("hub:")


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a data set of the Hub, which is asked for it when it is read."""
    if not is_hub(source):
        return None
    name, config, split = parse_hub(source)

    @functools.cache  # opened once: it asks the hub, and the stream itself starts over at each iteration
    def stream() -> Any:
        return load_hub(name, [split], config, streaming=True)[0]

    def events() -> Iterator[Event]:
        import datasets
        import pyarrow

        opened = stream()
        try:
            yield from read_table(dataset_table(opened, source), settings.columns)
        except (OSError, pyarrow.ArrowException, datasets.exceptions.DatasetsError) as error:
            raise BrokenSourceError(f"{source} broke off ({error})") from error

    return Source(source, events)


def parse_hub(source: str) -> tuple[str, str | None, str]:
    """Take ``hub:NAME[:CONFIG][:SPLIT]`` apart.

    With one part after the name, it is the split if it begins like one (train, validation, valid, val, dev, test,
    unsupervised) or holds a ``[``, else the configuration. An empty part stands for the default, so
    ``hub:NAME::SPLIT`` and ``hub:NAME:CONFIG:`` are always understood.
    """
    # A colon inside brackets belongs to a slice: train[:10%].
    name, *parts = re.split(r":(?![^\[]*\])", source.removeprefix("hub:"))
    if not name.strip() or len(parts) > 2:
        raise DataError(f"{source!r} is not of the form hub:NAME, hub:NAME:SPLIT or hub:NAME:CONFIG:SPLIT.")
    config = split = ""
    if len(parts) == 2:
        config, split = parts
    elif parts and ("[" in parts[0] or _SPLIT.fullmatch(parts[0])):
        split = parts[0]
    elif parts:
        config = parts[0]
    return name, config or None, split or "train"


def load_hub(name: str, splits: Sequence[str], config: str | None = None, *, streaming: bool = False) -> list[Any]:
    """Load splits of a data set of the Hugging Face Hub, which is first asked whether it has it.

    The question takes at most five seconds, so that a machine without a network does not wait. It is not asked for
    what the cache of ``datasets`` has, unless that is to be streamed.
    """
    import datasets
    from huggingface_hub import HfApi

    cache = Path(datasets.config.HF_DATASETS_CACHE)
    folder = name.replace("/", "___").lower()
    if streaming or not (cache.is_dir() and any(path.name.lower() == folder for path in cache.iterdir())):
        try:
            HfApi().dataset_info(name, timeout=_HUB_SECONDS)
        except Exception as error:  # no network, no such data set, offline: each library version has its own class
            why = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
            raise DataError(f"{name} on the Hub cannot be reached ({why})") from error
    loaded = []
    for split in splits:
        try:
            loaded.append(datasets.load_dataset(name, config, split=split, streaming=streaming))
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise DataError(
                f"{name} on the Hub (configuration {config or 'default'}, split {split!r}) cannot be loaded: {error}"
            ) from error
    return loaded
