"""One batch in mini-batches: GradCache for the contrastive term, added up gradients for the MLM term."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Protocol

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses import CachedLossMixin, RandContext
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.parallel import DistributedDataParallel

from simlte_st.compat import mini_batch_ranges, slice_rows
from simlte_st.losses.batch_metrics import BatchMetrics
from simlte_st.losses.columns import Features, encode, merge_columns, take_rows


class CachedMLMLoss(Protocol):
    """A cached MLM loss, as the two passes use it: the stock loss's attributes, metrics and the MLM term."""

    model: SentenceTransformer
    mini_batch_size: int
    mini_batch_num_tokens: int | None
    show_progress_bar: bool
    metrics: BatchMetrics

    def calculate_loss(self, reps: list[list[Tensor]], labels: Any, *, with_backward: bool) -> Tensor:
        """Compute the contrastive term from embeddings; with ``with_backward`` their gradients too."""

    def summed_mlm_loss(self, outputs: list[tuple[Features, Tensor | None]]) -> tuple[Tensor, int]:
        """Sum the cross-entropy of masked tokens, and count them."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return all parameters that are trained."""


class ContrastivePass(CachedLossMixin):
    """The contrastive term of one batch, on sentence-transformers' GradCache engine.

    An object for each batch, because the second embedding step happens in the backward pass, when the loss may have
    seen another batch already.

    The columns are one batch for the engine, the longest rows first, so that rows of like lengths share a mini-batch:
    the engine cuts off the padding that they share. Columns that do not fit together are left apart.

    Where the columns have labels (``mlm_input="shared"``), each mini-batch has its MLM term too: its value in the first
    embedding step, its gradient in the second.

    Attributes:
        mlm_sum: Cross-entropy summed over the masked tokens of all columns, a scalar, float32; known after :meth:`run`.
        mlm_count: Number of those tokens.
    """

    def __init__(self, loss: CachedMLMLoss, columns: list[Features]) -> None:
        self.loss = loss
        self.model = loss.model
        self.mini_batch_size = loss.mini_batch_size
        self.mini_batch_num_tokens = loss.mini_batch_num_tokens
        self.show_progress_bar = loss.show_progress_bar
        self.batches, self._order = _arranged(loss, columns)
        self.mlm_sum = torch.zeros((), device=self.batches[0]["input_ids"].device)
        self.mlm_count = 0
        self._mlm_slope: Tensor | None = None
        self._columns = len(columns)
        self._autocast = _autocast_as_now(self.batches[0])

    def run(self, labels: Any) -> Tensor:
        """Compute the term: a leaf whose hook does the second embedding step, or in evaluation the value."""
        value: Tensor = self.forward_cached(self.batches, labels)
        return value

    def back_propagate(self, slope: Tensor) -> None:
        """Set the factor of the gradient of :attr:`mlm_sum` in the second embedding step."""
        self._mlm_slope = slope

    def embed_minibatch(
        self,
        sentence_feature: Features,
        begin: int,
        end: int,
        with_grad: bool,
        copy_random_state: bool,
        random_state: RandContext | None = None,
    ) -> tuple[Tensor, RandContext | None]:
        """Embed some rows, as the engine's own method does, and compute their MLM term."""
        features = slice_rows(sentence_feature, begin, end)
        with random_state or nullcontext(), torch.set_grad_enabled(with_grad), self._autocast():
            state = RandContext(*features.values()) if copy_random_state else None
            torch.clear_autocast_cache()  # some versions of PyTorch share it between passes with and without a graph
            outputs, labels = encode(self.model, features)
            embeddings: Tensor = outputs["sentence_embedding"]
            if labels is not None:
                mlm_sum, count = self.loss.summed_mlm_loss([(outputs, labels)])
                if with_grad:
                    embeddings = _Attached.apply(embeddings, mlm_sum, self._mlm_slope)  # type: ignore[no-untyped-call]
                else:
                    self.mlm_sum += mlm_sum
                    self.mlm_count += count
        return embeddings, state

    def calculate_loss(self, reps: list[list[Tensor]], labels: Any = None, *, with_backward: bool = False) -> Tensor:
        """Compute the loss from the embeddings of all mini-batches; with ``with_backward`` their gradients too."""
        if len(self.batches) > 1:
            columns = [torch.cat(batches) for batches in reps]
        else:
            together = torch.cat(reps[0])
            if self._order is not None:
                together = together[self._order.argsort()]
            columns = list(together.chunk(self._columns))
        if with_backward:
            self.loss.metrics.update(columns)
        # The stock method walks the graph once for each chunk of the scores: it must begin at leaves.
        leaves = [column.detach().requires_grad_(with_backward) for column in columns]
        value: Tensor = self.loss.calculate_loss([[leaf] for leaf in leaves], labels, with_backward=with_backward)
        if with_backward:
            torch.autograd.backward(columns, [leaf.grad for leaf in leaves])
        return value


