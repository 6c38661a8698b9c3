"""Running tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import mteb
from mteb import AbsTask

from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.evaluator import reading_at_most
from simlte_st.tasks.generators import kept_generators

if TYPE_CHECKING:
    from mteb.results import ModelResult
    from mteb.types import EncodeKwargs
    from sentence_transformers import SentenceTransformer


def evaluate(
    model: SentenceTransformer,
    tasks: AbsTask | Sequence[AbsTask],
    *,
    batch_size: int = 32,
    max_seq_length: int | None = None,
    show_progress_bar: bool = False,
) -> ModelResult:
    """Evaluate a model as ``mteb.evaluate`` does, at a chosen length and without its cache of results.

    That cache finds results by the names of task and model, and a model from a folder has no name there: results of
    one would be taken for those of any other. Whoever calls ``mteb.evaluate`` on such models passes ``cache=None``.

    Args:
        model: The model, in mteb's wrapper for sentence-transformers: cosine or what ``similarity_fn_name`` says,
            and the model's prompts by their names (a task's, a kind's, ``query`` and ``document``).
        tasks: Tasks of this package, of mteb or of one's own.
        batch_size: Texts encoded at once.
        max_seq_length: Tokens read of each text, or as many as the model can read where that is less; the model's own
            setting is put back afterwards. None keeps the model's own setting.
        show_progress_bar: Whether mteb and encoding show progress bars.

    Returns:
        mteb's result: a list ``task_results`` in the order of the tasks, each with ``scores`` by split.

    Raises:
        ConfigurationError: There are no tasks, or ``max_seq_length`` is below 1.
        DataError: A task's data is not there, or cannot be used.
    """
    chosen = [tasks] if isinstance(tasks, AbsTask) else list(tasks)
    if not chosen:
        raise ConfigurationError("There are no tasks to evaluate.")
    encoding = cast("EncodeKwargs", {"batch_size": batch_size, "show_progress_bar": show_progress_bar})
    with kept_generators(), reading_at_most(model, max_seq_length):
        return mteb.evaluate(
            model,
            chosen,
            cache=None,
            co2_tracker=False,
            encode_kwargs=encoding,
            show_progress_bar=show_progress_bar,
        )
