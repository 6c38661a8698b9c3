"""What the batch samplers have in common: batches that depend on (seed, epoch), and how the Trainer is given them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import Sampler

from simlte_st.errors import ConfigurationError

Rows = NDArray[np.int64]
"""Row numbers."""


class EpochPermutation(Sampler[int]):
    """A permutation of the rows that depends on (seed, epoch) only.

    Args:
        size: Number of rows.
        seed: The run's seed.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Take over the epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        """Yield row numbers."""
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        yield from torch.randperm(self.size, generator=generator).tolist()


class SeededBatchSampler(DefaultBatchSampler):
    """Batches of an :class:`EpochPermutation`.

    The stock sampler draws from one generator from epoch to epoch, so a run resumed in a later epoch sees another
    order than the run it continues. That the permutation is this sampler's ``sampler`` matters: when a run resumes,
    accelerate wraps the batch sampler, and tells the epoch to the sampler inside.
    """

    def __init__(self, dataset: Sized, *args: Any, **kwargs: Any) -> None:
        super().__init__(dataset, *args, **kwargs)
        self.sampler: EpochPermutation = EpochPermutation(len(dataset), self.seed)

    def set_epoch(self, epoch: int) -> None:
        """Take over the epoch."""
        super().set_epoch(epoch)
        self.sampler.set_epoch(epoch)


class PlannedBatchSampler(SeededBatchSampler):
    """Batches that are planned at the beginning of each epoch, from the seed and the epoch.

    The Trainer counts the batches once, before the first epoch, and finds the place to resume by that number. So
    every epoch has the same number of batches, whatever is in them.

    Args:
        dataset: The documents.
        batch_size: See the class.
        drop_last: See the class.
        **arguments: The Trainer's other arguments, ``seed`` among them.

    Raises:
        ConfigurationError: There are several processes. Accelerate deals whole batches to them and loses those that
            are not full without a word (``BatchSamplerShard``), and where their embeddings are gathered, documents
            that were kept apart meet again.
    """

    def __init__(self, dataset: Sized, batch_size: int, drop_last: bool, **arguments: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **arguments)
        self.documents = len(dataset)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            processes = torch.distributed.get_world_size()
            if processes > 1:
                raise ConfigurationError(
                    f"{type(self).__name__} plans the batches of one process, and there are {processes}: "
                    "use SeededBatchSampler."
                )

    @abstractmethod
    def plan(self, epoch: int) -> list[Rows]:
        """Make the batches of an epoch."""

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the current epoch, each as row numbers."""
        for batch in self.plan(self.sampler.epoch):
            yield batch.tolist()

    @abstractmethod
    def __len__(self) -> int:
        """Count the batches of an epoch; the same for every epoch."""

    def generator_of(self, epoch: int) -> np.random.Generator:
        """Make the generator of an epoch."""
        return np.random.default_rng([self.sampler.seed % 2**63, epoch])

    def check_rows(self, name: str, rows: int) -> None:
        """Check that something has as many rows as there are documents.

        Raises:
            ConfigurationError: It has not. The Trainer asks for a sampler for its evaluation data too.
        """
        if rows != self.documents:
            raise ConfigurationError(
                f"{name} has {rows} rows, the data set {self.documents}: {type(self).__name__} needs one for each "
                "document of the training data, and cannot be used with an eval_dataset or several data sets."
            )


class ConfiguredBatchSampler:
    """A batch sampler class with settings, for ``batch_sampler=`` of the training arguments.

    It is what ``functools.partial`` would be, but for one thing: the Trainer pickles its arguments into every
    checkpoint. This is pickled as its name, so that no documents go along.

    Args:
        sampler: The class.
        **settings: What it is given beside the Trainer's own arguments.

    Example:
        ::

            copies = find_duplicates(corpus)
            args = SentenceTransformerTrainingArguments(
                output_dir="out",
                batch_sampler=ConfiguredBatchSampler(SeparatedBatchSampler, groups=copies.groups),
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
        return self  # copies of the training arguments use the same settings
