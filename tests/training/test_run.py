from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from training_support import broken_off

from simlte_st import train
from simlte_st.data import DocSplit, PunktSegmenter, read_documents
from simlte_st.errors import ConfigurationError
from simlte_st.training import TrainConfig, run
from simlte_st.training.run import TrainingRun, described


def decisive(**settings: Any) -> dict[str, Any]:
    return TrainingRun("texts", "model", TrainConfig.make(None, settings)).decisive()


def test_what_decides_the_outcome_names_the_dtype_and_not_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "bf16_available", lambda device: True)
    found = decisive(scale=10.0, epochs=None, workers=4)
    assert found["dtype"] == "bfloat16"
    assert found["scale"] == 10.0
    assert "epochs" not in found, "None keeps the preset's"
    assert not {"workers", "save_steps", "progress", "bf16"} & set(found)
    assert decisive(bf16=False)["dtype"] == "float32"


def test_a_run_that_an_older_version_began_resumes(encoder_path: Path, documents: list[str], tmp_path: Path) -> None:
    options: dict[str, Any] = {"base": encoder_path, "batch_size": 8, "max_steps": 4, "save_steps": 2, "bf16": False}
    options |= {"held_out": 0.0, "progress": False, "view": DocSplit(p=0.4)}
    with broken_off(3):
        train(documents, tmp_path / "m", **options)
    path = tmp_path / "m.run" / "settings.json"
    saved = json.loads(path.read_text())
    for name in ("threads", "mails", "drop_quotes", "html"):  # which it did not write
        del saved[name]
    path.write_text(json.dumps(saved))
    assert saved == {
        "source": "builtins.list of 48", "text_column": None, "id_column": None, "encoding": "utf-8", "limit": None,
        "base": str(encoder_path), "preset": "auto", "segmenter": "punkt", "held_out": 0.0, "max_steps": 4, "lsa": None,
        "keep": "verdict", "probe": None, "seed": 0, "stream": False, "batch_size": 8,
        "view": repr(DocSplit(p=0.4)),
        "dtype": "float32", "processes": 1,
    }, "keys and values of version 0.1"  # fmt: skip
    assert train(documents, tmp_path / "m", resume=True, **options).steps == 4


def test_a_folder_that_a_process_does_not_see_is_an_error(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "open_folder", lambda run: run)
    with pytest.raises(ConfigurationError, match=r"m\.run"):
        train(documents, tmp_path / "m", base=encoder_path)


def test_what_is_compared_on_resume_is_the_same_in_another_process() -> None:
    def cut(text: str) -> list[str]:
        return [text]

    values = [
        Path("a"),
        ["a", "b"],
        read_documents(["a"]),
        cut,
        lambda text: [text],
        PunktSegmenter(),
        iter("ab"),
        DocSplit(),
    ]
    found = [described(value) for value in values]
    assert not any("0x" in value for value in found), found
    assert found[:3] == ["a", "builtins.list of 2", "DocumentReader(the list)"]
    assert found[-1] == repr(DocSplit())
    assert len(set(found)) == len(values)
    assert described([Path(__file__), Path("b")]) == [__file__, "b"], "which files they were is compared on resume"
