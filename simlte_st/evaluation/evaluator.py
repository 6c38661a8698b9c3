"""Encode texts for evaluation, and evaluate a model without labels during training."""

from __future__ import annotations

import csv
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import BaseEvaluator

from simlte_st.arguments import Count, Seed, check_arguments, check_value
from simlte_st.compat import readable_tokens, view_budget
from simlte_st.evaluation.halves import NEIGHBOURS, StructureResult, draw_halves, load_splittable, structure_agreement
from simlte_st.models.loading import check_room
from simlte_st.models.passes import TextReader
from simlte_st.models.static import is_static
from simlte_st.models.vectors import Floats
from simlte_st.progress import reading_bar
from simlte_st.prompts import document_prompt
from simlte_st.reading.document import DocumentSource

logger = logging.getLogger(__name__)


@contextmanager
def reading_at_most(model: SentenceTransformer, max_seq_length: int | None) -> Iterator[None]:
    """Lower ``model.max_seq_length`` inside a ``with`` block and restore it afterwards."""
    own_limit = model.max_seq_length
    if max_seq_length is not None:
        check_value("max_seq_length", max_seq_length, Count)
        check_room(model, max_seq_length, f"max_seq_length={max_seq_length} tokens")
        if own_limit is not None and not is_static(model):  # the other models have no limit to lower
            model.max_seq_length = min(max_seq_length, readable_tokens(model) or max_seq_length)
    try:
        yield
    finally:
        if model.max_seq_length != own_limit:
            model.max_seq_length = own_limit


def encode_texts(
    model: SentenceTransformer, texts: Sequence[str], *, max_seq_length: int | None = None,
    show_progress_bar: bool = False, bar_name: str = "Encoding", documents: int | None = None, batch_size: int = 32,
) -> Floats:  # fmt: skip
    """Encode texts with the model's document prompt: the same vectors as ``simlte encode``, at the same speed.

    The progress bar counts up to ``documents`` (default: the number of texts).
    """
    bar = reading_bar(model, bar_name, texts, documents=documents, show=show_progress_bar)
    with reading_at_most(model, max_seq_length), bar:
        if type(model) is SentenceTransformer:  # subclasses have their own encode
            reader = TextReader(model, batch_size, texts)
            model, batch_size = reader.model, reader.batch_size
        prompt = document_prompt(model)
        embeddings = model.encode(list(texts), prompt=prompt, batch_size=batch_size, show_progress_bar=False)
    return np.asarray(embeddings, dtype=np.float32)


class StructureEvaluator(BaseEvaluator):
    """Evaluate without labels whether both halves of a held-out document have the same neighbours.

    The metrics are the ``agreement`` (the primary metric; see :func:`~simlte_st.evaluation.structure_agreement`), the
    ends ``low`` and ``high`` of its 95% interval, and the number of ``documents``. In the Trainer, the evaluator can
    select checkpoints (``metric_for_best_model="eval_NAME_agreement"``) and stop training early. ``last_result`` holds
    the full result of the last call.

    The halves are short enough for the model's ``max_seq_length``. To compare models with different limits, use
    :func:`~simlte_st.evaluation.compare_halves`.

    Args:
        documents: Held-out documents that the model was not trained on: anything that ``read_documents`` takes or
            returns.
        name: Name of the data set, used as a prefix of the metric names.
        neighbours: Number of nearest documents to compare.
        batch_size: Batch size for encoding.
        max_seq_length: Maximum number of tokens to read per text; None for the model's own limit.
        seed: Random seed of the splits and the interval.
        show_progress_bar: Whether to show a progress bar while encoding.
        write_csv: Whether to append the metrics of each evaluation to a CSV file in the output path.

    Raises:
        DataError: Fewer than two documents can be split.

    Example:
        ::

            evaluator = StructureEvaluator("held_out.jsonl", name="held_out")
            print(evaluator(model))
    """

    @check_arguments
    def __init__(
        self,
        documents: DocumentSource,
        *,
        name: str = "",
        neighbours: Count = NEIGHBOURS,
        batch_size: Count = 32,
        max_seq_length: Count | None = None,
        seed: Seed = 0,
        show_progress_bar: bool = False,
        write_csv: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.documents = load_splittable(documents, "punkt")
        self.name, self.primary_metric = name, "agreement"
        self.csv_file = f"structure{'_' + name if name else ''}_results.csv"
        self.neighbours, self.seed, self.write_csv = neighbours, seed, write_csv
        self.batch_size, self.max_seq_length, self.show_progress_bar = batch_size, max_seq_length, show_progress_bar
        self.last_result: StructureResult | None = None

    def __call__(  # type: ignore[override]  # a SentenceTransformer, as in every evaluator of sentence-transformers
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Compute the metrics, log them, write them to the CSV file and return them."""
        with reading_at_most(model, self.max_seq_length):
            budget = view_budget(model)
        pairs = draw_halves(self.documents, budget, self.seed)
        texts = [*(pair.anchor for pair in pairs), *(pair.positive for pair in pairs)]
        options = {name: getattr(self, name) for name in ("max_seq_length", "show_progress_bar", "batch_size")}
        first, second = np.split(encode_texts(model, texts, **options), 2)
        self.last_result = structure_agreement(first, second, neighbours=self.neighbours, seed=self.seed)
        metrics = self.last_result.metrics()
        logger.info("Neighbour agreement on %s (epoch %s, steps %s): %s", self.name, epoch, steps, metrics)
        if output_path is not None and self.write_csv:
            os.makedirs(output_path, exist_ok=True)
            path = os.path.join(output_path, self.csv_file)
            is_new = not os.path.isfile(path)
            with open(path, mode="a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                if is_new:
                    writer.writerow(["epoch", "steps", *metrics])
                writer.writerow([epoch, steps, *metrics.values()])
        prefixed_metrics: dict[str, float] = self.prefix_name_to_metrics(metrics, self.name)
        # The method is annotated with an int epoch, but the Trainer passes a fractional one.
        self.store_metrics_in_model_card_data(model, prefixed_metrics, epoch, steps)  # type: ignore[arg-type]
        return prefixed_metrics

    def get_config_dict(self) -> dict[str, object]:
        """Return the settings for the model card."""
        names = ("neighbours", "max_seq_length", "seed")
        return {"documents": len(self.documents), **{name: getattr(self, name) for name in names}}
