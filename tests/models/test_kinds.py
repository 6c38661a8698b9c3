"""Models of other kinds are named before any work, in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simlte_st.cli.main import main
from simlte_st.errors import ModelError
from simlte_st.models.base import load_model


def written(folder: Path, **files: Any) -> Path:
    folder.mkdir()
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def modules(*kinds: str) -> list[dict[str, Any]]:
    return [{"idx": number, "name": str(number), "path": "", "type": kind} for number, kind in enumerate(kinds)]


KINDS: dict[str, dict[str, Any]] = {
    "sparse": {"config_sentence_transformers": {"model_type": "SparseEncoder"}, "modules": modules("x.Transformer")},
    "SPLADE": {"modules": modules("x.Transformer", "sentence_transformers.sparse_encoder.models.SpladePooling")},
    "cross-encoder": {"config_sentence_transformers": {"model_type": "CrossEncoder"}, "modules": modules("x.Y")},
    "reranker": {"config": {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}},
    "multi-vector": {"config_sentence_transformers": {"model_type": "MultiVectorEncoder"}, "modules": modules("x.Y")},
    "images": {"modules": modules("sentence_transformers.models.CLIPModel")},
    "CLIP": {"config": {"model_type": "clip", "architectures": ["CLIPModel"]}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_named(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=kind):
        load_model(written(tmp_path / "model", **KINDS[kind]))


def test_broken_files_are_not_taken_for_another_kind(tmp_path: Path) -> None:
    folder = written(tmp_path / "model", config=["x"])
    (folder / "modules.json").write_text("{")
    with pytest.raises(ModelError, match="could not be loaded"):
        load_model(folder)


@pytest.mark.parametrize(
    "command",
    [
        "encode MODEL docs.csv --output v.parquet",
        "index MODEL docs.csv --output x",
        "train docs.csv --base MODEL --output x",
        "compare docs.csv MODEL",
        "explore MODEL docs.csv --output x.html",
        "evaluate MODEL --data docs.csv --label label",
        "export MODEL --output x",
        "convert MODEL --output x",
    ],
)
def test_every_command_says_so(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "reranker", **KINDS["reranker"])
    Path("docs.csv").write_text("text,label\n" + "".join(f"Ba bei {n}. Un du.,{n % 2}\n" for n in range(9)))
    assert main(command.replace("MODEL", "./reranker").split()) == 1
    assert "a cross-encoder (reranker)" in " ".join(capsys.readouterr().err.split())
    assert {path.name for path in tmp_path.iterdir()} <= {"reranker", "docs.csv"}
