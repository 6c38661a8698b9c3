"""Evaluators for the Trainer: their base, the agreement of halves of documents, and classification probes."""

from __future__ import annotations

import csv
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import sentence_transformers
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.evaluation import BaseEvaluator

from simlte_st.arguments import Count, check_value
from simlte_st.compat import readable_tokens, view_budget
from simlte_st.data.document import Document
from simlte_st.evaluation.halves import NEIGHBOURS, StructureResult, draw_halves, splittable, structure_agreement
from simlte_st.evaluation.probe import fit_probe
from simlte_st.evaluation.splits import Label, check_lengths, number_labels, warn_of_copies
from simlte_st.models.loading import check_room
from simlte_st.models.passes import TextReader
from simlte_st.models.static import is_static
from simlte_st.progress import reading
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


@contextmanager
def reading_at_most(model: SentenceTransformer, max_seq_length: int | None) -> Iterator[None]:
    """Set ``model.max_seq_length`` for the length of a block and restore it, also when the block raises."""
    if max_seq_length is not None:
        check_value("max_seq_length", max_seq_length, Count)
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


class EmbeddingEvaluator(BaseEvaluator, ABC):
    """Base of the evaluators of this package; follows the conventions of the evaluators of sentence-transformers.

    A subclass measures: it overrides :meth:`measure`, encodes there with :meth:`embed_inputs`, and returns its metrics
    by name. Calling the evaluator, as the Trainer does, then logs them, appends them to a CSV file, stores them in the
    model card, and returns them with the evaluator's name before theirs.

    Args:
        csv_prefix: First part of the CSV file's name.
        primary_metric: Name of the metric that selects checkpoints, without the evaluator's name.
        name: Prefix of the metrics, and part of the CSV file's name.
        batch_size: Texts encoded at once.
        max_seq_length: Maximum tokens of each text, special tokens included, or as many as the model can read where
            that is less; the model's own setting is restored afterwards. None keeps the model's own setting.
        prompt_name: Name of the model's prompt that precedes each text; by default the one for documents.
        prompt: The prompt itself, instead of a name.
        truncate_dim: Leading dimensions of the embedding to use; None for the model's own setting.
        seed: Seed of all that the evaluator draws.
        show_progress_bar: Whether encoding shows a progress bar.
        write_csv: Whether each evaluation is appended to a CSV file where an output path is given.
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


class StructureEvaluator(EmbeddingEvaluator):
    """Agreement of the two halves of held-out documents on their neighbours, without labels.

    It measures :func:`~simlte_st.evaluation.structure_agreement` and returns ``agreement`` (primary), ``low`` and
    ``high``, the ends of its 95 % interval, and ``documents``. In the Trainer it selects checkpoints
    (``metric_for_best_model="eval_NAME_agreement"``) and stops early. ``last_result`` has the full result of the latest
    call.

    The halves fit what the model reads (``max_seq_length``); to compare models that read different numbers of tokens,
    use :func:`~simlte_st.evaluation.compare_halves`.

    Args:
        documents: Held-out documents that the model was not trained on.
        neighbours: Nearest documents that are compared.
        **settings: Arguments of every evaluator, from ``name`` on; see
            :class:`~simlte_st.evaluation.EmbeddingEvaluator`. ``seed`` decides the split, too.

    Raises:
        DataError: Fewer than two documents can be split.

    Example:
        ::

            held_out = list(read_documents("held_out.jsonl"))
            StructureEvaluator(held_out, name="held_out")(model)
    """

    def __init__(self, documents: Sequence[Document], *, neighbours: int = NEIGHBOURS, **settings: Any) -> None:
        super().__init__(csv_prefix="structure", primary_metric="agreement", **settings)
        self.documents = splittable(documents, "punkt")
        self.neighbours = neighbours
        self.last_result: StructureResult | None = None

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Compare the neighbours of the halves of the documents."""
        prompt = model.prompts.get(self.prompt_name or "") if self.prompt is None else self.prompt
        with reading_at_most(model, self.max_seq_length):
            budget = view_budget(model, prompt)
        anchors, positives = draw_halves(self.documents, budget, self.seed)
        halves = np.split(self.embed_inputs(model, anchors + positives), 2)
        self.last_result = structure_agreement(*halves, neighbours=self.neighbours, seed=self.seed)
        return self.last_result.metrics()

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"documents": len(self.documents), "neighbours": self.neighbours, **super().get_config_dict()}


class ClassificationProbeEvaluator(EmbeddingEvaluator):
    """Accuracy and macro-F1 of a classifier trained on the model's frozen embeddings (DocSplit, 2023, appendix A.1).

    It returns ``accuracy`` (primary) and ``macro_f1``. Test texts that duplicate training texts are counted in a
    warning. For probes with a few labels a class, see :func:`~simlte_st.evaluation.few_shot_probe`.

    Args:
        train_texts: Texts to train the probe on.
        train_labels: Their classes, strings or integers.
        test_texts: Texts to score the probe on.
        test_labels: Their classes. A class without training example counts as missed, with a warning.
        **settings: Arguments of every evaluator, from ``name`` on; see
            :class:`~simlte_st.evaluation.EmbeddingEvaluator`. The paper's ``max_seq_length`` is 512.

    Raises:
        DataError: Texts and labels differ in number, labels cannot be used, or there are fewer than two classes.
    """

    def __init__(
        self,
        train_texts: Sequence[str],
        train_labels: Sequence[Label],
        test_texts: Sequence[str],
        test_labels: Sequence[Label],
        **settings: Any,
    ) -> None:
        super().__init__(csv_prefix="classification_probe", primary_metric="accuracy", **settings)
        check_lengths(train_texts, train_labels, "training")
        check_lengths(test_texts, test_labels, "test")
        number_labels(train_labels, test_labels)  # labels that cannot be used are an error now, not after an epoch
        warn_of_copies(train_texts, test_texts)
        self.texts = [*train_texts, *test_texts]
        self.train_labels, self.test_labels = list(train_labels), list(test_labels)

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Encode, train the probe, and score it."""
        train, test = np.split(self.embed_inputs(model, self.texts), [len(self.train_labels)])
        result = fit_probe(train, self.train_labels, test, self.test_labels, seed=self.seed)
        return {"accuracy": result.accuracy, "macro_f1": result.macro_f1}
