"""Handing a batch sampler that needs more than the Trainer's own arguments to the Trainer."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from sentence_transformers.base.sampler import DefaultBatchSampler


class ConfiguredBatchSampler:
    """A batch sampler class with settings, for ``batch_sampler=`` of the training arguments.

    It is what ``functools.partial`` would be, but for one thing: the Trainer pickles its arguments into every
    checkpoint. This is pickled as its name, so that neither embeddings nor documents go along.

    Args:
        sampler: The class.
        **settings: What it is given beside the Trainer's own arguments.

    Example:
        ::

            embeddings = DocumentEmbeddings(len(corpus))
            args = SentenceTransformerTrainingArguments(
                output_dir="out",
                batch_sampler=ConfiguredBatchSampler(SimilarBatchSampler, embeddings=embeddings, hardness=0.5),
            )
    """

    def __init__(self, sampler: type[DefaultBatchSampler], **settings: Any) -> None:
        self.sampler = sampler
        self.settings = settings

    def __call__(self, dataset: Sized, **arguments: Any) -> DefaultBatchSampler:
        """Make the sampler. Called by the Trainer, for each data set."""
        return self.sampler(dataset, **arguments, **self.settings)

    def __repr__(self) -> str:
        shown = (name for name, value in self.settings.items() if value is not None)
        return f"{type(self).__name__}({', '.join([self.sampler.__name__, *shown])})"

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (repr(self),)

    def __copy__(self) -> ConfiguredBatchSampler:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ConfiguredBatchSampler:
        return self  # copies of the training arguments use the same embeddings
