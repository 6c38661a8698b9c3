"""A stranger's first hour: every command on documents as they lie about, and what it says.

    python -m benchmarks.first_hour

A folder is filled with the packaged BBC News as text files, JSON lines with copies and broken rows, a CSV
with semicolons, and a file too large to be a document. Then come the commands of the README, each in a process of its
own, also wrong ones, and one that is interrupted. Each must end as expected, say what is expected, show no traceback,
and print no line of words wider than 80 columns (tables, bars, paths and code may be). What failed stands in the table.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import pages
from benchmarks.datasets import load_benchmark
from benchmarks.records import environment, make_parser
from simlte_st.data import Document
from simlte_st.evaluation.splits import sample_rows
from simlte_st.evaluation.table import markdown_table
from simlte_st.models.names import PACKAGED_BASE

WIDTH = 80
HUGE = 20_000_001
"""Characters of the file that is too large: one more than a document may have by default."""


@dataclass(frozen=True)
class Step:
    """A command of the hour.

    Attributes:
        title: What the stranger wants.
        command: Words after ``simlte``, or a Python program.
        says: Regular expressions that what it prints matches.
        status: The exit status that is right.
        python: Whether ``command`` is a Python program.
        interrupt: A pattern of what is waited for before the process gets Ctrl-C.
    """

    title: str
    command: tuple[str, ...]
    says: tuple[str, ...]
    status: int = 0
    python: bool = False
    interrupt: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of a step: seconds, what it printed, and what was wrong with that."""

    step: Step
    seconds: float
    printed: str
    wrong: tuple[str, ...]


LOAD = "{}from sentence_transformers import SentenceTransformer; print(SentenceTransformer('./{}').encode(['a']).shape)"


def steps(base: str, max_steps: int) -> Iterator[Step]:
    """Return the hour's commands: the model that is adapted, and the steps of each training."""
    few = ("--max-steps", str(max_steps), "--max-view-length", "64")
    there = (r"read \d+ documents", "1 too long", r"1 \.jsonl")
    yield Step("What is there?", ("encode", base, "pile", "--output", "base.parquet"), there)
    several = ("encode", base, "pile/rows.jsonl", "pile/*.csv", "--output", "several.parquet")
    yield Step("Several files", several, ("duplicates of others", "malformed|not"))
    yield Step(
        "A pattern that matches nothing", ("train", "pile/*.doc", "--output", "m"), ("matches the pattern",), status=1
    )
    yield Step("No output", ("train", "pile"), ("--output DIR or --name NAME",), status=1)
    yield Step("An option misspelt", ("train", "pile", "--epoch", "2"), ("--epochs",), status=2)
    yield Step("An output in a file", ("train", "pile", "--output", "pile/0.txt/m"), ("not a folder",), status=1)
    told = ("Trained on", "The model reads the first", "Use it")
    yield Step("Train", ("train", "pile", "pile/*.csv", "--base", base, "--output", "model", *few), told)
    yield Step("Again", ("train", "pile", "--base", base, "--output", "model"), ("exists already",), status=1)
    yield Step("Is it better?", ("evaluate", "model", "--base", base, "--data", "pile"), ("against", "same neighb"))
    labels = ("--data", "pile/rows.jsonl", "--label", "topic")
    yield Step("With classes", ("evaluate", "model", "--base", base, *labels), ("against", "full"))
    values = ("evaluate", base, *labels, "--json", "--quiet", "--head", "logistic")
    yield Step("For a program", values, ('"full_macro_f1"',))
    yield Step("A class that is not there", ("evaluate", base, *labels[:3], "nope"), ("no column 'nope'",), status=1)
    encode = ("encode", "model", "pile")
    yield Step("Vectors", (*encode, "--output", "vectors.parquet"), ("Encoded", "none of"))
    yield Step(
        "A model that is nowhere", ("encode", "nomodel", "pile", "--output", "v.parquet"), ("nomodel",), status=1
    )
    yield Step("A longer model", ("convert", base, "--output", "longer"), ("32,?768",))
    yield Step(
        "Vectors of whole documents", ("encode", "longer", "pile", "--output", "whole.parquet"), ("vectors|encoded",)
    )
    stop = ("train", "pile", "--base", base, "--output", "second", *few, "--save-steps", "1")
    yield Step("Ctrl-C", stop, ("--resume",), status=130, interrupt="second.run/**/checkpoint-1")
    yield Step("Again without --resume", stop, ("--resume",), status=1)
    yield Step("On it goes", (*stop, "--resume"), told)
    shape = r"\(1, \d+\)"
    yield Step("The model in Python", (LOAD.format("import simlte_st; ", "model"),), (shape,), python=True)
    yield Step("The longer one", (LOAD.format("import simlte_st; ", "longer"),), (shape,), python=True)
    yield from looking_steps(base)
    yield Step("By name", ("train", "pile", "--base", base, "--name", "mine", *few), ('SentenceTransformer\\("mine"',))
    yield from odd_steps(base)
    yield Step("Which names?", ("models", "list"), ("mine",))
    yield Step("Away with it", ("models", "remove", "mine"), ("mine",))


