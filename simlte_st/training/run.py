"""The options of a run, and the folder beside its output where it keeps what it needs until its model is finished."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock

from simlte_st.checks import check_choice, check_count, check_number, check_seed
from simlte_st.data.documents import DocumentReader
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sources import is_place
from simlte_st.errors import ConfigurationError, ResumeError, SimlteError
from simlte_st.extras import require
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
    sweep,
    write_json,
)
from simlte_st.models.device import check_device, cpu_capabilities
from simlte_st.processes import world
from simlte_st.training.callbacks import last_complete_checkpoint
from simlte_st.training.presets import Preset, get_preset
from simlte_st.training.result import trained_path


def cpu_bf16() -> list[str]:
    """List what the CPU has for bfloat16 in hardware: ``"avx512_bf16"``, ``"amx_bf16"``."""
    found = cpu_capabilities()
    return [name for name in ("avx512_bf16", "amx_bf16") if found.get(name)]


def bf16_available(device: str | None = None) -> bool:
    """Return whether bfloat16 runs in hardware here: on the GPU, or on a CPU with AVX512-BF16 or AMX."""
    if torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(cpu_bf16())


@dataclass(frozen=True)
class RunOptions:
    """The arguments of :func:`~simlte_st.training.train` but for the documents and the output."""

    base: str
    preset: str | Preset = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)
    segmenter: str | Segmenter = "punkt"
    held_out: float = 0.1
    max_steps: int | None = None
    lsa: int | None = None
    keep: Literal["verdict", "trained"] = "verdict"
    probe: str | None = None
    seed: int = 0
    bf16: bool | None = None
    workers: int = 0
    save_steps: int | None = None
    progress: bool = True
    device: str | None = None
    report: bool = False
    stream: bool = False

    def __post_init__(self) -> None:
        check_device(self.device)
        # What is wrong with the preset's settings shows before anything is read or written.
        (self.named_preset or Preset()).changed(**self.settings)
        check_seed(self.seed)
        check_number("held_out", self.held_out, least=0, most=0.5)
        check_count("workers", self.workers, least=0)
        if self.save_steps is not None:
            check_count("save_steps", self.save_steps)
        if self.max_steps is not None and self.max_steps < 1:
            raise ConfigurationError(
                f"max_steps={self.max_steps}: at least one step is needed. Without training, an analysis is appended "
                f"by: simlte convert {shlex.quote(self.base)} --lsa DOCUMENTS --output DIR"
            )
        check_choice("keep", self.keep, ("verdict", "trained"))
        if self.probe is not None and self.held_out == 0:
            raise ConfigurationError("probe= measures on held-out documents: held_out= must not be 0.")
        if self.report and self.held_out == 0:
            raise ConfigurationError("report= shows held-out documents: held_out= must not be 0.")
        if self.report:
            require("bokeh", "explore", "the report of a run")
        if self.lsa is not None:
            check_count("lsa", self.lsa)
        if self.lsa is not None and self.stream:
            raise ConfigurationError(
                "lsa= is of all documents, which a stream never has together. Append one of a part of them to the "
                "finished model: simlte convert MODEL --lsa DOCUMENTS --output DIR"
            )

    @property
    def named_preset(self) -> Preset | None:
        """The preset that was asked for; None leaves the choice to the base."""
        if isinstance(self.preset, Preset):
            return self.preset
        return None if self.preset == "auto" else get_preset(self.preset)

    def named_steps(self, preset: Preset) -> int | None:
        """Return the steps that the run names, or else its preset; None where ``epochs`` decide."""
        by_epochs = self.settings.get("epochs") is not None
        return self.max_steps or (None if by_epochs else preset.steps)

    @property
    def dtype(self) -> str:
        """What the forward and backward passes compute in: ``"bfloat16"`` or ``"float32"``."""
        return "bfloat16" if (bf16_available(self.device) if self.bf16 is None else self.bf16) else "float32"

    def decisive(self) -> dict[str, Any]:
        """Return what decides the outcome by name, as JSON values, settings of the preset among them.

        Left out are workers, device, checkpoints, progress bars and the report, which a run may be resumed with others
        of. The number of processes is in it: each has random numbers of its own in the checkpoints.
        """
        without = ("workers", "save_steps", "progress", "device", "bf16", "settings", "report")
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in without}
        values |= {name: value for name, value in sorted(self.settings.items()) if value is not None}
        told = {name: described(value) for name, value in values.items()}
        return {**told, "dtype": self.dtype, "processes": world()}


def described(value: Any) -> Any:
    """Describe a value as a JSON value that is the same in another process: no address in memory is in it."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)) and value and all(map(is_place, value)):
        return [os.fspath(each) for each in value]
    if is_dataclass(value) or isinstance(value, DocumentReader):
        return repr(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    size = f" of {len(value):,}" if isinstance(value, Sized) else ""
    return f"{named.__module__}.{named.__qualname__}{size}"


@dataclass(frozen=True)
class RunFolder:
    """The work folder of a run, named ``OUTPUT.run``, which one process has at a time.

    Attributes:
        output: Where the finished model goes, by one rename.
        path: The work folder: settings, documents, a converted base, checkpoints.
        resume: Whether it is that of a run that was interrupted.
        lock: Held until the run ends; None in a process that only takes part.
    """

    output: Path
    path: Path
    resume: bool = False
    lock: FileLock | None = None

    @classmethod
    def at(cls, output: Path, *, resume: bool) -> RunFolder:
        """Name the work folder of a run that another process has opened."""
        return cls(output, output.with_name(f"{output.name}{RUN}"), resume)

    @classmethod
    def open(cls, output: Path, settings: dict[str, Any], *, resume: bool, overwrite: bool) -> RunFolder:
        """Make the work folder, or find the one of an interrupted run."""
        folder = cls.at(output, resume=resume)
        if resume:
            folder._check(settings)
            return replace(folder, lock=hold(folder.path))
        check_free(output, overwrite)
        check_free(folder.trained, overwrite)
        if folder.path.exists() and not is_unused(folder.path):
            if not (folder.path / SETTINGS_FILE).exists() or is_model(folder.path):
                raise ConfigurationError(
                    f"{folder.path}, where this run would keep what it needs, is something else: choose another output."
                )
            hold(folder.path).release()
            if not overwrite:
                raise ConfigurationError(
                    f"{folder.path} holds an interrupted run: go on with it (resume=True) or start anew "
                    "(overwrite=True)."
                )
            if folder.before.exists():
                shutil.rmtree(folder.path)  # it never began: what it was to replace is still there
            else:
                os.replace(folder.path, folder.before)
        lock = hold(folder.path)
        write_json(folder.path / SETTINGS_FILE, settings)
        return replace(folder, lock=lock)

    def _check(self, settings: dict[str, Any]) -> None:
        if not (self.path / SETTINGS_FILE).exists():
            sweep(self.output)
            done = f" {self.output} is finished." if self.output.exists() else ""
            raise ResumeError(f"There is no interrupted run at {self.path}.{done}")
        saved = read_json(self.path / SETTINGS_FILE)
        different = changes(saved, settings)
        if list(different) == ["dtype"]:
            raise ResumeError(
                f"The interrupted run computes in {saved['dtype']}, and this machine by itself in {settings['dtype']}: "
                f"the numbers would be others from here on. Go on with bf16={saved['dtype'] == 'bfloat16'}."
            )
        if different:
            raise ResumeError(f"The interrupted run has other settings ({'; '.join(different.values())}).")

    @property
    def trained(self) -> Path:
        """What was trained, where the finished model is the base."""
        return trained_path(self.output)

    @property
    def corpus(self) -> Path:
        """Folder of the segmented documents."""
        return self.path / "corpus"

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

    @property
    def before(self) -> Path:
        """Where an interrupted run waits until the run that replaces it has begun."""
        return self.path.with_name(f".{self.path.name}.before")

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Remove the work folder of a run that fails before its first step, and put back what it was to replace.

        Once it has begun, the interrupted run that it replaces is removed.
        """
        try:
            yield
        except SimlteError:
            if self.lock is not None and not self.resume:
                self.close()
                if self.before.exists():
                    os.replace(self.before, self.path)
            raise
        if self.lock is not None:
            shutil.rmtree(self.before, ignore_errors=True)

    def close(self) -> None:
        """Remove the work folder: the model is in place."""
        self.release()
        discard(self.path, self.output)

    def release(self) -> None:
        """Let other processes have the folder."""
        if self.lock is not None:
            self.lock.release()
