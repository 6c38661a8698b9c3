"""20 Newsgroups (Lang, 1995), in the version split by date."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.datasets.labelled import ReadOptions, class_folders
from simlte_st.data.rows import Event, Row
from simlte_st.errors import ConfigurationError

_FOLDERS = {"20news-bydate-train": "train", "20news-bydate-test": "test"}
_QUOTE = re.compile(r"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)")


def strip_header(post: str) -> str:
    """Remove everything before the first blank line."""
    return post.partition("\n\n")[2]


def strip_quotes(post: str) -> str:
    """Remove the lines that are quoted, and those that introduce a quotation."""
    return "\n".join(line for line in post.split("\n") if not _QUOTE.search(line))


def strip_footer(post: str) -> str:
    """Remove a signature: what comes after the last line that is blank or made of hyphens."""
    lines = post.strip().split("\n")
    cut = next((at for at in range(len(lines) - 1, 0, -1) if not lines[at].strip().strip("-")), 0)
    return "\n".join(lines[:cut]) if cut else post


# What can be removed, as scikit-learn's `fetch_20newsgroups` has it. Its order matters: a signature is looked for while
# the quotations are still there.
_STRIP = {"headers": strip_header, "footers": strip_footer, "quotes": strip_quotes}


def posts(path: Path, options: ReadOptions, *, remove: str | Sequence[str] = "headers") -> Iterator[Event]:
    """Read the folder that ``20news-bydate.tar.gz`` unpacks to: a folder a split, a folder a newsgroup, Latin-1.

    A folder of newsgroups without splits (20news-18828, 20news-19997) is read too.

    Args:
        path: The folder.
        options: How to read.
        remove: What to remove from each post: of ``headers``, ``footers`` and ``quotes``, several as a sequence or with
            commas, or ``"nothing"``.

    Raises:
        ConfigurationError: ``remove`` names something else.
    """
    named = [part.strip() for part in remove.split(",")] if isinstance(remove, str) else list(remove)
    if named == ["nothing"]:
        named = []
    if unknown := [part for part in named if part not in _STRIP]:
        raise ConfigurationError(f"remove={', '.join(unknown)}: from posts can be removed {', '.join(_STRIP)}.")
    encoding = options.encoding_or("latin-1")
    splits: list[tuple[Path, str | None]] = [
        (path / name, part) for name, part in _FOLDERS.items() if (path / name).is_dir()
    ]
    for place, part in splits or [(path, None)]:
        for event in class_folders(place, encoding, options.max_characters, part):
            if isinstance(event, Row) and isinstance(event.text, str):
                text = event.text
                for strip in (strip for what, strip in _STRIP.items() if what in named):
                    text = strip(text)
                event = replace(event, text=text)
            yield event
