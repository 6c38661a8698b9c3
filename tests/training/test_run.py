from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from simlte_st.data import DocSplit, PunktSegmenter, read_documents
from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.files import hold
from simlte_st.training import run
from simlte_st.training.run import RunFolder, RunOptions, described


def test_bf16_is_asked_of_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for capabilities, expected in (({}, False), ({"avx512_bf16": True}, True), ({"amx_bf16": True}, True)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=capabilities: found, raising=False)
        assert run.bf16_available() is expected


def test_what_decides_the_outcome_names_the_dtype_and_not_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "bf16_available", lambda device: True)
    decisive = RunOptions("base", settings={"scale": 10.0, "epochs": None}, workers=4).decisive()
    assert decisive["dtype"] == "bfloat16"
    assert decisive["scale"] == 10.0
    assert "epochs" not in decisive, "None keeps the preset's"
    assert not {"workers", "save_steps", "progress", "bf16"} & set(decisive)
    assert RunOptions("base", bf16=False).decisive()["dtype"] == "float32"


def test_a_run_does_not_go_on_in_another_dtype_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resume(options: RunOptions) -> RunFolder:
        return RunFolder.open(tmp_path / "model", options.decisive(), resume=True, overwrite=False)

    for here, there, asked in ((True, False, "bf16=True"), (False, True, "bf16=False")):
        monkeypatch.setattr(run, "bf16_available", lambda device, here=here: here)
        RunFolder.open(tmp_path / "model", RunOptions("base").decisive(), resume=False, overwrite=True)
        assert resume(RunOptions("base")).path == tmp_path / "model.run"
        monkeypatch.setattr(run, "bf16_available", lambda device, there=there: there)
        with pytest.raises(ResumeError, match=f"Go on with {asked}"):
            resume(RunOptions("base"))
        assert resume(RunOptions("base", bf16=here)).resume  # the same options otherwise
        with pytest.raises(ResumeError, match="seed: was 0, is 1"):
            resume(RunOptions("base", seed=1, bf16=here))


def test_the_folder_of_a_run_that_could_not_begin_goes(tmp_path: Path) -> None:
    for resume in (False, True):
        folder = RunFolder.open(tmp_path / "model", {}, resume=False, overwrite=True)
        folder = replace(folder, resume=resume)
        with pytest.raises(ConfigurationError), folder.beginning():
            raise ConfigurationError("too small")
        assert folder.path.exists() is resume


def begin(output: Path, overwrite: bool = False) -> RunFolder:
    return RunFolder.open(output, {}, resume=False, overwrite=overwrite)


def test_an_interrupted_run_waits_until_the_one_that_replaces_it_has_begun(tmp_path: Path) -> None:
    begin(tmp_path / "m").release()
    (tmp_path / "m.run" / "checkpoint").write_text("hours of work")
    with pytest.raises(ConfigurationError, match="holds an interrupted run"):
        begin(tmp_path / "m")
    folder = begin(tmp_path / "m", overwrite=True)
    with pytest.raises(ConfigurationError, match="no such base"), folder.beginning():
        raise ConfigurationError("no such base")
    assert (tmp_path / "m.run" / "checkpoint").read_text() == "hours of work"
    with begin(tmp_path / "m", overwrite=True).beginning():
        assert not (tmp_path / "m.run" / "checkpoint").exists()
        assert (tmp_path / ".m.run.before" / "checkpoint").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["m.run"]


def test_killed_before_the_settings_were_written(tmp_path: Path) -> None:
    hold(tmp_path / "m.run").release()
    (tmp_path / "m.run" / ".settings.json.abcdefgh.tmp").mkdir()
    with pytest.raises(ResumeError, match="no interrupted run"):
        RunFolder.open(tmp_path / "m", {}, resume=True, overwrite=False)
    begin(tmp_path / "m").release()
    assert RunFolder.open(tmp_path / "m", {}, resume=True, overwrite=False).resume


def test_killed_while_the_work_folder_of_a_finished_run_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begin(tmp_path / "m")
    (folder.path / "checkpoint").write_text("hours of work")
    (tmp_path / "m").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)  # as if the process ended here
        folder.close()
    assert not folder.path.exists()
    with pytest.raises(ResumeError, match="m is finished"):
        RunFolder.open(tmp_path / "m", {}, resume=True, overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_is_not_of_a_run_is_never_removed(tmp_path: Path) -> None:
    for name, file in (("a", "modules.json"), ("b", "thesis.txt")):
        (tmp_path / f"{name}.run").mkdir()
        (tmp_path / f"{name}.run" / file).write_text("[]")
        with pytest.raises(ConfigurationError, match=rf"{name}\.run, where this run would keep .* is something else"):
            begin(tmp_path / name, overwrite=True)
        assert (tmp_path / f"{name}.run" / file).exists()
    (tmp_path / "b.trained").mkdir()
    (tmp_path / "b.trained" / "thesis.txt").write_text("years")
    with pytest.raises(ConfigurationError, match=r"b\.trained is not replaced"):
        begin(tmp_path / "b", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_is_at_work_is_left_alone(tmp_path: Path, overwrite: bool) -> None:
    folder = begin(tmp_path / "m")
    with pytest.raises(ConfigurationError, match="Another process"):
        begin(tmp_path / "m", overwrite)
    with pytest.raises(ConfigurationError, match="Another process"):
        RunFolder.open(tmp_path / "m", {}, resume=True, overwrite=False)
    folder.release()
    RunFolder.open(tmp_path / "m", {}, resume=True, overwrite=False).close()


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


def test_changed_settings_are_told_one_by_one(tmp_path: Path) -> None:
    def told(**settings: Any) -> dict[str, Any]:
        return RunOptions("base", bf16=False, settings=settings).decisive()

    RunFolder.open(tmp_path / "model", told(batch_size=8, epochs=1.0), resume=False, overwrite=False)
    with pytest.raises(ResumeError, match=r"settings \(batch_size: was 8, is 16; warmup: was not given, is 0.1\)\."):
        RunFolder.open(tmp_path / "model", told(batch_size=16, epochs=1.0, warmup=0.1), resume=True, overwrite=False)
