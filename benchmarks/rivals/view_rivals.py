"""The rivals that differ from DocSplit in nothing but their views: :func:`simlte_st.train` with another one."""

from __future__ import annotations

from benchmarks.rivals.job import Outcome, RivalJob
from simlte_st.training.train import train


def train_views(job: RivalJob) -> Outcome:
    """Train with the preset's view, on all documents.

    Raises:
        KeyboardInterrupt: The run was interrupted. There is no going on with it.
    """
    result = train(
        job.documents,
        job.path,
        base=job.base,
        preset=job.preset,
        segmenter=job.segmenter,
        held_out=0.0,
        max_steps=job.steps,
        seed=job.seed,
        bf16=job.bf16,
        save_steps=job.steps,  # nobody resumes it
        progress=job.progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return Outcome(result.corpus.documents, result.seconds, result.log)
