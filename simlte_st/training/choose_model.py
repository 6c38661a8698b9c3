"""Fourth stage of a run: finish the trained model and compare it with its base."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sentence_transformers import SentenceTransformer

from simlte_st.distributed import on_main
from simlte_st.errors import DataError
from simlte_st.evaluation.comparison import HALF_LENGTH, compare_halves, compare_probes
from simlte_st.evaluation.splits import split_by_label
from simlte_st.evaluation.verdict import give_verdict, is_longer
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.limits import Truncation
from simlte_st.models.lsa import DIMENSION, end_with_lsa
from simlte_st.modules import TokenTable
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.training.callbacks import check_weights
from simlte_st.training.fit import TrainingStats
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import TrainingSetup
from simlte_st.training.run import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelChoice:
    """The models of a run, the verdict, and the model to keep.

    Attributes:
        trained: The trained model, ready to be saved.
        base: The base, finished in the same way; None if no documents were held out.
        gain: The verdict on the held-out documents and its numbers, or None.
        winner: The model to keep.
        lsa: Dimensions of the latent semantic analysis in the trained model, or None.
        truncation: How many tokens of the documents it truncates.
    """

    trained: SentenceTransformer
    base: SentenceTransformer | None
    gain: dict[str, Any] | None
    winner: Literal["trained", "base"]
    lsa: int | None
    truncation: Truncation


@on_main
def choose_model(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, stats: TrainingStats, *, measure: bool = True,
    probe: bool = False, lsa: int | None = None, keep: Literal["verdict", "trained"] = "verdict",
) -> ModelChoice:  # fmt: skip
    """Finish the trained model and its base, compare them on held-out documents, and choose one.

    If the run uses them, both models get a latent semantic analysis and read documents in chunks. The verdict compares
    them with the analysis, beside which training gains less, but without chunks, because it was calibrated without.

    Args:
        run: The run.
        setup: The trained model and its base.
        corpus: The documents.
        stats: Steps and log of the training.
        measure: Whether documents are held out for a comparison.
        probe: Whether a probe on their labels counts towards the verdict.
        lsa: Dimensions of a latent semantic analysis to append or fold in; 0 for none.
        keep: Whether the verdict chooses the model, or the trained model is always kept.
    """
    model, tokens = setup.model, corpus.token_views
    if not setup.static:
        model.max_seq_length = setup.reads  # views may have been shorter
    check_weights(model, "at the end")
    models = {"trained": model}
    if measure:
        models["base"] = setup.base.model.eval()
    final = dict(models)
    if corpus.in_chunks:
        final = {name: to_chunk_mean(candidate, WHOLE_DOCUMENTS) for name, candidate in models.items()}
    if lsa is None and setup.static and corpus.stream is None:
        lsa = DIMENSION
    if lsa:
        texts = (" ".join(row["sentences"]) for row in corpus.sentences)
        counts = None if tokens is None else tokens.counts(model.tokenizer)
        # The final models come first: the analysis counts the tokens that the first model reads.
        all_models = [*final.values(), *(models.values() if corpus.in_chunks else ())]
        lsa = end_with_lsa(all_models, texts if counts is None else counts, lsa, run.seed, run.progress)
    gain = measure_gain(run, setup, corpus, stats, models, probe=probe) if measure else None
    helped = gain is not None and gain["verdict"] == "helped"
    trained = final["trained"]
    table = trained[-1]  # an encoder may already have ended with an analysis
    truncation = Truncation.of(trained)
    for lengths in corpus.lengths():
        truncation.add(lengths)
    return ModelChoice(
        trained=trained, base=final.get("base"), gain=gain,
        winner="base" if measure and keep == "verdict" and not helped else "trained",
        lsa=table.dimension if isinstance(table, TokenTable) else lsa or None, truncation=truncation,
    )  # fmt: skip


def measure_gain(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, stats: TrainingStats,
    models: Mapping[str, SentenceTransformer], *, probe: bool,
) -> dict[str, Any] | None:  # fmt: skip
    """Return the verdict on the held-out documents and its numbers; None if there are too few."""
    models = {name: models[name] for name in ("base", "trained")}
    scores = None
    try:
        halves = compare_halves(
            models, corpus.held_out, half_length=None if setup.static else HALF_LENGTH,
            segmenter=corpus.segmenter if setup.static else setup.views.segmenter,  # avoids training Punkt again
            seed=run.seed, progress=run.progress,
        )  # fmt: skip
        if probe:
            train, test = split_by_label(corpus.labelled, 0.5, run.seed)
            probes = compare_probes(models, train, test, draws=20, seed=run.seed, progress=run.progress)
            scores = probes["base"].few_shot, probes["trained"].few_shot
        verdict = give_verdict(halves["base"], halves["trained"], scores, run.seed)
    except DataError as error:
        logger.warning("The gain cannot be measured: %s", error)
        return None
    metrics = {name: comparison.metrics() for name, comparison in halves.items()}
    longer = not setup.static and is_longer(stats.steps, setup.preset.max_view_length)
    return {**verdict.to_dict(), "summary": verdict.summary(longer), "table": verdict.table(), "halves": metrics}
