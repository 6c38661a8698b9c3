"""Fourth stage of a run: the trained model made ready, and whether it is better than its base."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from simlte_st.chunk_mean.convert import read_in_chunks
from simlte_st.data.corpus import document_lengths
from simlte_st.distributed import on_main
from simlte_st.errors import DataError
from simlte_st.evaluation.comparison import HALF_LENGTH, compare_halves, compare_probes
from simlte_st.evaluation.few_shot import FewShotResult
from simlte_st.evaluation.splits import split_by_label
from simlte_st.evaluation.verdict import give_verdict, is_longer
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import end_with_lsa
from simlte_st.models.truncation import Truncation
from simlte_st.modules import LatentSemanticAnalysis
from simlte_st.training.callbacks import check_weights
from simlte_st.training.load_corpus import learned_segmenter, probe_documents
from simlte_st.training.run import TrainingRun
from simlte_st.training.static import STATIC_LSA

logger = logging.getLogger(__name__)


@on_main
def evaluate(run: TrainingRun) -> TrainingRun:
    """Finish the trained model, and the base likewise, compare them on held-out documents, and choose one.

    Both end with the latent semantic analysis and read whole documents, where the run asks for it. The verdict compares
    them as they read without that, as it was calibrated.
    """
    model, config = run.model, run.config
    if not run.static:
        model.max_seq_length = run.reads  # views may have been shorter than what the model reads
    models = [model, load_untrained(run)] if config.held_out > 0 else [model]
    rows = run.dataset.with_format(None).select_columns("sentences")
    check_weights(model, "at the end")
    run.finished = models
    if run.whole is not None:
        run.finished = [read_in_chunks(each, run.whole.max_length) for each in models]
    if (dimension := lsa_dimension(run)) is not None:
        texts: Any = (" ".join(row["sentences"]) for row in rows)
        if run.token_views is not None:
            texts = run.token_views.counts(model.tokenizer)
        # The finished models first: the analysis counts as much of a document as they read.
        ending = models if run.whole is None else [*run.finished, *models]
        end_with_lsa(ending, texts, dimension, config.seed, config.progress)
    if config.held_out > 0:
        run.gain = measure_gain(run, {"base": models[1], "trained": model})
        if config.keep != "trained" and (run.gain is None or run.gain["verdict"] != "helped"):
            run.kept = "base"
    last = run.finished[0][-1]
    run.lsa = last.dimension if isinstance(last, LatentSemanticAnalysis) else None
    run.truncation = Truncation.of(run.finished[0])
    for lengths in document_lengths(run.dataset) if run.token_views is None else [run.token_views.lengths]:
        run.truncation.add(lengths)
    return run


def lsa_dimension(run: TrainingRun) -> int | None:
    """Return the dimensions of the latent semantic analysis that the finished models are to end with."""
    if run.config.lsa is None:
        return STATIC_LSA if run.static and run.stream is None else None
    return run.config.lsa or None


def load_untrained(run: TrainingRun) -> SentenceTransformer:
    """Return the base with its own pooling, reading as much as the model; a converted one with the base's weights."""
    if not run.folder.base.exists():
        return run.base.model.eval()
    return load_model(run.folder.base, dtype=torch.float32, device=str(run.model.device)).model.eval()


def measure_gain(run: TrainingRun, models: Mapping[str, SentenceTransformer]) -> dict[str, Any] | None:
    """Return the verdict on the held-out documents and its numbers; None if they do not suffice."""
    config = run.config
    try:
        halves = compare_halves(
            models,
            run.held_out,
            half_length=None if run.static else HALF_LENGTH,
            segmenter=learned_segmenter(run) if run.static else config.segmenter,  # learning takes seconds
            seed=config.seed,
            progress=config.progress,
        )
        probes = None if config.probe is None else probe_held_out(run, models)
        verdict = give_verdict(halves["base"], halves["trained"], probes, config.seed)
    except DataError as error:
        logger.warning("The gain cannot be measured: %s", error)
        return None
    numbers = {name: result.metrics() for name, result in halves.items()}
    longer = not run.static and is_longer(run.steps, run.preset.max_view_length)
    return {**verdict.to_dict(), "summary": verdict.summary(longer), "table": verdict.table(), "halves": numbers}


def probe_held_out(run: TrainingRun, models: Mapping[str, SentenceTransformer]) -> tuple[FewShotResult, FewShotResult]:
    """Return probes of base and trained model, fitted on half of the labelled held-out documents."""
    seed = run.config.seed
    train, test = split_by_label(probe_documents(run.held_out), 0.5, seed)
    scores = compare_probes(models, train, test, draws=20, seed=seed, progress=run.config.progress)
    return scores["base"].few_shot, scores["trained"].few_shot