class MLMPass:
    """The MLM term of one batch with ``mlm_input="separate"``: value and gradient, both in the forward pass.

    The term is a sum over tokens, so a mini-batch can be forgotten once its gradient is added to the others'. That
    takes one forward pass, where GradCache takes two, and memory for one gradient of every parameter until
    the backward pass.

    What is differentiated is the sum, not the mean or its weighted share of the loss: the gradients of half-precision
    activations are then about as large as a gradient scaler would make them.

    Attributes:
        mlm_sum: Cross-entropy summed over the masked tokens of all columns, a scalar, float32.
        mlm_count: Number of those tokens.
    """

    def __init__(self, loss: CachedMLMLoss, columns: list[Features]) -> None:
        self.mlm_count = 0
        self._parameters = [value for value in loss.parameters() if value.requires_grad]
        self._gradients: list[Tensor | None] | None = [None] * len(self._parameters)
        # Not through DDP, which has no part in a gradient that is not accumulated by the backward pass.
        wrapper = getattr(loss.model, "_orig_mod", loss.model)
        model = wrapper.module if isinstance(wrapper, DistributedDataParallel) else loss.model
        sums = [self._run(loss, model, features) for features in _mini_batches(loss, columns)]
        self.mlm_sum = torch.stack(sums).sum()

    def _run(self, loss: CachedMLMLoss, model: nn.Module, features: Features) -> Tensor:
        torch.clear_autocast_cache()  # as above
        total, count = loss.summed_mlm_loss([encode(model, features)])
        self.mlm_count += count
        if total.requires_grad and self._gradients is not None:
            with torch.autocast(total.device.type, enabled=False):
                gradients = torch.autograd.grad(total, self._parameters, allow_unused=True)
            for index, gradient in enumerate(gradients):
                former = self._gradients[index]
                if former is None:
                    self._gradients[index] = gradient
                elif gradient is not None:
                    former += gradient
        return total.detach()

    def back_propagate(self, slope: Tensor) -> None:
        """Add the gradient, multiplied, to that of the parameters."""
        if self._gradients is None:
            raise RuntimeError("The MLM term of a cached loss can be back-propagated once for each forward pass.")
        gradients, self._gradients = self._gradients, None
        for index, parameter in enumerate(self._parameters):
            gradient, gradients[index] = gradients[index], None
            if gradient is None:
                continue
            gradient *= slope.to(gradient.dtype)
            if parameter.grad is None:
                parameter.grad = gradient
            else:
                parameter.grad += gradient


def joined_terms(contrastive: Tensor, mlm: Tensor, back_propagate: Callable[[Tensor], None]) -> tuple[Tensor, Tensor]:
    """Return the two terms as tensors that may be added and scaled as any others."""
    terms: tuple[Tensor, Tensor] = _Joined.apply(contrastive, mlm, back_propagate)  # type: ignore[no-untyped-call]
    return terms


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, contrastive: Tensor, mlm: Tensor, back_propagate: Callable[[Tensor], None]
    ) -> tuple[Tensor, Tensor]:
        ctx.back_propagate = back_propagate
        return contrastive.clone(), mlm.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, contrastive: Tensor, mlm: Tensor) -> tuple[Tensor, None, None]:
        ctx.back_propagate(mlm)
        return contrastive, None, None


class _Attached(torch.autograd.Function):
    """Passes embeddings through, and back-propagates another sum too, times a factor that is known only later."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, total: Tensor, slope: Tensor) -> Tensor:
        ctx.slope = slope
        return embeddings.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        return gradient, ctx.slope, None


def _autocast_as_now(features: Features) -> Callable[[], torch.autocast]:
    """Return contexts with the autocast of this moment: the backward pass is run outside of it."""
    device = features["input_ids"].device.type
    enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    return lambda: torch.autocast(device, dtype=dtype, enabled=enabled)


def _arranged(loss: CachedMLMLoss, columns: list[Features]) -> tuple[list[Features], Tensor | None]:
    """Put columns into one batch, the longest rows first; the second value gives the old place of each row.

    Columns that do not fit together stay as they are. The order stays where there is one mini-batch only.
    """
    # A number for all rows stays one when the rows are taken apart.
    columns = [
        {
            name: int(value.reshape(-1)[0]) if name == "prompt_length" and isinstance(value, Tensor) else value
            for name, value in features.items()
        }
        for features in columns
    ]
    merged = merge_columns(columns)
    if merged is None:
        return columns, None
    if len(mini_batch_ranges(merged, loss.mini_batch_size, loss.mini_batch_num_tokens)) == 1:
        return [merged], None
    order = merged["attention_mask"].sum(dim=1).argsort(descending=True, stable=True)
    return [take_rows(merged, order)], order


def _mini_batches(loss: CachedMLMLoss, columns: list[Features]) -> Iterator[Features]:
    batches, _ = _arranged(loss, columns)
    for features in batches:
        for begin, end in mini_batch_ranges(features, loss.mini_batch_size, loss.mini_batch_num_tokens):
            yield slice_rows(features, begin, end)
