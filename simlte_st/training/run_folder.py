"""Where a run keeps what it needs until its model is finished: a folder beside the output, named ``OUTPUT.run``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.files import check_free, read_json, write_json
from simlte_st.training.callbacks import last_complete_checkpoint


@dataclass(frozen=True)
class RunFolder:
    """The work folder of a run.

    Attributes:
        output: Where the finished model goes, by one rename.
        path: The work folder: settings, what was read, a converted base, checkpoints.
    """

    output: Path
    path: Path

    @classmethod
    def open(cls, output: Path, settings: dict[str, Any], *, resume: bool, overwrite: bool) -> RunFolder:
        """Make the work folder, or find the one of an interrupted run.

        Args:
            output: Where the finished model goes.
            settings: Everything that decides the outcome, as JSON values. Kept in the folder, and compared on resume.
            resume: Go on with the run that was interrupted.
            overwrite: Replace a finished model, and drop an interrupted run.

        Raises:
            ConfigurationError: There is a model or a run already, and neither ``resume`` nor ``overwrite``.
            ResumeError: There is nothing to resume, or it was started with other settings.
        """
        folder = cls(output, output.with_name(f"{output.name}.run"))
        if resume:
            folder._check(settings)
            return folder
        check_free(output, overwrite)
        if folder.path.exists():
            if not overwrite:
                raise ConfigurationError(
                    f"{folder.path} holds an interrupted run: go on with it (--resume) or start anew (--overwrite)."
                )
            shutil.rmtree(folder.path)
        write_json(folder.path / "settings.json", settings)
        return folder

    def _check(self, settings: dict[str, Any]) -> None:
        if not (self.path / "settings.json").exists():
            done = f" {self.output} is finished." if self.output.exists() else ""
            raise ResumeError(f"There is no interrupted run at {self.path}.{done}")
        saved = read_json(self.path / "settings.json")
        different = [
            f"{name}: was {saved.get(name)!r}, is {settings.get(name)!r}"
            for name in sorted({*saved, *settings})
            if saved.get(name) != settings.get(name)
        ]
        if different:
            raise ResumeError("The interrupted run has other settings (" + "; ".join(different) + ").")

    @property
    def base(self) -> Path:
        """Folder of the base, where it had to be converted."""
        return self.path / "base"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def checkpoint(self) -> Path | None:
        """The newest complete checkpoint."""
        return last_complete_checkpoint(self.checkpoints)

    def close(self) -> None:
        """Remove the work folder: the model is in place."""
        shutil.rmtree(self.path)
