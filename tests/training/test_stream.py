"""Training on documents that are read during the run."""

from __future__ import annotations

import json
import multiprocessing
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import make_document
from training_support import assert_same_bytes, interrupt_at_step

from simlte_st import train
from simlte_st.data import read_documents
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError, ResumeError, SimlteError
from simlte_st.training import load_corpus
from simlte_st.views import corpus as views_corpus

# Dropout, an MLM head, and more steps than a pass has batches.
OPTIONS: dict[str, Any] = {
    "preset": "docsplit-bert", "max_length": "base", "batch_size": 8, "max_steps": 16, "save_steps": 4,
    "progress": False, "device": "cpu", "bf16": False, "keep": "trained", "seed": 5,
}  # fmt: skip


def write(folder: Path, files: int = 4, rows: int = 25) -> Path:
    for file in range(files):
        folder.mkdir(exist_ok=True)
        texts = [make_document(file * rows + row) for row in range(rows)]
        ids = [f"{file}-{row}" for row in range(rows)]
        pq.write_table(pa.table({"id": ids, "text": texts}), folder / f"{file}.parquet")
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(views_corpus, "BUFFER", 24)
    monkeypatch.setattr(load_corpus, "FIRST", 30)
    multiprocessing.set_start_method("fork", force=True)  # so that workers have the same numbers
    yield
    multiprocessing.set_start_method(None, force=True)


def test_resumed_run_continues_the_stream_to_the_same_bytes(
    bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, draw, drawn = write(tmp_path / "files"), views_corpus.draw_views, []
    monkeypatch.setattr(views_corpus, "draw_views", lambda one, *a, **o: drawn.append(one.id) or draw(one, *a, **o))
    fill, filled = views_corpus.DocumentStream._fill, []
    monkeypatch.setattr(views_corpus.DocumentStream, "_fill", lambda *place: filled.append(place[1]) or fill(*place))
    whole = train(read_documents(source, stream=True), tmp_path / "whole", base=bert_path, **OPTIONS)
    assert len(filled) < 20, "rows are taken in their order, from buffer to buffer"
    assert whole.steps == 16
    with interrupt_at_step(10):
        train(read_documents(source, stream=True), tmp_path / "m", base=bert_path, **OPTIONS)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "m.run").rglob("*") if path.is_file())
    texts = [row["text"] for file in sorted(source.iterdir()) for row in pq.read_table(file).to_pylist()]
    sentences = [text.split(". ")[0].encode() for text in texts]
    assert sum(sentence in kept for sentence in sentences) <= 30
    held_out = {row["id"] for row in json.loads((tmp_path / "m.run" / "documents.json").read_text())["held_out"]}
    assert 5 < len(held_out) < 25
    assert len(set(drawn)) == whole.corpus.documents
    assert not held_out & set(drawn)
    drawn.clear()
    # Each worker reads for itself and counts its documents.
    stream, options = read_documents(source, stream=True), {**OPTIONS, "resume": True, "workers": 2}
    result = train(stream, tmp_path / "m", base=bert_path, **options)
    assert_same_bytes(tmp_path / "whole", tmp_path / "m")
    assert result.corpus == whole.corpus
    assert re.search(r"\d\d documents: 16 steps", (tmp_path / "m" / "README.md").read_text())


@pytest.mark.parametrize("static", [False, True])
def test_workers_may_be_new_processes(
    static: bool, encoder_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows and macOS and, from Python 3.14 on, on Linux."""
    monkeypatch.undo()  # new processes read the numbers of the package
    multiprocessing.set_start_method("spawn", force=True)
    source, preset = write(tmp_path / "files"), "docsplit-static" if static else "docsplit-tuned"
    options = {**OPTIONS, "base": static_path if static else encoder_path, "preset": preset, "max_steps": 2}
    for name, workers in {"m": 0, "n": 1}.items():
        stream = pq.read_table(source) if static else read_documents(source, stream=True)
        train(stream, tmp_path / name, workers=workers, **options)
    assert_same_bytes(tmp_path / "m", tmp_path / "n")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_steps": None}, "Set max_steps="),
        ({"max_steps": None, "preset": "docsplit-tuned", "epochs": 2}, "Set max_steps="),
        ({"batch_size": 80}, "fewer documents"),
    ],
)
def test_unsupported_stream_settings_are_refused(
    settings: dict[str, Any], message: str, encoder_path: Path, tmp_path: Path
) -> None:
    source = write(tmp_path / "files", files=2)
    with pytest.raises(SimlteError, match=message) as raised:
        train(read_documents(source, stream=True), tmp_path / "m", base=encoder_path, **{**OPTIONS, **settings})
    assert isinstance(raised.value, (ConfigurationError, DataError, EmptyCorpusError))
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_run_resumes_after_a_broken_shard_is_repaired(encoder_path: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "files", rows=50)  # the model card reads a hundred documents
    options = {**OPTIONS, "base": encoder_path, "preset": "docsplit-tuned", "max_steps": 20}
    train(read_documents(source, stream=True), tmp_path / "whole", **options)
    last = views_corpus.shard_order(4, seed=5, epoch=0)[-1]
    assert last, "the columns are those of the first file"
    broken, sound = source / f"{last}.parquet", tmp_path / "sound"
    shutil.copy(broken, sound)
    broken.write_bytes(b"PAR1 but nothing else PAR1")
    with pytest.raises(DataError, match=rf"^\S+/{last}\.parquet"):
        train(read_documents(source, stream=True), tmp_path / "m", **options)
    assert (tmp_path / "m.run" / "checkpoints" / "checkpoint-12" / "complete").exists()
    shutil.move(sound, broken)
    shutil.copy(broken, source / "4.parquet")
    with pytest.raises(ResumeError, match="source: was"):
        train(read_documents(source, stream=True), tmp_path / "m", resume=True, **options)
    (source / "4.parquet").unlink()
    train(read_documents(source, stream=True), tmp_path / "m", resume=True, **options)
    assert_same_bytes(tmp_path / "whole", tmp_path / "m")
