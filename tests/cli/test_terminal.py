from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from tqdm import tqdm

from simlte_st.cli.main import main
from simlte_st.cli.terminal import PrintableStream, printable


def test_commands_to_the_terminal_are_shown() -> None:
    assert printable("a\x1b[2Jb\x07\x9b31m\x7f") == r"a\x1b[2Jb\x07\x9b31m\x7f"
    assert printable("\u202eevil\u2066") == r"\u202eevil\u2066"
    for text in ("Größe 日本 🙂", "tab\t, end\n, return\r", "‏עברית"):
        assert printable(text) == text


def test_bars_still_move() -> None:
    stream = io.StringIO()
    shown = PrintableStream(stream)
    with tqdm(total=2, desc="\x1b]0;title\x07", file=shown, position=1, ascii=True) as bar:
        bar.update()
    assert "\n" in stream.getvalue()
    assert "\x1b[A" in stream.getvalue()
    assert "\x1b]" not in stream.getvalue()


def test_names_and_messages_cannot_command_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)
    bad = "\x1b]0;owned\x07"
    (tmp_path / f"{bad}.txt").write_bytes(b"\xff\xff\xff")
    (tmp_path / "good.txt").write_text("One sentence. Another one.")
    assert main(["data", "stats", str(tmp_path)]) in (0, 1)
    assert main(["encode", f"no{bad}model", str(tmp_path), "--output", str(tmp_path / "v.parquet")]) == 1
    with pytest.raises(SystemExit):
        main(["encode", f"--{bad}"])
    said = "".join(capsys.readouterr())
    assert r"\x1b]0;owned\x07" in said
    assert "\x1b" not in said
    assert "\x07" not in said
