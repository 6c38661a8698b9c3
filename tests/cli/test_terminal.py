from __future__ import annotations

import argparse
import io
import json
import logging
from pathlib import Path

import pytest
from tqdm import tqdm

from simlte_st.cli.arguments import print_result
from simlte_st.cli.main import main
from simlte_st.cli.terminal import PrintableStream, printable, wrapped


def test_commands_to_the_terminal_are_shown() -> None:
    assert printable("a\x1b[2Jb\x07\x9b31m\x7f\u202eevil") == r"a\x1b[2Jb\x07\x9b31m\x7f\u202eevil"
    for text in ("Größe 日本 🙂", "tab\t, end\n, return\r", "‏עברית"):
        assert printable(text) == text


def test_bars_still_move() -> None:
    stream = io.StringIO()
    shown = PrintableStream(stream)
    with tqdm(total=2, desc="\x1b]0;title\x07", file=shown, position=1, ascii=True) as bar:
        bar.update()
    assert "\x1b[A" in stream.getvalue()
    assert "\x1b]" not in stream.getvalue()


def test_names_and_messages_cannot_command_the_terminal(
    tmp_path: Path, static_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **options: None)
    bad = "\x1b]0;owned\x07"
    (tmp_path / f"{bad}.txt").write_bytes(b"\xff\xff\xff")
    (tmp_path / "good.txt").write_text("One sentence. Another one.")
    assert main(["encode", str(static_path), str(tmp_path), "--output", str(tmp_path / "v.parquet")]) == 0
    assert main(["encode", f"no{bad}model", str(tmp_path), "--output", str(tmp_path / "v.parquet")]) == 1
    said = "".join(capsys.readouterr())
    assert r"\x1b]0;owned\x07" in said
    assert not {"\x1b", "\x07"} & set(said)


def test_messages_are_wrapped_and_what_is_laid_out_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    table, code, row = f"| {'a ' * 40}|", f"    {'b ' * 40}", f"name\t{'c ' * 40}"
    shown = wrapped("\n".join([table, "some words " * 12, code, row]))
    assert [line for line in shown.split("\n") if len(line) > 50] == [table, code, row]


def test_results_are_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"name": "\x1b[2J\x9b\u202ea", "mean": float("nan"), "text": "Größe"}
    print_result(argparse.Namespace(json=True, flags={}), "for people", values)
    out = capsys.readouterr().out
    assert json.loads(out) == {**values, "mean": None}
    assert "Größe" in out
    assert not {"\x1b", "\x9b", "\u202e"} & set(out)
