from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import paper
from benchmarks.grid import engine, models
from benchmarks.grid.systems import SYSTEMS
from benchmarks.grid.work import Clash, Work
from benchmarks.rivals import ModelEncoder
from simlte_st.errors import ModelError

ONLY = [
    "base-cls", "base-mean", "tfidf", "bm25", "simcse", "docsplit", "docsplit-no-mlm", "contrastive-tension",
    "ablation-unit-word", "ablation-epochs-fresh", "ablation-epochs-frozen", "instructor",
]  # fmt: skip
EXPERIMENTS = ["classification", "few-shot", "curve", "citations", "similarity", "redundancy", "attention"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paper")


@pytest.fixture(scope="module")
def run(folder: Path) -> Callable[..., None]:
    def main(*more: str, work: str = "work") -> None:
        command = ["--scale", "tiny", "--work", str(folder / work), "--results", str(folder / "results")]
        paper.main([*command, "--only", *ONLY, "--experiments", *EXPERIMENTS, *more])

    return main


@pytest.fixture(scope="module")
def finished(run: Callable[..., None], folder: Path) -> Path:
    run()
    return folder / "work"


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the page, which takes seconds to draw."""
    monkeypatch.setattr(paper, "report", lambda work, folder, earlier: "")


def cells(work: Path) -> dict[str, bytes]:
    return {str(path.relative_to(work)): path.read_bytes() for path in sorted(work.glob("results/**/*.json"))}


def test_the_page_has_every_section(finished: Path, folder: Path) -> None:
    page = (folder / "results" / "paper.md").read_text()
    headings = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    wanted = [
        "Gain over SimCSE", "All documents", "A few documents a class", "Learning curve on 20news", "Citations",
        "Document similarity", "Ablations", "Cost of a training", "Data sets", "Skipped", "How it was made",
    ]  # fmt: skip
    if importlib.util.find_spec("spacy"):
        wanted[6:6] = ["Redundancy", "Attention from [CLS] on nyt"]
    assert headings == wanted
    assert re.search("- instructor: .*'hkunlp/instructor-large'", page)
    assert "| DocSplit, as the papers print it |" in page
    assert "+12.0%" in page
    assert "+3.9%" in page
    if importlib.util.find_spec("matplotlib"):
        for figure in ("gains", "few-shot", "classification", "curve"):
            assert (folder / "results" / f"paper_{figure}.svg").stat().st_size > 0
            assert f"(paper_{figure}.svg)" in page
    everything = (folder / "results" / "paper.json").read_text()
    assert str(folder) not in page + everything


def test_every_system_is_measured_on_every_set(finished: Path, folder: Path) -> None:
    found = json.loads((folder / "results" / "paper.json").read_text())["results"]
    for data in ("fakenews", "20news", "arxiv", "nyt", "bbc"):
        for name in ("base-cls", "base-mean", "tfidf", "simcse-0", "docsplit-0"):
            assert len(found[f"few-shot/{data}-2/{name}"]["macro_f1"]) == 2
            assert len(found[f"classification/{data}/{name}"]["accuracy"]) == 1
    assert {name for name in found if name.startswith("few-shot/") and "ablation" in name} == {
        f"few-shot/20news-2/ablation-{name}-0" for name in ("unit-word", "epochs-fresh", "epochs-frozen")
    }
    assert {f"few-shot/20news-{shots}/docsplit-0" for shots in (1, 2, 4)} <= set(found)
    assert set(found["citations/aan/docsplit-0"]["head"]) == {"links", "papers"}
    assert "citations/aan/tfidf-250" in found
    models = json.loads((folder / "results" / "paper.json").read_text())["models"]
    assert models["contrastive-tension-0"]["settings"]["batch_size"] == 8
    assert models["ablation-epochs-fresh-0"]["settings"]["documents"] == 4


@pytest.mark.usefixtures("no_page")
def test_what_is_finished_is_not_made_again(
    finished: Path, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("nothing is left to do")

    before = cells(finished)
    monkeypatch.setattr(models, "train_rival", never)
    monkeypatch.setattr(ModelEncoder, "encode", never)
    run()
    assert cells(finished) == before


@pytest.mark.usefixtures("no_page")
def test_an_interrupted_cell_is_made_again(
    finished: Path, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cells(finished)
    cell = finished / "results" / "classification" / "bbc" / "docsplit-0.json"
    embedded = finished / "embeddings" / "bbc" / "docsplit-0.json"
    [piece] = embedded.with_suffix("").glob("*/*.npy")
    for path in (cell, embedded, piece):
        path.unlink()

    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ModelEncoder, "encode", stop)
        with pytest.raises(SystemExit, match="Interrupted"):
            run()
    assert not cell.exists()
    assert not embedded.exists()
    run()
    after = cells(finished)
    assert set(after) == set(before)
    name = str(cell.relative_to(finished))
    assert json.loads(after[name])["result"] == json.loads(before[name])["result"]


@pytest.mark.usefixtures("no_page")
def test_another_process_s_cells_are_waited_for(
    finished: Path, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = finished / "results" / "similarity" / "lee" / "tfidf.json"
    cell.unlink()
    waits = []
    with ExitStack() as other:
        other.enter_context(Work(finished).claim("results/similarity/lee/tfidf"))

        def wait(seconds: float) -> None:
            waits.append(cell.exists())
            other.close()

        monkeypatch.setattr(engine.time, "sleep", wait)
        run()
    assert waits == [False]
    assert cell.exists()


def test_other_settings_need_another_work_folder(finished: Path, run: Callable[..., None]) -> None:
    with pytest.raises(Clash, match="draws 2, now 3"):
        run("--draws", "3")
    with pytest.raises(Clash, match="steps 2, now 4"):
        run("--steps", "4")
    with pytest.raises(Clash, match="dtype 'float32', now 'bfloat16'"):
        run("--bf16")


def test_a_cell_of_other_settings_is_not_taken(tmp_path: Path) -> None:
    work = Work(tmp_path)
    made = work.finish("results/a/b/c", {"system": {"steps": 2}, "read": 8}, lambda: {"score": 1})
    assert work.find("results/a/b/c", made["settings"]) == made
    with pytest.raises(Clash, match=r"system\.steps 2, now 3"):
        work.find("results/a/b/c", {"system": {"steps": 3}, "read": 8})


def test_without_a_corpus_nothing_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--scale", "tiny", "--work", str(tmp_path / "work"), "--results", str(tmp_path / "results")]
    command += ["--data", "bbc", "--experiments", "few-shot", "--only", "tfidf", "docsplit"]
    paper.main([*command, "--corpus", str(tmp_path / "nowhere")])
    page = (tmp_path / "results" / "paper.md").read_text()
    assert "no corpus" in page
    assert "| TF-IDF " in page
    assert "| DocSplit " not in page.split("## Skipped")[0].replace("| DocSplit, as", "")


def table_of(page: str, section: str) -> list[list[str]]:
    """Read the first table below a heading."""
    lines = page.split(f"{section}\n")[1].split("\n\n|", 1)[1].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_page_grows_from_an_earlier_one(finished: Path, folder: Path, tmp_path: Path) -> None:
    earlier = folder / "results" / "paper.json"
    before = json.loads(earlier.read_text())
    command = ["--scale", "tiny", "--work", str(tmp_path / "work"), "--results", str(tmp_path / "results")]
    command += ["--data", "bbc", "--experiments", "few-shot"]
    paper.main([*command, "--only", "tfidf", "chunk-mean", "--earlier", str(earlier)])
    after = json.loads((tmp_path / "results" / "paper.json").read_text())
    added = set(after["results"]) - set(before["results"])
    assert added == {"few-shot/bbc-2/chunk-mean"}
    assert {name: after["results"][name] for name in before["results"]} == before["results"]
    pages = [path.read_text() for path in (earlier.with_name("paper.md"), tmp_path / "results" / "paper.md")]
    old, new = ([row[:4] for row in table_of(page, "## Citations") if row[0] == "TF-IDF"] for page in pages)
    assert old == new, "numbers and intervals of an earlier page"
    assert after["gains"] == before["gains"] | after["gains"]
    assert after["ablations"] == before["ablations"]

    before["results"]["few-shot/bbc-2/tfidf"]["macro_f1"][0] += 0.1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(before))
    with pytest.raises(Clash, match="few-shot/bbc-2/tfidf: "):
        paper.main([*command, "--report", "--earlier", str(changed)])
    before["settings"]["draws"] = 3
    changed.write_text(json.dumps(before))
    with pytest.raises(Clash, match="draws 3, now 2"):
        paper.main([*command, "--report", "--earlier", str(changed)])


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"system .*nothing"):
        paper.main(["--scale", "cpu", "--work", str(tmp_path), "--only", "nothing"])
    with pytest.raises(SystemExit, match=r"data set .*nowhere"):
        paper.main(["--scale", "cpu", "--work", str(tmp_path), "--path", "nowhere=here"])
    with pytest.raises(SystemExit, match="Nothing is finished"):
        paper.main(["--report", "--work", str(tmp_path / "empty")])


def test_mteb_tasks_are_measured_with_base_and_docsplit(finished: Path, run: Callable[..., None], folder: Path) -> None:
    pytest.importorskip("mteb")
    run("--experiments", "mteb", "--data", "lee", "--only", "base-cls", "docsplit")
    found = json.loads((folder / "results" / "paper.json").read_text())["results"]
    assert {"mteb/LeeDocumentSTS/base-cls", "mteb/LeeDocumentSTS/docsplit-0"} <= set(found)
    assert "## Tasks of mteb" in (folder / "results" / "paper.md").read_text()


def test_models_are_made_of_the_base_that_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model\.safetensors"):
        assert models.Base(str(tmp_path)).identity
    assert models.Base("someone/something").identity == {"name": "someone/something", "sha256": None}


def test_attention_is_that_of_the_docsplit_that_is_asked_for(finished: Path, tmp_path: Path) -> None:
    made = finished / "made"
    arguments = paper.parser().parse_args(["--scale", "tiny", "--shared", str(made), "--data", "bbc"])
    scale = replace(paper.scale_of(arguments), base=str(made / "base"))
    grid = paper.make_grid(arguments, scale, Work(tmp_path))

    def asked(*names: str) -> list[tuple[str, int]]:
        cells = engine.plan(grid, [SYSTEMS[name] for name in ("base-cls", "simcse", *names)], [1], ["attention"])
        return [(title, of["seed"]) for cell in cells for title, of in cell.settings["systems"].items() if "seed" in of]

    assert asked("docsplit-no-mlm") == [("SimCSE", 1), ("DocSplit, without MLM", 1)]
    assert asked("docsplit", "docsplit-no-mlm") == [("SimCSE", 1), ("DocSplit", 1)]
    assert asked() == []
