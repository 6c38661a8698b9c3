"""What every evaluator here does: encode with the settings it was given, and log, append and hand on its numbers."""

from __future__ import annotations

import csv
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.evaluation import BaseEvaluator

from simlte_st.evaluation.encoding import encode_texts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


class ReportingEvaluator(BaseEvaluator):
    """Base of the evaluators of this package; follows the conventions of the evaluators of sentence-transformers.

    Args:
        name: Prefix of the metrics and part of the CSV file's name.
        csv_prefix: First part of the CSV file's name.
        primary_metric: Key of the metric that selects checkpoints, before the prefix.
        write_csv: Whether to append each evaluation to a CSV file where an output path is given.
        encode_batch_size: Texts encoded at once.
        max_seq_length: Tokens read of each text; None keeps the model's own setting.
        show_progress_bar: Whether encoding shows a progress bar.
        truncate_dim: Leading dimensions of the embedding to use; None for the model's own setting.
    """

    def __init__(
        self,
        *,
        name: str,
        csv_prefix: str,
        primary_metric: str,
        write_csv: bool,
        encode_batch_size: int,
        max_seq_length: int | None,
        show_progress_bar: bool,
        truncate_dim: int | None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.name = name
        self.primary_metric: str = primary_metric
        self.write_csv = write_csv
        self.csv_file = csv_prefix + ("_" + name if name else "") + "_results.csv"
        self.encode_batch_size = encode_batch_size
        self.max_seq_length = max_seq_length
        self.show_progress_bar = show_progress_bar
        self.truncate_dim = truncate_dim

    def embed(self, model: SentenceTransformer, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts as the evaluator was told to; see :func:`~simlte_st.evaluation.encoding.encode_texts`."""
        return encode_texts(
            model,
            texts,
            batch_size=self.encode_batch_size,
            max_seq_length=self.max_seq_length,
            show_progress_bar=self.show_progress_bar,
            truncate_dim=self.truncate_dim,
        )

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card that all kinds share: how texts are encoded, where that was said."""
        settings = {"max_seq_length": self.max_seq_length, "truncate_dim": self.truncate_dim}
        return {name: value for name, value in settings.items() if value is not None}

    def report(
        self,
        model: SentenceTransformer,
        metrics: dict[str, float],
        output_path: str | None,
        epoch: float,
        steps: int,
    ) -> dict[str, float]:
        """Log, write and store the metrics.

        Args:
            model: The model that was evaluated; its model card receives the metrics.
            metrics: The metrics by their names without prefix. The same names at every call, in the same order.
            output_path: Directory for the CSV file; made where it is missing. None writes none.
            epoch: Epoch of the evaluation, -1 outside training.
            steps: Step of the evaluation, -1 at the end of an epoch or outside training.

        Returns:
            The metrics with the evaluator's name as a prefix.
        """
        when = ""
        if epoch != -1:
            when = f" after epoch {epoch}" if steps == -1 else f" in epoch {epoch} after {steps} steps"
        logger.info("%s: evaluated the model on the %s dataset%s:", type(self).__name__, self.name, when)
        for key, value in metrics.items():
            logger.info("%s: %.4f", key, value)
        if output_path is not None and self.write_csv:
            os.makedirs(output_path, exist_ok=True)
            path = os.path.join(output_path, self.csv_file)
            is_new = not os.path.isfile(path)
            with open(path, mode="a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                if is_new:
                    writer.writerow(["epoch", "steps", *metrics])
                writer.writerow([epoch, steps, *metrics.values()])
        prefixed: dict[str, float] = self.prefix_name_to_metrics(metrics, self.name)
        # The model card's type says int; the trainer itself passes the fractional epoch.
        self.store_metrics_in_model_card_data(model, prefixed, epoch, steps)  # type: ignore[arg-type]
        return prefixed