def looking_steps(base: str) -> Iterator[Step]:
    """Return the commands that search documents and show what there is."""
    index = ("index", "model", "pile", "--output", "pile.index")
    yield Step("An index", index, (r"\d+ documents added",))
    yield Step("Nothing is new", index, (r"\b0 documents added",))
    question = ("search", "pile.index", "a new film wins a prize")
    yield Step("Search", (*question, "--explain"), ("cosine", "words"))
    yield Step("A column that is not there", (*question, "--where", "yaer > 3"), ("on the columns: id",), status=1)
    each = ("link", "pile.index", "--each", "pile/rows.jsonl", "--output", "links.parquet")
    yield Step("Each its neighbours", each, (r"links\.parquet",))
    yield Step("Without copies", ("dedupe", "pile/rows.jsonl", "--output", "kept.jsonl"), (r"\(\d+ exact, \d+ near\)",))
    yield Step("What is there to see?", ("explore", base, "pile", "--output", "pile.html"), ("topics", r"pile\.html"))
    yield Step(
        "Which model?",
        ("compare", "pile/rows.jsonl", base, "--probe", "topic", "--sample", "100"),
        ("TF-IDF", "simlte "),
    )
    yield Step("For elsewhere", ("export", base, "--format", "onnx", "--output", "onnx"), ("onnx",))


def odd_steps(base: str) -> Iterator[Step]:
    """Return commands on files that are not as they should be: each kind is read, or named."""
    yield Step(
        "Odd pages and an old text", ("encode", base, "odd/files", "--output", "o.parquet"), ("1 wrong encoding",)
    )
    named = ("--encoding", "cp1252")
    yield Step("As advised", ("index", base, "odd/files", *named, "--output", "files.index"), ("read 4 documents",))
    for word, name in (("afterwards", "page"), ("clause", "unclosed"), ("朱镕基", "label"), ("déjà", "old")):
        yield Step(f"Is {word} there?", ("search", "files.index", word, "--mode", "text"), (rf"{name}\.(?:html|txt)",))
    output = ("--output", "o2.parquet")
    yield Step(
        "Bytes for text", ("encode", base, "odd/bytes.parquet", *output), ("'abstract' .* holds binary",), status=1
    )
    yield Step("No header", ("encode", base, "odd/headless.csv", *output), ("Write a row of names above",), status=1)
    yield Step("One object", ("encode", base, "odd/squad.json", *output), ("holds one object",), status=1)
    yield Step("One text twice", ("index", base, "odd/copies.jsonl", "--output", "c.index"), ("2 documents added",))
    yield Step(
        "The first one", ("search", "c.index", "delivery", "--where", "version = '1.10'"), ("Terms of delivery",)
    )


