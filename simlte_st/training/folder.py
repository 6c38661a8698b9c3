"""The folder beside the output in which a run keeps what it needs until its model is finished."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

from filelock import FileLock

from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.files import (
    RUN,
    SETTINGS_FILE,
    changes,
    check_free,
    discard,
    hold,
    is_model,
    is_unused,
    read_json,
    write_json,
)

logger = logging.getLogger(__name__)


def trained_path(output: Path) -> Path:
    """Return the folder of the trained model if the finished model is the base."""
    return output.with_name(f"{output.name}.trained")


def report_path(output: Path) -> Path:
    """Return the page of the run: beside the model's folder, which may be published, because it shows documents."""
    return output.with_name(f"{output.name}.report.html")


class RunFolder:
    """The work folder of a run, ``OUTPUT.run``, which one process uses at a time."""

    def __init__(self, output: Path, *, resume: bool = False) -> None:
        self.output, self.path, self.resume = output, output.with_name(f"{output.name}{RUN}"), resume
        self.trained = trained_path(output)
        names = ("base", "corpus", "tokens", "checkpoints")
        self.base, self.corpus, self.tokens, self.checkpoints = (self.path / name for name in names)
        self.begun = resume  # whether training has begun: a run that fails before leaves no folder
        self._lock: FileLock | None = None  # of the process that has opened the folder

    @property
    def checkpoint(self) -> Path | None:
        """The newest complete checkpoint."""
        from simlte_st.training.callbacks import last_complete_checkpoint  # with torch

        return last_complete_checkpoint(self.checkpoints)

    def open(self, settings: dict[str, Any], *, overwrite: bool = False) -> None:
        """Make the folder, or find the interrupted run, and lock it."""
        self.check(overwrite=overwrite)
        if self.resume:
            self._compare(settings)
            self._lock = hold(self.path)
            return
        if self._interrupted:
            shutil.rmtree(self.path)
        self._lock = hold(self.path)
        write_json(self.path / SETTINGS_FILE, settings)

    @property
    def _interrupted(self) -> bool:
        return self.path.exists() and not is_unused(self.path)

    def check(self, *, overwrite: bool = False) -> None:
        """Check that a run can begin, or that there is one to resume."""
        if self.resume:
            if not (self.path / SETTINGS_FILE).exists():
                done = f" {self.output} is finished." if self.output.exists() else ""
                raise ResumeError(f"There is no interrupted run at {self.path}.{done}")
            return
        check_free(self.output, overwrite)
        check_free(self.trained, overwrite)
        if self._interrupted:
            if not (self.path / SETTINGS_FILE).exists() or is_model(self.path):
                raise ConfigurationError(
                    f"{self.path} exists and is not the work folder of a run: choose another output."
                )
            hold(self.path).release()
            if not overwrite:
                raise ConfigurationError(
                    f"{self.path} holds an interrupted run: continue it (resume=True) or start anew (overwrite=True)."
                )

    def _compare(self, settings: dict[str, Any]) -> None:
        saved = read_json(self.path / SETTINGS_FILE)
        different = changes(saved, settings)
        if different.pop("threads", None) and saved.get("threads"):
            logger.warning(
                "The interrupted run computed with %d threads, and goes on with %d: on the same batches and views, but "
                "not to the same bytes. The environment variable OMP_NUM_THREADS=%d leads to those.",
                saved["threads"],
                settings["threads"],
                saved["threads"],
            )
        if different:
            raise ResumeError(f"The interrupted run has other settings ({'; '.join(different.values())}).")

    def abandon(self) -> None:
        """Remove the folder of a run that failed before training began."""
        if self._lock is not None and not self.begun:
            self.close()

    def close(self) -> None:
        """Remove the folder: the model is finished."""
        self.release()
        discard(self.path, self.output)

    def release(self) -> None:
        """Let other processes use the folder."""
        if self._lock is not None:
            self._lock.release()
