"""A training run: initial checks, the work folder, and settings shared by all stages."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simlte_st import files
from simlte_st.distributed import connect_processes, is_main, let_main_finish, on_main, world
from simlte_st.errors import TrainingInterrupted
from simlte_st.models.names import check_model
from simlte_st.reading.document import DocumentSource, content_id
from simlte_st.reading.documents import DocumentReader, Shards, read_documents
from simlte_st.reading.sources import is_place


def trained_path(output: Path) -> Path:
    """Return the folder for the trained model if a run keeps the base."""
    return output.with_name(f"{output.name}.trained")


def report_path(output: Path) -> Path:
    """Return the path of the report, outside the model's folder because it contains document texts."""
    return output.with_name(f"{output.name}.report.html")


def check_run(
    source: DocumentSource, output: Path, *, base: str | os.PathLike[str] | None, probe: str | None, report: bool,
    resume: bool, overwrite: bool,
) -> DocumentReader | Shards:  # fmt: skip
    """Check the documents, the output and the base before importing torch, which takes seconds.

    Returns:
        The documents, which have not been read yet.
    """
    documents = source if isinstance(source, Shards) else read_documents(source)
    if probe is not None and isinstance(documents, DocumentReader):
        documents = documents.with_options(label_column=probe)
    files.check_apart(list(documents.names) if isinstance(documents, Shards) else documents, output)
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
        device: Torch device (default: a GPU if available, otherwise the CPU).
        bf16: Whether encoders compute in bfloat16; static models are trained in float32.
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

        The number of processes must also be the same, because checkpoints contain the random state of each process.
        """
        settings = {name: to_setting(argument) for name, argument in arguments.items()}
        settings |= {"base": base, "dtype": "bfloat16" if self.bf16 else "float32", "processes": world()}
        on_main(self.folder.open)(settings, overwrite=overwrite)


@contextmanager
def open_run(
    output: Path, *, device: str | None, bf16: bool | None, seed: int, progress: bool, resume: bool
) -> Iterator[Run]:
    """Connect the processes and yield the run; remove its folder if it fails before the first checkpoint."""
    from simlte_st.models.device import bf16_available, check_device

    check_device(device)
    device = connect_processes(device)
    folder = RunFolder(output, resume=resume)
    with folder.tidying("checkpoints/*"):
        try:
            bf16 = bf16_available(device) if bf16 is None else bf16
            yield Run(folder, device, bf16, seed, progress and is_main())
        except TrainingInterrupted:
            let_main_finish()
            raise


Setting = str | float | list[str] | None
"""An argument as a JSON value."""

_short = reprlib.Repr()
_short.maxother = 10_000


def to_setting(argument: object) -> Setting:
    """Convert an argument to a JSON value without memory addresses, so that all processes get the same value."""
    if argument is None or isinstance(argument, (str, int, float)):
        return argument
    if isinstance(argument, os.PathLike):
        return str(os.fspath(argument))
    if isinstance(argument, (list, tuple)) and argument and all(map(is_place, argument)):
        return [os.fspath(place) for place in argument]
    shards = f", {content_id(chr(0).join(argument.names))}" if isinstance(argument, Shards) else ""  # in their order
    return re.sub(" at 0x[0-9a-fA-F]+", "", _short.repr(argument)) + shards


class RunFolder(files.WorkFolder):
    """The work folder of a run, ``OUTPUT.run``."""

    def __init__(self, output: Path, *, resume: bool = False) -> None:
        super().__init__(output, ".run", resume=resume)
        self.trained = trained_path(output)
        names = ("base", "taught", "corpus", "tokens", "checkpoints")
        self.base, self.taught, self.corpus, self.tokens, self.checkpoints = (self.path / name for name in names)

    def check(self, *, overwrite: bool = False) -> None:
        """Check that a new run can start, or that there is an interrupted run to resume."""
        for target in () if self.resume else (self.output, self.trained):
            files.check_free(target, overwrite)
        super().check(overwrite=overwrite)