def fill_odd(folder: Path) -> None:
    """Write files that other readers stumble over."""
    files = folder / "files"
    files.mkdir(parents=True)
    (files / "page.html").write_text("<html><body><p>Before.</p></body></html><p>And afterwards.", encoding="utf-8")
    page = "<nav><a>Home</a></nav><noscript><noscript></noscript><p>A clause of the article.</noscript>"
    (files / "unclosed.html").write_text(page, encoding="utf-8")
    (files / "label.html").write_bytes("<meta charset=gb2312><p>总理朱镕基讲话。".encode("gb18030"))
    (files / "old.txt").write_bytes("Café, déjà vu.".encode("cp1252"))
    pq.write_table(pa.table({"key": ["a", "b"], "abstract": [b"One.", b"Two."]}), folder / "bytes.parquet")
    (folder / "headless.csv").write_text("a,The river rose in March.\nb,Prices fell again.\n", encoding="utf-8")
    (folder / "squad.json").write_text('{"version": "1", "data": [{"title": "T"}]}', encoding="utf-8")
    rows = [{"text": "Terms of delivery: within nine days.", "version": version} for version in ("1.10", "1.1")]
    (folder / "copies.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def fill(folder: Path, documents: Sequence[Document]) -> None:
    """Write documents in many forms, and what is none."""
    folder.mkdir()
    quarter = len(documents) // 4
    for number, document in enumerate(documents[:quarter]):
        (folder / f"{number}.txt").write_text(document.text, encoding="utf-8")
    (folder / "latin.txt").write_bytes("Café, naïve, déjà vu: written long ago.".encode("latin-1"))
    (folder / "empty.md").write_text("", encoding="utf-8")
    (folder / "huge.txt").write_text("word " * (HUGE // 5 + 1), encoding="utf-8")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    rows = [json.dumps({"text": document.text, "topic": document.label}) for document in documents[quarter:-quarter]]
    rows[3:3] = ['{"text": "cut off', '{"topic": "no text"}', '{"text": 7, "topic": "a number"}', *rows[:5]]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["id", "text", "topic"])
        writer.writerows(
            [number, document.text, document.label] for number, document in enumerate(documents[-quarter:])
        )


def take(step: Step, folder: Path) -> Outcome:
    """Run a step in a process of its own."""
    command = [sys.executable, *(("-c",) if step.python else ("-m", "simlte_st")), *step.command]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "SIMLTE_ST_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
    began = time.perf_counter()
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=folder, env=environment, **streams) as process:  # type: ignore[call-overload]
        while step.interrupt and process.poll() is None and not any(folder.glob(step.interrupt)):
            time.sleep(0.05)
        if step.interrupt and process.poll() is None:
            process.send_signal(signal.SIGINT)
        printed = process.communicate()[0].decode("utf-8", "replace")
    return Outcome(step, time.perf_counter() - began, printed, tuple(faults(step, process.returncode, printed)))


def faults(step: Step, status: int, printed: str) -> Iterator[str]:
    """Return the problems of a step's output."""
    if status != step.status:
        yield f"exit status {status}, not {step.status}"
    if "Traceback" in printed:
        yield "a traceback"
    for wanted in step.says:
        if not re.search(wanted, " ".join(printed.split())):
            yield f"does not say {wanted!r}"
    for line in () if step.python else printed.splitlines():
        words = line.rpartition("\r")[2]
        if len(words) > WIDTH and not re.search(r"\d%\||/s[],]|^\||^ {4}|^\{|/\S{40}", words):
            yield f"{len(words)} columns: {words[:60]}..."


def main(argv: Sequence[str] | None = None, take: Callable[[Step, Path], Outcome] = take) -> int:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--base", default=PACKAGED_BASE, metavar="MODEL", help="default: %(default)s")
    parser.add_argument("--documents", type=int, default=400, help="of BBC News (default: %(default)s)")
    parser.add_argument("--max-steps", type=int, default=6, help="of each training (default: %(default)s)")
    options = parser.parse_args(argv)
    rows = load_benchmark("bbc").rows
    texts = [
        Document(str(row), rows["text"][row], label=rows["label"][row])
        for row in sample_rows(len(rows), options.documents, seed=0)
    ]
    outcomes = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fill(folder / "pile", texts)
        fill_odd(folder / "odd")
        for step in steps(options.base, options.max_steps):
            outcomes.append(take(step, folder))
            print(f"== {step.title}: {outcomes[-1].seconds:.0f} s {'; '.join(outcomes[-1].wrong)}", flush=True)
            print(outcomes[-1].printed, flush=True)
    sizes = {"documents": options.documents, "max_steps": options.max_steps}
    record = {**sizes, "environment": environment(), "steps": [asdict(outcome) for outcome in outcomes]}
    pages.write_results("first_hour", record, options.output)
    return sum(bool(outcome.wrong) for outcome in outcomes)


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    table = []
    for outcome in record["steps"]:
        step = outcome["step"]
        command = "Python" if step["python"] else f"`simlte {' '.join(step['command'])}`".replace("|", "\\|")
        wrong = "; ".join(outcome["wrong"]) or "nothing"
        table.append([step["title"], command, f"{outcome['seconds']:.0f}", wrong])
    return pages.document(
        "# A stranger's first hour",
        f"{record['documents']} articles of BBC News as text files, JSON lines and a CSV with semicolons; copies, "
        f"broken rows and a file that is too large among them; {record['max_steps']} steps a training. Each command "
        f"in a process of its own, {WIDTH} columns. What each printed is in `first_hour.json`.",
        markdown_table(["step", "command", "seconds", "wrong"], table),
        machines=[record["environment"]],
        command=f"python -m benchmarks.first_hour --documents {record['documents']} --max-steps {record['max_steps']}",
    )


if __name__ == "__main__":
    raise SystemExit(main())
