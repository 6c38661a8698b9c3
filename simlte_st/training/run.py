"""One run of :func:`simlte_st.train`: what it was told, and what each of its stages adds."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simlte_st.data.documents import DocumentReader
from simlte_st.data.shards import Shards
from simlte_st.data.sources import is_place
from simlte_st.distributed import choose_device, connect, is_main, main_first, on_main, together, world
from simlte_st.errors import ConfigurationError, SimlteError
from simlte_st.files import SETTINGS_FILE, check_apart, check_place, read_json
from simlte_st.models.device import bf16_available, check_device
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training import check
from simlte_st.training.choose_base import choose_base
from simlte_st.training.config import Preset, TrainConfig
from simlte_st.training.folder import RunFolder, report_path
from simlte_st.training.result import TrainingResult, WholeDocuments

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

    from simlte_st.data.corpus import CorpusReport, Coverage
    from simlte_st.data.document import Document
    from simlte_st.data.document_stream import StreamedViews
    from simlte_st.data.transform import DocSplitTransform
    from simlte_st.models.loading import LoadedModel
    from simlte_st.models.truncation import Truncation
    from simlte_st.training.token_views import TokenViews

logger = logging.getLogger(__name__)


class TrainingRun:
    """A run, which its stages are given in turn: each fills in the attributes listed under its name."""

    # load_model
    base: LoadedModel
    """The base as it was loaded, but for its length where the preset asks for more; or distilled, of a static model."""
    preset: Preset
    """The settings of the preset, with those that replace them."""
    model: SentenceTransformer
    """The model to train."""
    static: bool
    """Whether it is a static model."""
    loss: torch.nn.Module
    """Its loss."""
    views: DocSplitTransform
    """What draws its views."""
    reads: int | None
    """Tokens that the trained model reads, None for no bound. Views may be shorter; in chunks it may read more."""

    # load_corpus
    dataset: Dataset
    """The documents to train on, or the first ones of a stream; rows read as ``{"anchor": str, "positive": str}``."""
    held_out: list[Document]
    """The documents kept out of training."""
    read: dict[str, Any]
    """The reader's report as JSON values."""
    corpus: CorpusReport
    """What became of the documents to train on."""
    coverage: Coverage
    """What one pass sees of them."""
    stream: StreamedViews | None = None
    """The views of all documents of a stream; None if ``dataset`` has them."""
    token_views: TokenViews | None = None
    """The views of a static model, whose documents were tokenized before; None for a stream."""
    whole: WholeDocuments | None = None
    """How the finished model reads documents longer than the base reads; None if it reads as much as the base."""

    # fit
    steps: int
    """Optimizer steps done, those before a resumption included."""
    seconds: float
    """Seconds of training, in this process."""
    documents_per_second: float
    log: list[dict[str, Any]]
    """The Trainer's log lines."""

    # evaluate
    finished: list[SentenceTransformer]
    """The trained model as it is saved and, if documents were held out, the base made ready likewise."""
    gain: dict[str, Any] | None = None
    """The verdict on held-out documents."""
    kept: Literal["trained", "base"] = "trained"
    """Which of them the finished model is."""
    lsa: int | None
    """Dimensions of the latent semantic analysis that the trained model ends with."""
    truncation: Truncation
    """How much of the documents it reads."""

    # save
    passes: float | None = None
    """How many times each document of a stream was taken, on average."""
    result: TrainingResult | None = None
    """What all processes get of the run."""

    def __init__(self, source: Any, output: str | os.PathLike[str], config: TrainConfig) -> None:
        device = choose_device(config.device)
        check_device(device)
        self.source, self.output = source, Path(output)
        self.base_name = os.fspath(PACKAGED_BASE if config.base is None else config.base)  # till the folder is open
        self.config = replace(config, device=device, progress=config.progress and is_main())
        bf16 = bf16_available(device) if config.bf16 is None else config.bf16
        self.dtype = "bfloat16" if bf16 else "float32"
        if not self.output.name:  # the working folder: raise before its siblings are named after it
            check_apart(source, self.output)
            check_place(self.output)
        self.folder = RunFolder(self.output, resume=config.resume)
        self.report = report_path(self.output) if config.report else None
        self.documents: DocumentReader | Shards | None = None  # None in a process that reads what the main one wrote

    @contextmanager
    def open(self) -> Iterator[None]:
        """Open documents and work folder for the stages in the block; a run that fails before training leaves none."""
        connect(self.config.device)
        with together():
            (main_first if self.config.stream else on_main)(open_documents)(self)
            on_main(open_folder)(self)
            if not self.folder.path.exists():
                raise ConfigurationError(
                    f"Not every process sees {self.folder.path}: use an output in a folder that all of them share."
                )
            self.base_name = read_json(self.folder.path / SETTINGS_FILE)["base"]
            try:
                yield
            except SimlteError:
                self.folder.abandon()
                raise
            finally:
                self.folder.release()

    def decisive(self) -> dict[str, Any]:
        """Return what decides the outcome by name, as JSON values; a run is resumed with the same.

        The number of processes is among them: each has random numbers of its own in the checkpoints. That of threads
        decides in which order sums are added, and so their last digits; it may be another, which is said.
        """
        from torch import get_num_threads

        values = {**self.config.decisive(), "source": self.source, "base": self.base_name, "dtype": self.dtype}
        return {
            **{name: described(value) for name, value in values.items()},
            "processes": world(),
            "threads": get_num_threads(),
        }


def open_documents(run: TrainingRun) -> TrainingRun:
    """Open the source: a stream in every process, a corpus in the main one."""
    run.documents = check.open_documents(run.source, run.config)
    return run


def open_folder(run: TrainingRun) -> TrainingRun:
    """Open the work folder, unless the output would lie among the documents."""
    check.check_output(run.source, run.output, run.config)
    run.base_name = choose_base(run.config, run.folder, run.documents)
    run.folder.open(run.decisive(), overwrite=run.config.overwrite)
    return run


def described(value: Any) -> Any:
    """Return a JSON value for a setting that is the same in another process, so without addresses in memory."""
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
