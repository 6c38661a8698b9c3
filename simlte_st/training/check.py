"""What can be known of a run from its arguments and the files there, before torch is imported, which takes seconds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from simlte_st.data.config import ReadConfig
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.shards import Shards, check_places, open_shards
from simlte_st.distributed import launched
from simlte_st.files import check_apart, check_new, check_place
from simlte_st.models.distillation import check_distillation
from simlte_st.models.names import check_model, has_layers
from simlte_st.training.config import TrainConfig, wants_static
from simlte_st.training.folder import RunFolder, report_path


def check_run(source: Any, output: str | os.PathLike[str], config: TrainConfig) -> None:
    """Check documents, output and base of a run; of several processes the main one does that when all are connected."""
    if launched()[1] > 1:
        return
    if config.stream:  # the library datasets opens it
        check_places(source)
    else:
        open_documents(source, config)
    check_output(source, Path(output), config)
    RunFolder(Path(output), resume=config.resume).check(overwrite=config.overwrite)
    if config.base is not None:
        check_model(config.base)
        if wants_static(config) and has_layers(config.base):
            check_distillation()


def open_documents(source: Any, config: TrainConfig) -> DocumentReader | Shards:
    """Return the documents of a run, of which nothing has been read yet."""
    if config.stream:
        return open_shards(source, config.text_column, config.id_column, config.probe)
    return read_documents(source, label_column=config.probe, **config.values(ReadConfig))


def check_output(source: Any, output: Path, config: TrainConfig) -> None:
    """Check that the model and its report can be written, and would not lie among the documents."""
    check_apart(source, output)
    check_place(output)
    if config.report:
        report = report_path(output)
        check_apart(source, report)
        check_new(report, report.is_file() and (config.overwrite or config.resume))
