"""The main job: from a base model and documents without labels to a trained model, and whether it is better."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Literal

from transformers import set_seed

from simlte_st.data.documents import read_documents
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.shards import open_shards
from simlte_st.errors import ConfigurationError
from simlte_st.files import check_apart, check_new, check_place
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.processes import choose_device, is_main, main_first, on_main, result_of_main, start, together
from simlte_st.training.finish import finish
from simlte_st.training.fit import fit, set_up
from simlte_st.training.model import make_trainee
from simlte_st.training.prepare import first_documents, prepare
from simlte_st.training.presets import Preset
from simlte_st.training.result import TrainingResult, report_path
from simlte_st.training.run import RunFolder, RunOptions, described
from simlte_st.training.whole import WholeDocuments

logger = logging.getLogger(__name__)


def train(
    source: Any,
    output: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str] | None = None,
    preset: str | Preset = "auto",
    segmenter: str | Segmenter = "punkt",
    text_column: str | None = None,
    id_column: str | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    stream: bool = False,
    held_out: float = 0.1,
    max_steps: int | None = None,
    lsa: int | None = None,
    keep: Literal["verdict", "trained"] = "verdict",
    probe: str | None = None,
    report: bool = False,
    seed: int = 0,
    bf16: bool | None = None,
    device: str | None = None,
    workers: int = 0,
    save_steps: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> TrainingResult:
    """Train a DocSplit model on documents without labels.

    Where the base would cut more than a tenth of the tokens, the finished model reads documents whole, through the
    trained encoder in chunks: see ``max_length`` of :class:`~simlte_st.training.Preset`.

    Under ``torchrun`` or ``accelerate launch`` all processes call this alike, train one model together and get the same
    result; see ``docs/many_devices.md``.

    Args:
        source: The documents; anything :func:`~simlte_st.data.read_documents` takes. Of documents with the same
            text, to the letter, only the first is used.
        output: Folder of the finished model. Until then the run lives in ``OUTPUT.run`` beside it.
        base: The model to begin with: a folder, or a name as :func:`~simlte_st.models.base.find_model` has it; None
            for the packaged all-MiniLM-L6-v2. A stock Longformer is trained as this package's, with the same weights.
        preset: A name from :data:`~simlte_st.training.PRESETS`, a :class:`~simlte_st.training.Preset`, or ``"auto"``:
            ``docsplit-tuned`` for a base that is a sentence encoder already, else the papers' for its architecture.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        text_column: Column of the text; None looks for it, as :func:`~simlte_st.data.read_documents` does.
        id_column: Column of the ids, likewise.
        encoding: Encoding of text files.
        limit: Use no more than so many documents.
        stream: The documents are more than the disk holds: parquet files in a folder, or at any address that
            ``fsspec`` knows (``"s3://bucket/*.parquet"``, ``"hf://datasets/OWNER/NAME/*.parquet"``), ``"hub:NAME"``,
            or a ``datasets.IterableDataset`` that tells its features. They are read while training goes on, shuffled
            in a buffer; ``max_steps`` is needed where the preset has no steps. Where they end they come again, in
            other views. Held out are some of the first 1,000, and what is said of lengths is of those. Copies are
            left out where they stand in one buffer.
        held_out: Share of the documents (at most 500; of few documents up to three times the share, until there are
            100) kept out of training, to measure the gain on; 0 for none, and no verdict. Of a stream: of those that
            the steps take.
        max_steps: Optimizer steps, instead of what the preset has.
        lsa: Append to the finished model a latent semantic analysis of the documents it was trained on, of so many
            dimensions (:class:`~simlte_st.modules.LatentSemanticAnalysis`; 256 is good), whatever the verdict on
            training. Without training: :func:`~simlte_st.models.lsa.append_lsa`.
        keep: Where the verdict is not that training helped, the finished model is the base, and what was trained is in
            ``OUTPUT.trained``; ``"trained"`` makes that the model in any case.
        probe: Column of classes, folders or tags: a probe with a few labelled documents a class, all of them held out,
            has a say in the verdict. Training does not see the column.
        report: Write a page of the run beside the model, ``OUTPUT.report.html``: loss, verdict, and the held-out
            documents whose nearest documents changed most, with their texts. Needs the extra ``explore``.
        seed: Decides everything that is drawn.
        bf16: Compute in bfloat16; None where the hardware has it (some CPUs do), so that numbers differ between
            machines. The result says which it was.
        device: Where the model computes, such as ``"cpu"`` or ``"cuda:1"``; None for a GPU, if there is one; for one
            each, of several processes. A run may be resumed on another.
        workers: Processes that make batches; 0 makes them in the training process.
        save_steps: Steps between checkpoints; None for about ten a run.
        resume: Go on with the interrupted run at ``OUTPUT.run``. All other settings must be the same.
        overwrite: Replace the model at ``output``; what is no model is never replaced.
        progress: Show progress bars.
        **settings: Settings of the preset to replace, e.g. ``learning_rate=2e-5``; None keeps the preset's.

    Returns:
        What was done. The model folder is complete; ``result.load()`` loads it.

    Raises:
        DataError: The source cannot be read, or has too few usable documents.
        ConfigurationError: A setting is out of its range, there is no such device, there is something at ``output``
            already, the documents are in there, or another process is at work on it.
        ResumeError: There is nothing to resume, or it was started with other settings.
        ModelError: The base cannot be loaded or cannot be trained this way.
        TrainingInterrupted: Ctrl-C or SIGTERM. The step was finished and a checkpoint written, to go on from with
            ``resume=True``.
        MissingExtraError: ``report``, and the extra ``explore`` is not installed.
        ProcessLostError: The run has several processes, and another one ended.
    """
    if base is None:
        base = PACKAGED_BASE
        logger.info("Base: %s, because none was given.", base)
    options = RunOptions(
        base=os.fspath(base),
        preset=preset,
        settings=settings,
        segmenter=segmenter,
        held_out=held_out,
        max_steps=max_steps,
        lsa=lsa,
        keep=keep,
        probe=probe,
        seed=seed,
        bf16=bf16,
        workers=workers,
        save_steps=save_steps,
        progress=progress and is_main(),
        device=choose_device(device),
        report=report,
        stream=stream,
    )
    reading = {"text_column": text_column, "id_column": id_column, "encoding": encoding, "limit": limit}
    decisive = {"source": described(source), **reading, **options.decisive()}
    if stream and limit is not None:
        raise ConfigurationError("limit= and stream=: how many documents are taken from a stream, max_steps= says.")
    start(options.device)
    with together():
        # Of several processes one reads and writes, and the others take from the run's folder what it has made.
        # A stream is read by all, and then the reader is of its first documents.
        shards = main_first(lambda: open_shards(source, text_column, id_column, probe)) if stream else None
        reader = on_main(
            lambda: (
                read_documents(source, label_column=probe, **reading)  # type: ignore[arg-type]
                if shards is None
                else first_documents(shards, options)
            )
        )
        folder = on_main(
            lambda: open_folder(source, Path(output), decisive, resume=resume, overwrite=overwrite, report=report)
        )
        folder = folder or RunFolder.at(Path(output), resume=resume)
        set_seed(seed)
        try:
            with folder.beginning():
                # The model first: how documents are cut into views depends on its tokenizer and on how much it reads.
                trainee = main_first(lambda: make_trainee(folder, options))
                prepared = main_first(lambda: prepare(reader, trainee, folder, options, shards))
                whole = on_main(lambda: WholeDocuments.of(trainee, prepared))
                fitting = set_up(trainee, prepared, folder, options)
            fitted = fit(fitting, folder)
            return result_of_main(lambda: finish(trainee, prepared, whole, fitted, folder, options))
        finally:
            folder.release()


def open_folder(
    source: Any, output: Path, decisive: dict[str, Any], *, resume: bool, overwrite: bool, report: bool
) -> RunFolder:
    """Open the work folder of a run whose documents are not where its output goes, nor its report."""
    check_apart(source, output)
    check_place(output)
    if report:
        page = report_path(output)
        check_apart(source, page, is_document=True)
        check_new(page, page.is_file() and (overwrite or resume))
    return RunFolder.open(output, decisive, resume=resume, overwrite=overwrite)
