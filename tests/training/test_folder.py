from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from simlte_st.training.folder import RunFolder

from simlte_st.errors import ConfigurationError, ResumeError


def opened(
    output: Path, settings: dict[str, Any] | None = None, *, resume: bool = False, overwrite: bool = False
) -> RunFolder:
    folder = RunFolder(output, resume=resume)
    folder.open(settings or {}, overwrite=overwrite)
    return folder


def test_the_folder_of_a_run_that_could_not_begin_goes(tmp_path: Path) -> None:
    opened(tmp_path / "model").abandon()
    assert not (tmp_path / "model.run").exists()
    opened(tmp_path / "model").release()
    opened(tmp_path / "model", resume=True).abandon()
    assert (tmp_path / "model.run").exists()


def test_killed_while_the_work_folder_of_a_finished_run_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = opened(tmp_path / "m")
    (folder.path / "checkpoint").write_text("hours of work")
    (tmp_path / "m").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)  # as if the process ended here
        folder.close()
    assert not folder.path.exists()
    with pytest.raises(ResumeError, match="m is finished"):
        opened(tmp_path / "m", resume=True)


def test_what_is_not_of_a_run_is_never_removed(tmp_path: Path) -> None:
    for name, file in (("a", "modules.json"), ("b", "thesis.txt")):
        (tmp_path / f"{name}.run").mkdir()
        (tmp_path / f"{name}.run" / file).write_text("[]")
        with pytest.raises(ConfigurationError, match=rf"{name}\.run exists"):
            opened(tmp_path / name, overwrite=True)
        assert (tmp_path / f"{name}.run" / file).exists()
    (tmp_path / "b.trained").mkdir()
    (tmp_path / "b.trained" / "thesis.txt").write_text("years")
    with pytest.raises(ConfigurationError, match=r"b\.trained is not replaced"):
        opened(tmp_path / "b", overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_is_at_work_is_left_alone(tmp_path: Path, overwrite: bool) -> None:
    folder = opened(tmp_path / "m")
    with pytest.raises(ConfigurationError, match="is already working"):
        opened(tmp_path / "m", overwrite=overwrite)
    with pytest.raises(ConfigurationError, match="is already working"):
        opened(tmp_path / "m", resume=True)
    folder.release()
    opened(tmp_path / "m", resume=True).close()


def test_changed_settings_are_named_one_by_one(tmp_path: Path) -> None:
    opened(tmp_path / "m", {"batch_size": 8, "epochs": 1.0}).release()
    with pytest.raises(ResumeError, match=r"\(batch_size: was 8, is 16; warmup: was not given, is 0.1\)"):
        opened(tmp_path / "m", {"batch_size": 16, "epochs": 1.0, "warmup": 0.1}, resume=True)
