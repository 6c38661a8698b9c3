"""What the samplers have in common that plan the batches of an epoch as a whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
import torch.distributed
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError
from simlte_st.training.batching.seeded import SeededBatchSampler

Rows = NDArray[np.int64]
"""Row numbers."""


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
