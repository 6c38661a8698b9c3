from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from tqdm import tqdm

from simlte_st.cli.main import main
from simlte_st.cli.terminal import PrintableStream, in_options, printable, wrap_text


def test_escape_sequences_are_printed_escaped() -> None:
    assert printable("a\x1b[2Jb\x07\x9b31m\x7f\u202eevil") == r"a\x1b[2Jb\x07\x9b31m\x7f\u202eevil"
    for text in ("Größe 日本 🙂", "tab\t, end\n, return\r", "‏עברית"):
        assert printable(text) == text


def test_progress_bars_still_move() -> None:
    stream = io.StringIO()
    shown = PrintableStream(stream)
    with tqdm(total=2, desc="\x1b]0;title\x07", file=shown, position=1, ascii=True) as bar:
        bar.update()
    assert "\x1b[A" in stream.getvalue()
    assert "\x1b]" not in stream.getvalue()


def test_names_and_messages_cannot_send_escape_sequences(
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


def test_messages_are_wrapped_but_not_tables_or_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    table, code, row = f"| {'a ' * 40}|", f"    {'b ' * 40}", f"name\t{'c ' * 40}"
    shown = wrap_text("\n".join([table, "some words " * 12, code, row]))
    assert [line for line in shown.split("\n") if len(line) > 50] == [table, code, row]


FLAGS = {"held_out": "--held-out", "pooling": "--pooling", "bf16": "--bf16", "label_column": "--probe"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("held_out=-1e-05, or more", "--held-out -1e-05, or more"),
        ("shorter views (held_out=).", "shorter views (--held-out)."),
        ("bf16=False, bf16=True", "--no-bf16, --bf16"),
        ("Name it with label_column='my topic'.", "Name it with --probe 'my topic'."),
        ("The pooling of the base stays, with other=3.", "The pooling of the base stays, with other=3."),
        ("/data/held_out=1/x.txt and held_out.json", "/data/held_out=1/x.txt and held_out.json"),
        ("held_out==0 and pooling=f(x) are code", "held_out==0 and pooling=f(x) are code"),
    ],
)
def test_only_parameters_become_options(message: str, shown: str) -> None:
    assert in_options(message, FLAGS) == shown
