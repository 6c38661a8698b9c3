"""A training run: checks before the start, the work folder, and the settings of the processes."""

from __future__ import annotations

import os
import re
import reprlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from simlte_st import files
from simlte_st.distributed import connect_processes, is_main, let_main_finish, on_main, world
from simlte_st.errors import ConfigurationError, ResumeError, SimlteError, TrainingInterrupted
from simlte_st.models.names import check_model
from simlte_st.reading.document import DocumentSource, content_id
from simlte_st.reading.documents import DocumentReader, Shards, read_documents
from simlte_st.reading.sources import is_place


def trained_path(output: Path) -> Path:
    """Return the folder of the trained model, for a run that keeps the base."""
    return output.with_name(f"{output.name}.trained")


def report_path(output: Path) -> Path:
    """Return the path of the report, which shows documents and is therefore outside the model's folder."""
    return output.with_name(f"{output.name}.report.html")


def check_run(
    source: DocumentSource, output: Path, *, base: str | os.PathLike[str] | None, probe: str | None, report: bool,
    resume: bool, overwrite: bool,
) -> DocumentReader | Shards:  # fmt: skip
    """Check documents, output and base before torch is imported, which takes seconds.

    Returns:
        The documents, not read yet.
    """
    documents = source if isinstance(source, Shards) else read_documents(source)
    if probe is not None and isinstance(documents, DocumentReader):
        documents = documents.with_options(label_column=probe)
    places = list(documents.names) if isinstance(documents, Shards) else documents
    files.check_apart(places, output)
    files.check_place(output)
    if report:
        files.check_file(report_path(output), overwrite or resume)
    RunFolder(output, resume=resume).check(overwrite=overwrite)
    if base is not None:
        check_model(base)
    return documents


@dataclass(frozen=True)
class Run:
    """Work folder and settings shared by all stages of a run.

    Attributes:
        folder: The work folder.
        device: Where to compute; None for a GPU, if there is one.
        bf16: Whether to train in bfloat16; not for static models.
        seed: Random seed.
        progress: Whether this process shows progress bars.
    """

    folder: RunFolder
    device: str | None = None
    bf16: bool = False
    seed: int = 0
    progress: bool = False

    def start(self, arguments: Mapping[str, object], *, base: str, overwrite: bool) -> None:
        """Open the folder of a new run, or of an interrupted run with the same arguments.

        The number of processes must be the same too, because checkpoints contain the random state of each process.
        """
        settings = {name: to_setting(argument) for name, argument in arguments.items()}
        settings |= {"base": base, "dtype": "bfloat16" if self.bf16 else "float32", "processes": world()}
        on_main(self.folder.open)(settings, overwrite=overwrite)


@contextmanager
def open_run(
    output: Path, *, device: str | None, bf16: bool | None, seed: int, progress: bool, resume: bool
) -> Iterator[Run]:
    """Connect the processes and yield the run; if it fails before training, its folder is removed."""
    from simlte_st.models.device import bf16_available, check_device

    check_device(device)
    device = connect_processes(device)
    folder = RunFolder(output, resume=resume)
    try:
        bf16 = bf16_available(device) if bf16 is None else bf16
        yield Run(folder, device, bf16, seed, progress and is_main())
    except SimlteError:
        folder.abandon()
        raise
    except TrainingInterrupted:
        let_main_finish()
        raise
    finally:
        folder.release()


Setting = str | float | list[str] | None
"""The JSON value of an argument."""

_short = reprlib.Repr()
_short.maxother = 10_000


def to_setting(argument: object) -> Setting:
    """Return a JSON value for an argument, without memory addresses, so that it is the same in all processes."""
    if argument is None or isinstance(argument, (str, int, float)):
        return argument
    if isinstance(argument, os.PathLike):
        return str(os.fspath(argument))
    if isinstance(argument, (list, tuple)) and argument and all(map(is_place, argument)):
        return [os.fspath(place) for place in argument]
    shards = f", {content_id(chr(0).join(argument.names))}" if isinstance(argument, Shards) else ""  # in their order
    return re.sub(" at 0x[0-9a-fA-F]+", "", _short.repr(argument)) + shards


class RunFolder:
    """The work folder of a run, ``OUTPUT.run``, locked by one process."""

    def __init__(self, output: Path, *, resume: bool = False) -> None:
        self.output, self.path, self.resume = output, output.with_name(f"{output.name}{files.RUN}"), resume
        self.trained = trained_path(output)
        names = ("base", "corpus", "tokens", "checkpoints")
        self.base, self.corpus, self.tokens, self.checkpoints = (self.path / name for name in names)
        self._lock: FileLock | None = None

    def open(self, settings: Mapping[str, Setting], *, overwrite: bool = False) -> None:
        """Create the folder, or open that of the interrupted run, and lock it."""
        self.check(overwrite=overwrite)
        if self.resume:
            if differences := files.changes(self.saved_settings, settings):
                raise ResumeError(f"The interrupted run has different settings ({'; '.join(differences.values())}).")
        elif self._is_interrupted:
            shutil.rmtree(self.path)
        self._lock = files.hold(self.path)
        if not self.resume:
            files.write_json(self.path / files.SETTINGS_FILE, settings)

    @property
    def saved_settings(self) -> dict[str, Setting]:
        """Settings of the interrupted run; empty if there is none."""
        file = self.path / files.SETTINGS_FILE
        return files.read_json(file) if file.exists() else {}

    @property
    def _is_interrupted(self) -> bool:
        return self.path.exists() and not files.is_unused(self.path)

    def check(self, *, overwrite: bool = False) -> None:
        """Check that a run can start, or that there is a run to resume."""
        if self.resume:
            if not self.saved_settings:
                finished = f" {self.output} is finished." if self.output.exists() else ""
                raise ResumeError(f"There is no interrupted run at {self.path}.{finished}")
            return
        files.check_free(self.output, overwrite)
        files.check_free(self.trained, overwrite)
        if self._is_interrupted:
            if not self.saved_settings:
                raise ConfigurationError(
                    f"{self.path} exists but is not the work folder of a run: choose another output."
                )
            files.hold(self.path).release()
            if not overwrite:
                raise ConfigurationError(
                    f"{self.path} holds an interrupted run: continue it (resume=True) or start over (overwrite=True)."
                )

    def abandon(self) -> None:
        """Remove the folder of a run that failed before its first checkpoint."""
        if self._lock is not None and not self.resume and not any(self.checkpoints.glob("*")):
            self.close()

    def close(self) -> None:
        """Remove the folder of a finished run."""
        self.release()
        files.discard(self.path, self.output)

    def release(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            self._lock.release()
