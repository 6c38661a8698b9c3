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
from simlte_st.models.lsa import DIMENSION, end_with_lsa
from simlte_st.models.truncation import Truncation
from simlte_st.modules import TokenTable
from simlte_st.modules.chunk_mean import to_chunk_mean
from simlte_st.training.callbacks import check_weights
from simlte_st.training.fit import Fitted
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import Loaded
from simlte_st.training.run import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Finished:
    """The models of a run, with the verdict.

    Attributes:
        trained: The trained model, ready to be saved.
        base: The base, finished in the same way; None if no documents were held out.
        gain: The verdict on the held-out documents and its numbers, or None.
        kept: The model to keep.
        lsa: Dimensions of the latent semantic analysis in the trained model, or None.
        truncation: How much of the documents it reads.
    """

    trained: SentenceTransformer
    base: SentenceTransformer | None
    gain: dict[str, Any] | None
    kept: Literal["trained", "base"]
    lsa: int | None
    truncation: Truncation


@on_main
def choose_model(
    run: Run,
    loaded: Loaded,
    corpus: TrainingCorpus,
    fitted: Fitted,
    *,
    measure: bool = True,
    probe: bool = False,
    lsa: int | None = None,
    keep: Literal["verdict", "trained"] = "verdict",
) -> Finished:
    """Finish the trained model and its base, compare them on held-out documents, and choose one.

    Both get the latent semantic analysis and read whole documents, if the run asks for these. The verdict compares them
    with the analysis, because training gains less beside it, and without chunks, because it was calibrated without.

    Args:
        run: The run.
        loaded: The trained model and its base.
        corpus: The documents.
        fitted: Result of the training.
        measure: Whether documents are held out for a comparison.
        probe: Whether a probe on their labels counts towards the verdict.
        lsa: Dimensions of a latent semantic analysis to append or fold in; 0 for none.
        keep: Whether the verdict chooses the finished model, or the trained model is always kept.
    """
    model, tokens = loaded.model, corpus.token_views
    if not loaded.static:
        model.max_seq_length = loaded.reads  # views may have been shorter
    check_weights(model, "at the end")
    models = {"trained": model}
    if measure:
        models["base"] = loaded.base.model.eval()
    finished = dict(models)
    if corpus.whole:
        finished = {name: to_chunk_mean(each, WHOLE_DOCUMENTS) for name, each in models.items()}
    if lsa is None and loaded.static and corpus.stream is None:
        lsa = DIMENSION
    if lsa:
        texts: Any = (" ".join(row["sentences"]) for row in corpus.sentences)
        if tokens is not None:
            texts = tokens.counts(model.tokenizer)
        # The finished models first: the analysis counts the tokens that the first model reads.
        ending = [*finished.values(), *(models.values() if corpus.whole else ())]
        lsa = end_with_lsa(ending, texts, lsa, run.seed, run.progress)
    gain = measure_gain(run, loaded, corpus, fitted, models, probe=probe) if measure else None
    helped = gain is not None and gain["verdict"] == "helped"
    last = finished["trained"][-1]  # an encoder may have had one before
    truncation = Truncation.of(finished["trained"])
    for lengths in corpus.lengths():
        truncation.add(lengths)
    return Finished(
        trained=finished["trained"],
        base=finished.get("base"),
        gain=gain,
        kept="base" if measure and keep == "verdict" and not helped else "trained",
        lsa=last.dimension if isinstance(last, TokenTable) else lsa or None,
        truncation=truncation,
    )


def measure_gain(
    run: Run,
    loaded: Loaded,
    corpus: TrainingCorpus,
    fitted: Fitted,
    models: Mapping[str, SentenceTransformer],
    *,
    probe: bool,
) -> dict[str, Any] | None:
    """Return the verdict on the held-out documents and its numbers; None if there are too few."""
    models = {name: models[name] for name in ("base", "trained")}
    scores = None
    try:
        halves = compare_halves(
            models,
            corpus.held_out,
            half_length=None if loaded.static else HALF_LENGTH,
            segmenter=corpus.segmenter if loaded.static else loaded.views.segmenter,  # avoids learning again
            seed=run.seed,
            progress=run.progress,
        )
        if probe:
            parts = split_by_label(corpus.labelled, 0.5, run.seed)
            probes = compare_probes(models, *parts, draws=20, seed=run.seed, progress=run.progress)
            scores = probes["base"].few_shot, probes["trained"].few_shot
        verdict = give_verdict(halves["base"], halves["trained"], scores, run.seed)
    except DataError as error:
        logger.warning("The gain cannot be measured: %s", error)
        return None
    numbers = {name: result.metrics() for name, result in halves.items()}
    longer = not loaded.static and is_longer(fitted.steps, loaded.preset.max_view_length)
    return {**verdict.to_dict(), "summary": verdict.summary(longer), "table": verdict.table(), "halves": numbers}
