"""Subtitles (SRT and WebVTT): their text, without times, numbers and tags."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats import text
from simlte_st.data.formats.base import FileText
from simlte_st.data.text_files import BadTextError

NO_SUBTITLES = "not subtitles"

_TIMES = re.compile(r"[ \t]*(?:\d+:)?\d+:\d\d[.,]\d+[ \t]*-->[ \t]*(?:\d+:)?\d+:\d\d[.,]\d+.*")
_NUMBER = re.compile(r"[ \t]*\d+[ \t]*")
_COMMENT = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t].*)?")
_TAG = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")  # and what SSA has


def read(path: Path, config: SourceConfig) -> FileText:
    """Return the lines that are shown; one that stays while the next is added, as in captions that roll, is one."""
    lines = text.read(path, config).text.split("\n")
    if not any(map(_TIMES.fullmatch, lines)):
        raise BadTextError(NO_SUBTITLES, "no line has the times of one")
    shown: list[str] = []
    for line in _cue_lines(lines, is_webvtt=lines[0].startswith("WEBVTT")):
        plain = html.unescape(_TAG.sub("", line)).strip()
        if plain and plain not in shown[-2:]:
            shown.append(plain)
    return FileText("\n".join(shown))


def _cue_lines(lines: list[str], is_webvtt: bool) -> Iterator[str]:
    """Yield the lines of cues: what follows their times, up to the number or name of the next one."""
    in_cue = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _TIMES.fullmatch(line):
            in_cue = True
        elif not line.strip():
            in_cue = in_cue and not is_webvtt  # SRT files have blank lines within subtitles
        elif _TIMES.fullmatch(following) and (is_webvtt or _NUMBER.fullmatch(line)):
            in_cue = False
        elif in_cue and not (is_webvtt and _COMMENT.fullmatch(line)):
            yield line
