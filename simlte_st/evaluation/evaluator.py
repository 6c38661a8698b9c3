"""The base of every evaluator here: it encodes texts, and logs, writes and returns its numbers."""

from __future__ import annotations

import csv
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import sentence_transformers
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.evaluation import BaseEvaluator

from simlte_st.compat import readable_tokens
from simlte_st.config import check_count
from simlte_st.models.loading import check_room, side_of
from simlte_st.models.pace import reading
from simlte_st.models.passes import TextReader
from simlte_st.models.static import is_static
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


@contextmanager
def reading_at_most(model: SentenceTransformer, max_seq_length: int | None) -> Iterator[None]:
    """Set ``model.max_seq_length`` for the length of a block and restore it, also when the block raises."""
    if max_seq_length is not None:
        check_count("max_seq_length", max_seq_length)
        check_room(model, max_seq_length, f"max_seq_length={max_seq_length} tokens")
    before = model.max_seq_length
    # Without a limit, as a static embedding's, there is no tokenizer whose limit could be set.
    if max_seq_length is None or before is None or is_static(model):
        yield
        return
    readable = readable_tokens(model)
    model.max_seq_length = max_seq_length if readable is None else min(max_seq_length, readable)
    try:
        yield
    finally:
        model.max_seq_length = before


def encode_texts(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    max_seq_length: int | None = None,
    show_progress_bar: bool = False,
    bar_name: str = "Encoding",
    batch_size: int = 32,
    **options: Any,
) -> NDArray[np.float32]:
    """Encode with the frozen model, each text once, to the vectors that ``simlte encode`` makes, and as fast.

    Unless ``prompt`` or ``prompt_name`` says otherwise, the model's prompt for documents stands before each text.
    """
    model = side_of(model, "document")
    with (
        reading_at_most(model, max_seq_length),
        reading(model, bar_name, texts, shown=show_progress_bar),
    ):
        if type(model) is sentence_transformers.SentenceTransformer:  # others have an encode of their own
            reader = TextReader(model, batch_size, texts)
            model, batch_size = reader.model, reader.batch_size
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt"] = document_prompt(model)
        options |= {"batch_size": batch_size, "show_progress_bar": False, "convert_to_numpy": True}
        embeddings = model.encode(list(texts), **options)
    return np.asarray(embeddings, dtype=np.float32)


class EvaluatorSettings(TypedDict, total=False):
    """The settings that every evaluator of this package takes by name, with the names of sentence-transformers.

    Attributes:
        name: Prefix of the metrics, and part of the CSV file's name; none by default.
        batch_size: Texts encoded at once; 32 by default.
        max_seq_length: Tokens read of each text, special tokens included, or as many as the model can read where that
            is less; the model's own setting is put back afterwards. None, the default, keeps the model's own setting.
        prompt_name: Name of the model's prompt that is put before each text; by default the one for documents.
        prompt: The prompt itself, instead of a name.
        truncate_dim: Leading dimensions of the embedding to use; None, the default, for the model's own setting.
        seed: Seed of all that the evaluator draws (bootstrap, few-shot examples, first weights); 0 by default.
        show_progress_bar: Whether encoding shows a progress bar; False by default.
        write_csv: Whether each evaluation is appended to a CSV file where an output path is given; True by default.
    """

    name: str
    batch_size: int
    max_seq_length: int | None
    prompt_name: str | None
    prompt: str | None
    truncate_dim: int | None
    seed: int
    show_progress_bar: bool
    write_csv: bool


class EmbeddingEvaluator(BaseEvaluator, ABC):
    """Base of the evaluators of this package; follows the conventions of the evaluators of sentence-transformers.

    A subclass measures: it overrides :meth:`measure`, encodes there with :meth:`embed_inputs`, and returns its metrics
    by name. Calling the evaluator, as the Trainer does, then logs them, appends them to a CSV file, stores them in the
    model card, and returns them with the evaluator's name before theirs.

    Args:
        csv_prefix: First part of the CSV file's name.
        primary_metric: Name of the metric that selects checkpoints, without the evaluator's name.
        name: For this and what follows, see :class:`EvaluatorSettings`.
    """

    def __init__(
        self,
        *,
        csv_prefix: str,
        primary_metric: str,
        name: str = "",
        batch_size: int = 32,
        max_seq_length: int | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
        seed: int = 0,
        show_progress_bar: bool = False,
        write_csv: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.csv_file = csv_prefix + ("_" + name if name else "") + "_results.csv"
        self.primary_metric: str = primary_metric
        self.name = name
        self.batch_size = batch_size
        self.max_seq_length = max_seq_length
        self.prompt_name = prompt_name
        self.prompt = prompt
        self.truncate_dim = truncate_dim
        self.seed = seed
        self.show_progress_bar = show_progress_bar
        self.write_csv = write_csv

    @abstractmethod
    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Measure a model.

        Returns:
            The metrics by their names without prefix: the same names at every call, in the same order.
        """

    def embed_inputs(self, model: SentenceTransformer, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """Encode texts with the evaluator's settings.

        Args:
            model: The model.
            texts: The texts.
            **options: What is to be otherwise for these texts, such as the ``prompt_name`` of queries; see
                :func:`encode_texts`.

        Returns:
            Embeddings, shape ``[len(texts), dim]``, float32.
        """
        names = ("batch_size", "max_seq_length", "prompt_name", "prompt", "truncate_dim", "show_progress_bar")
        return encode_texts(model, texts, **{name: getattr(self, name) for name in names} | options)

    def __call__(  # type: ignore[override]  # a SentenceTransformer, as in every evaluator of sentence-transformers
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Measure a model, and log, write and store the metrics."""
        metrics = self.measure(model)
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

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card: those of encoding that are set, and the seed."""
        names = ("max_seq_length", "prompt_name", "prompt", "truncate_dim")
        encoding = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {**encoding, "seed": self.seed}
