"""Subtitles: their text, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_support import skipped, texts

from simlte_st.errors import EmptyCorpusError

SRT = """1
00:00:01,000 --> 00:00:02,500
Where <i>is</i> it?
{\\an8}On the hill &amp; beyond.

2
00:00:03,000 --> 00:00:04,000 X1:40 X2:600
There are 3 of

them:

3
0:05,0 --> 0:06,0
3
4
"""
VTT = """WEBVTT - Title
Kind: captions

STYLE
::cue { color: red }

NOTE
This is --> a comment

intro
00:01.000 --> 00:02.000 align:start
<v Ann>Where <c.loud>is</c> it?

00:02.000 --> 00:03.000
Where is it?
<00:02.500>On the hill

NOTE one more
00:03.000 --> 00:04.000
On the hill
and beyond.
"""


def test_the_text_of_subtitles(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_bytes(b"\xef\xbb\xbf" + SRT.replace("\n", "\r\n").encode())
    (tmp_path / "b.vtt").write_text(VTT)
    assert texts(tmp_path) == [
        "Where is it?\nOn the hill & beyond.\nThere are 3 of\nthem:\n3\n4",
        "Where is it?\nOn the hill\nand beyond.",
    ]


def test_a_refrain_stays(tmp_path: Path) -> None:
    cues = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},500\n{line}\n" for n, line in enumerate("ABCA")]
    (tmp_path / "a.srt").write_text("\n".join(cues))
    assert texts(tmp_path) == ["A\nB\nC\nA"]


def test_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_bytes(SRT.replace("hill", "Höhe").encode("cp1252"))
    with pytest.raises(EmptyCorpusError, match=r"wrong encoding.*\n?.*encoding="):
        texts(tmp_path)
    assert "On the Höhe & beyond." in texts(tmp_path, encoding="cp1252")[0]


@pytest.mark.parametrize(
    "text", ["Only words.", "WEBVTT\n\nNOTE nothing", "1\n00:00 --> 00:01\nno parts of seconds", "--> -->"]
)
def test_what_is_none_is_counted(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.srt").write_text(text)
    (tmp_path / "b.txt").write_text("Text.")
    assert skipped(tmp_path) == {"not subtitles": 1}
