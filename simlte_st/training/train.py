"""The main job: a base model and a pile of documents in, a better model and an honest account out."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from transformers import set_seed

from simlte_st.compat import enable_checkpointing, readable_tokens, view_budget
from simlte_st.data.corpus import CorpusReport
from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.segmenters import Segmenter, segmenter_identity
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.data.token_corpus import TokenCorpus, measure_token_coverage
from simlte_st.errors import ConfigurationError, ResumeError, SimlteError
from simlte_st.evaluation.comparison import compare_split_half
from simlte_st.extras import require
from simlte_st.files import read_json, write_json
from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
from simlte_st.losses.mlm_head import MLMHead, encoder_of
from simlte_st.losses.mlm_term import MLMTerm
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.training.backbone import make_backbone, preset_for, warn_of_pooling
from simlte_st.training.batching.token_rows import TokenRows
from simlte_st.training.dropout import set_attention_dropout, set_dropout
from simlte_st.training.gains import gain_record
from simlte_st.training.hardware import compile_encoder
from simlte_st.training.held_out import HeldOut
from simlte_st.training.interpolation import check_interpolable, choose_interpolation
from simlte_st.training.interpolation import interpolate as interpolate_weights
from simlte_st.training.lora import LEARNING_RATE_FACTOR, LoraStateCallback, add_lora, merge_lora
from simlte_st.training.presets import Preset, get_preset
from simlte_st.training.result import TrainingResult, save_result
from simlte_st.training.run_folder import RunFolder
from simlte_st.training.trainer import RunOptions, make_trainer, restore_finished

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
    held_out: float = 0.1,
    max_steps: int | None = None,
    lora: int | None = None,
    interpolate: float | Literal["auto"] | None = None,
    seed: int = 0,
    bf16: bool | None = None,
    compile: bool = False,
    workers: int = 0,
    save_steps: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> TrainingResult:
    """Train a DocSplit model on documents without labels.

    Args:
        source: The documents; anything :func:`~simlte_st.data.read_documents` takes.
        output: Folder of the finished model. Until then the run lives in ``OUTPUT.run`` beside it.
        base: The model to begin with: a folder, or a name as :func:`~simlte_st.models.names.find_model` has it; None
            for the packaged all-MiniLM-L6-v2. A stock Longformer is trained as this package's, with the same weights.
        preset: A name from :data:`~simlte_st.training.PRESETS`, a :class:`~simlte_st.training.Preset`, or ``"auto"``:
            ``docsplit-tuned`` for a base that is a sentence encoder already, else the papers' for its architecture.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        text_column: Column of the text, where it is not found by itself.
        id_column: Column of the ids, likewise.
        encoding: Encoding of text files.
        limit: Use no more than so many documents.
        held_out: Share of the documents (at most 500) kept out of training, to measure the gain on; 0 for none.
        max_steps: Stop after so many steps, instead of after the preset's epochs.
        lora: Train low-rank adapters of this rank only, and add them to the weights at the end. The learning rate of a
            named preset is multiplied by ten, unless one is given.
        interpolate: Go back to the base in part: this much of the trained weights and the rest of the base's, 0 to 1;
            ``"auto"`` chooses without labels, on half of the held-out documents.
        seed: Decides everything that is drawn.
        bf16: Compute in bfloat16; None where the hardware has it.
        compile: Compile the encoder, see :func:`~simlte_st.training.hardware.compile_encoder`. Worth it for long runs
            on GPUs; the results differ from those without it by rounding.
        workers: Processes that make batches; 0 makes them in the training process.
        save_steps: Steps between checkpoints; None for about ten a run.
        resume: Go on with the interrupted run at ``OUTPUT.run``. All other settings must be the same.
        overwrite: Replace what is at ``output``.
        progress: Show progress bars.
        **settings: Settings of the preset to replace, e.g. ``learning_rate=2e-5``; None keeps the preset's.

    Returns:
        What was done. The model folder is complete, and loads with stock sentence-transformers.

    Raises:
        DataError: The source cannot be read, or has too few usable documents.
        ConfigurationError: A setting is out of its range, or there is something at ``output`` already.
        ResumeError: There is nothing to resume, or it was started with other settings.
        ModelError: The base cannot be loaded or cannot be trained this way.
    """
    if base is None:
        base = PACKAGED_BASE
        logger.info("Base: %s, because none was given.", base)
    chosen = preset if isinstance(preset, Preset) else None if preset == "auto" else get_preset(preset)
    (chosen or Preset()).changed(**settings)  # what is wrong with them shows before anything is read or written
    reader = read_documents(source, text_column=text_column, id_column=id_column, encoding=encoding, limit=limit)
    holder = HeldOut(held_out, seed=seed)
    if max_steps is not None and max_steps < 1:
        raise ConfigurationError(f"max_steps={max_steps}: at least one step is needed.")
    if interpolate is not None and interpolate != "auto" and not 0 <= interpolate <= 1:
        raise ConfigurationError(f"interpolate={interpolate}: from 0, the base, to 1, the trained model, or 'auto'.")
    if interpolate == "auto" and held_out == 0:
        raise ConfigurationError("interpolate='auto' chooses on held-out documents: held_out must not be 0.")
    if lora is not None:
        if lora < 1:
            raise ConfigurationError(f"lora={lora}: the rank of the adapters is at least 1.")
        require("peft", "lora", "LoRA")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigurationError(
            "simlte_st.train() runs in one process. For several, use DocSplitTransform with SentenceTransformerTrainer "
            "(examples/trainer_transform.py) under torchrun, and gather_across_devices=True in the loss."
        )
    folder = RunFolder.open(
        Path(output),
        {
            "source": source if isinstance(source, str) else repr(source)[:200],
            "base": str(base),
            "preset": repr(preset) if isinstance(preset, Preset) else preset,
            "settings": {name: _plain(value) for name, value in sorted(settings.items()) if value is not None},
            "segmenter": segmenter if isinstance(segmenter, str) else repr(segmenter),
            "text_column": text_column,
            "id_column": id_column,
            "encoding": encoding,
            "limit": limit,
            "held_out": held_out,
            "max_steps": max_steps,
            "lora": lora,
            "interpolate": interpolate,
            "seed": seed,
            "bf16": bf16,
            "compile": compile,
        },
        resume=resume,
        overwrite=overwrite,
    )
    set_seed(seed)
    with _leaving_nothing(folder, resume):
        loaded = load_model(os.fspath(base), dtype=torch.float32)
        final = (chosen or preset_for(loaded)).changed(**settings)
        if lora is not None and not isinstance(preset, Preset) and settings.get("learning_rate") is None:
            final = final.changed(learning_rate=LEARNING_RATE_FACTOR * final.learning_rate)
        logger.info("Preset: %r", final)
        backbone = make_backbone(loaded, final, folder, seed)
        model = backbone.model(final.max_seq_length)
        reads = loaded.model.max_seq_length if backbone.name == loaded.name else readable_tokens(model)
        start = None if interpolate is None else backbone.model()
        if start is not None:
            check_interpolable(start, model)
        prepared = _prepare(reader, folder, holder, final, model, segmenter, progress)
        if interpolate == "auto" and len(prepared.held_out) < 4:
            raise ConfigurationError(
                f"interpolate='auto': {len(prepared.held_out)} documents were held out; 4 are needed, to choose on 2 "
                "and measure the gain on 2. Give a number instead, or a larger held_out."
            )
        if lora is not None:
            add_lora(model, lora, seed=seed)
    warn_of_pooling(loaded, final, max_steps or final.epochs * len(prepared.rows) / final.batch_size)
    drawer = PairDrawer(final.view, seed, view_budget(model))
    coverage = measure_token_coverage(prepared.corpus, drawer, prepared.rows)
    logger.info("%s", coverage.summary())

    loss = _make_loss(model, final, backbone.head, seed)
    model.train()
    if final.dropout is not None:
        set_dropout(model, final.dropout)
    if final.attention_dropout is not None:
        set_attention_dropout(model, final.attention_dropout)
    if final.gradient_checkpointing:
        enable_checkpointing(encoder_of(model))
    if compile:
        compile_encoder(model)
    options = RunOptions(seed, bf16, workers, save_steps, max_steps, progress)
    rows = TokenRows(prepared.corpus, prepared.rows)
    adapters = None if lora is None else LoraStateCallback(model)
    with _leaving_nothing(folder, resume):
        trainer, interrupt = make_trainer(model, loss, rows, drawer, final, folder, options, adapters)
    checkpoint = folder.checkpoint if resume else None
    if resume:
        logger.info("Resuming from %s.", checkpoint or "the beginning: no checkpoint was complete")
    began = time.perf_counter()
    state = restore_finished(model, checkpoint, adapters)
    if state is None:
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            interrupt.restore()
        state = trainer.state
    seconds = time.perf_counter() - began
    first_step = int(checkpoint.name.rsplit("-", 1)[1]) if checkpoint else 0
    result = TrainingResult(
        output=Path(output),
        interrupted=interrupt.interrupted and state.global_step < state.max_steps,
        steps=state.global_step,
        seconds=seconds,
        documents_per_second=(state.global_step - first_step) * trainer.args.train_batch_size / seconds,
        preset=final,
        read=prepared.read,
        corpus=prepared.report,
        coverage=coverage,
        log=state.log_history,
    )
    if result.interrupted:
        return result

    if lora is not None:
        merge_lora(model)
    model.eval()
    model.max_seq_length = reads  # short views make training cheap; the model reads what it did
    measured = prepared.held_out
    if start is not None and interpolate == "auto":
        # The choice has seen its documents: the gain is measured on the others.
        choice = choose_interpolation(
            start, model, measured[::2], segmenter=segmenter, seed=seed, in_place=True, progress=progress
        )
        logger.info("%s", choice.summary())
        result.interpolation = choice.to_dict()
        measured = measured[1::2]
    elif start is not None and isinstance(interpolate, (int, float)):
        interpolate_weights(start, model, interpolate, in_place=True)
        result.interpolation = {"weight": interpolate, "curve": []}
    if len(measured) >= 2:
        loaded.model.eval()
        models = {"base": loaded.model, "trained": model}
        result.gain = gain_record(
            compare_split_half(models, measured, segmenter=segmenter, seed=seed, progress=progress)
        )
    save_result(model, result, loaded.name, seed)
    folder.close()
    return result


@contextmanager
def _leaving_nothing(folder: RunFolder, resume: bool) -> Iterator[None]:
    """Remove the folder of a run that could not begin: nothing is in it that is worth resuming."""
    try:
        yield
    except SimlteError:
        if not resume:
            folder.close()
        raise


def _make_loss(model: SentenceTransformer, preset: Preset, head: MLMHead | None, seed: int) -> MLMTerm:
    names = ("scale", "mlm_weight", "mlm_probability", "mlm_input", "mlm_every", "mlm_share")
    options: dict[str, Any] = {name: getattr(preset, name) for name in names}
    options["mlm_head"] = head or "auto"
    if preset.mini_batch_size is None and preset.mini_batch_tokens is None:
        return MultipleNegativesRankingMLMLoss(model, seed=seed, **options)
    return CachedMultipleNegativesRankingMLMLoss(
        model,
        seed=seed,
        mini_batch_size=preset.mini_batch_size or 32,
        mini_batch_num_tokens=preset.mini_batch_tokens,
        **options,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else repr(value)


@dataclass(frozen=True)
class _Prepared:
    corpus: TokenCorpus
    rows: NDArray[np.int64]
    report: CorpusReport
    read: dict[str, Any]
    held_out: list[Document]


def _prepare(
    reader: DocumentReader,
    folder: RunFolder,
    holder: HeldOut,
    preset: Preset,
    model: SentenceTransformer,
    segmenter: str | Segmenter,
    progress: bool,
) -> _Prepared:
    """Read, hold out, segment and tokenize; or find what the run that is resumed did."""
    account = folder.path / "documents.json"
    saved = read_json(account) if account.exists() else None
    if saved is None or not Path(saved["corpus"]).exists():  # caches may be deleted at any time
        # A callable that cannot tell what it does has no place in a cache that runs share.
        unknown = not isinstance(segmenter, str) and segmenter_identity(segmenter) is None
        own = folder.path / "tokens" if unknown else None
        corpus = tokenize_corpus(
            holder.note(reader), model.tokenizer, segmenter=segmenter, directory=own, progress=progress
        )
        if saved is not None and corpus.path != Path(saved["corpus"]):
            raise ResumeError(f"{folder.path} was begun with other documents, and their tokens are no longer there.")
        kept = [{"id": document.id, "text": document.text} for document in holder.documents]
        summary = reader.report.summary()
        saved = {"read": reader.report.to_dict(), "summary": summary, "held_out": kept, "corpus": str(corpus.path)}
        write_json(account, saved)
    logger.info("%s", saved["summary"])
    corpus = TokenCorpus(saved["corpus"])
    held_out = [Document(row["id"], row["text"]) for row in saved["held_out"]]
    rows, report = corpus.usable(preset.view, {document.id for document in held_out})
    if report.left_out:
        logger.warning("Left out of training: %s", report.left_out)
    return _Prepared(corpus, rows, report, saved["read"], held_out)
