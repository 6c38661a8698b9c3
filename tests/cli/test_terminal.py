from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from tqdm import tqdm

from simlte_st.cli.main import main
from simlte_st.cli.terminal import PrintableStream, printable, terminal_width, wrapped


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
    tmp_path: Path, encoder_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)
    bad = "\x1b]0;owned\x07"
    (tmp_path / f"{bad}.txt").write_bytes(b"\xff\xff\xff")
    (tmp_path / "good.txt").write_text("One sentence. Another one.")
    assert main(["encode", str(encoder_path), str(tmp_path), "--output", str(tmp_path / "v.parquet")]) == 0
    assert main(["encode", f"no{bad}model", str(tmp_path), "--output", str(tmp_path / "v.parquet")]) == 1
    with pytest.raises(SystemExit):
        main(["encode", f"--{bad}"])
    said = "".join(capsys.readouterr())
    assert r"\x1b]0;owned\x07" in said
    assert "\x1b" not in said
    assert "\x07" not in said


def test_messages_are_wrapped_and_what_is_laid_out_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    table, code, row = f"| {'a ' * 40}|", f"    {'b ' * 40}", f"name\t{'c ' * 40}"
    words = "some words " * 12
    shown = wrapped("\n".join([table, words, code, row]))
    assert [line for line in shown.split("\n") if len(line) > 50] == [table, code, row]
    assert " ".join(shown.split()) == " ".join(f"{table} {words} {code} {row}".split())
    path = f"/a/path-with-hyphens/{'x' * 60}"
    assert path in wrapped(f"There is nothing at {path}, or nothing that can be read.").split("\n")[1]
    broken = wrapped(f"  from  {words}", indent=8).split("\n")
    assert max(map(len, broken)) <= 50
    assert all(line.startswith(" " * 8 + "w") or line.startswith(" " * 8 + "s") for line in broken[1:])
    assert main(["train", "there-is-no-such-folder", "--output", "out"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) > 2
    assert max(map(len, said)) <= 50
    monkeypatch.setenv("COLUMNS", "7")
    assert terminal_width() == 40
