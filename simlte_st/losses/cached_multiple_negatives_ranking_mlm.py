"""DocSplit's training loss with gradient caching, to train with large batches on limited memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from sentence_transformers.base.losses import CachedLossMixin, RandContext
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.parallel import DistributedDataParallel

from simlte_st.compat import mini_batch_ranges, slice_rows, unwrap_compiled
from simlte_st.losses.base import Features, average_gradient, encode, merge_columns, take_rows
from simlte_st.losses.multiple_negatives_ranking_mlm import MLMLossMixin


class CachedMultipleNegativesRankingMLMLoss(  # type: ignore[misc]  # returns terms
    MLMLossMixin, CachedMultipleNegativesRankingLoss
):
    """:class:`~simlte_st.losses.MultipleNegativesRankingMLMLoss` with gradient caching.

    More in-batch negatives help, but need more memory. This loss has the same value and gradients as the plain loss
    but holds the activations of only one mini-batch at a time:

    1. It embeds all texts without a graph, one mini-batch after another.
    2. It computes the contrastive loss of the whole batch and the gradient of each embedding.
    3. In the backward pass it embeds each mini-batch again, with a graph and the same dropout, and backpropagates the
       gradients from step 2.
    4. The MLM term is a sum over masked tokens and needs no cache. With ``mlm_input="separate"``, each masked
       mini-batch takes one forward and one backward pass, and the gradients accumulate; with ``"shared"``, the term is
       computed in steps 1 and 3. Either way, it is the mean over the masked tokens of the whole batch.

    Counting 1 for a forward pass and 2 for a backward pass, this loss costs 7 and the plain loss 6; with
    ``mlm_input="shared"``, they cost 4 and 3.

    Args:
        model: The model to train.
        mlm_weight: Weight of the MLM term; 0 gives exactly ``CachedMultipleNegativesRankingLoss``.
        mini_batch_size: Number of texts per pass through the model, counted over all columns.
        mini_batch_num_tokens: Number of non-padding tokens per pass through the model, as an alternative to a number of
            texts. A longer text gets its own pass. ``mini_batch_size`` then applies only to the score matrix.
        **options: Other options of ``MultipleNegativesRankingMLMLoss`` and ``CachedMultipleNegativesRankingLoss``.

    Raises:
        ConfigurationError: A setting is out of range.
        ModelError: The model cannot train a masked language model.

    References:
        - GradCache (https://aclanthology.org/2021.repl4nlp-1.31)
        - See also ``MultipleNegativesRankingMLMLoss``

    Requirements:
        1. An encoder with a mask token, unless ``mlm_weight=0``
        2. A large ``per_device_train_batch_size``, and mini-batches that fit into memory
        3. A single process or DDP; gradient caching does not work with sharded gradients (FSDP, DeepSpeed)
        4. ``use_reentrant=False``, transformers' default, for gradient checkpointing

    Inputs:
        Two text columns, (view A, view B), without labels.

    Example:
        ::

            loss = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_size=32)
            arguments = SentenceTransformerTrainingArguments(per_device_train_batch_size=1024)
            SentenceTransformerTrainer(model, arguments, train_dataset=views.attach(dataset), loss=loss)
    """

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return two scalars: the contrastive term and the weighted MLM term."""
        shared = self.mlm_input == "shared"
        contrastive_pass = ContrastivePass(self, masked if shared else columns)
        contrastive = contrastive_pass.forward_cached(contrastive_pass.batches, labels)
        mlm_pass = contrastive_pass if shared else MLMPass(self, masked)
        slope = self.mlm_weight / self.mean_count(mlm_pass.mlm_count)
        mlm = slope * mlm_pass.mlm_sum
        if torch.is_grad_enabled():
            contrastive.register_hook(self._average_head_gradient)  # runs after the hook of forward_cached
            contrastive, mlm = _JoinTerms.apply(contrastive, mlm, slope, mlm_pass.back_propagate)  # type: ignore[no-untyped-call]
        return contrastive, mlm

    def _average_head_gradient(self, _: Tensor) -> None:
        """Average the head's gradient once per batch, in every process, even one without masked tokens."""
        assert self.mlm_head is not None
        for parameter in self.mlm_head.parameters():
            if parameter.requires_grad:
                average_gradient(parameter)


class ContrastivePass(CachedLossMixin):
    """The contrastive term of one batch, computed with sentence-transformers' GradCache implementation.

    Create a new object for each batch: the second embedding step runs in the backward pass, by which time the loss may
    have seen another batch. If the columns have MLM labels (``mlm_input="shared"``), each mini-batch also contributes
    its MLM term: the value in the first embedding step, the gradient in the second.
    """

    def __init__(self, loss: CachedMultipleNegativesRankingMLMLoss, columns: list[Features]) -> None:
        self.loss, self.model = loss, loss.model
        self.mini_batch_size, self.mini_batch_num_tokens = loss.mini_batch_size, loss.mini_batch_num_tokens
        self.batches, self._order = _arrange_columns(loss, columns)
        # Summed cross-entropy and number of masked tokens over all columns, complete after the first embedding step.
        self.mlm_sum = torch.zeros((), device=self.batches[0]["input_ids"].device)
        self.mlm_count = 0
        self._mlm_slope: Tensor | None = None
        self._columns = len(columns)
        # The second embedding step runs in the backward pass, outside the autocast context that is active now.
        device = self.mlm_sum.device.type
        enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        self._autocast = functools.partial(torch.autocast, device, dtype=dtype, enabled=enabled)

    def back_propagate(self, slope: Tensor) -> None:
        """Set the factor that scales the gradient of :attr:`mlm_sum` in the second embedding step."""
        self._mlm_slope = slope

    def embed_minibatch(
        self, sentence_feature: Features, begin: int, end: int, with_grad: bool, copy_random_state: bool,
        random_state: RandContext | None = None,
    ) -> tuple[Tensor, RandContext | None]:  # fmt: skip
        """Embed a range of rows, as the overridden method does, and compute their MLM term."""
        features = slice_rows(sentence_feature, begin, end)
        with random_state or nullcontext(), torch.set_grad_enabled(with_grad), self._autocast():
            state = RandContext(*features.values()) if copy_random_state else None
            torch.clear_autocast_cache()  # some PyTorch versions share it between passes with and without a graph
            outputs, labels = encode(self.model, features)
            embeddings: Tensor = outputs["sentence_embedding"]
            if labels is not None:
                mlm_sum, count = self.loss.summed_mlm_loss([(outputs, labels)])
                if with_grad:
                    embeddings = _AttachSum.apply(embeddings, mlm_sum, self._mlm_slope)  # type: ignore[no-untyped-call]
                else:
                    self.mlm_sum += mlm_sum
                    self.mlm_count += count
        return embeddings, state

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """Compute the loss from the embeddings of all mini-batches, and, if ``with_backward``, their gradients."""
        if len(self.batches) > 1:
            columns = [torch.cat(batches) for batches in reps]
        else:
            embeddings = torch.cat(reps[0])
            if self._order is not None:
                embeddings = embeddings[self._order.argsort()]
            columns = list(embeddings.chunk(self._columns))
        if with_backward:
            self.loss.metrics.update(columns)
        # The stock method backpropagates once per chunk of scores, so it must start from leaf tensors.
        leaves = [column.detach().requires_grad_(with_backward) for column in columns]
        total: Tensor = self.loss.calculate_loss([[leaf] for leaf in leaves], labels, with_backward=with_backward)
        if with_backward:
            torch.autograd.backward(columns, [leaf.grad for leaf in leaves])
        return total


class MLMPass:
    """The MLM term of one batch with ``mlm_input="separate"``, whose forward pass computes both value and gradient.

    The term is a sum over tokens, so its gradient is the sum of the mini-batches' gradients. This takes one forward
    pass instead of GradCache's two, and keeps one gradient per parameter until the backward pass. The unweighted sum is
    differentiated, so half-precision gradients are about as large as with a gradient scaler.
    """

    def __init__(self, loss: CachedMultipleNegativesRankingMLMLoss, columns: list[Features]) -> None:
        self.mlm_count = 0  # number of masked tokens of all columns
        self._parameters = [parameter for parameter in loss.parameters() if parameter.requires_grad]
        self._gradients: list[Tensor | None] | None = [None] * len(self._parameters)
        # Bypass DDP, which synchronizes only gradients accumulated in a backward pass.
        wrapper = unwrap_compiled(loss.model)
        model = wrapper.module if isinstance(wrapper, DistributedDataParallel) else loss.model
        sums = [
            self._run(loss, model, slice_rows(features, begin, end))
            for features in _arrange_columns(loss, columns)[0]
            for begin, end in mini_batch_ranges(features, loss.mini_batch_size, loss.mini_batch_num_tokens)
        ]
        self.mlm_sum = torch.stack(sums).sum()

    def _run(self, loss: CachedMultipleNegativesRankingMLMLoss, model: nn.Module, features: Features) -> Tensor:
        """Return the summed cross-entropy of a mini-batch, and accumulate its gradient."""
        torch.clear_autocast_cache()  # see ContrastivePass.embed_minibatch
        total, count = loss.summed_mlm_loss([encode(model, features)])
        self.mlm_count += count
        if total.requires_grad and self._gradients is not None:
            with torch.autocast(total.device.type, enabled=False):
                gradients = torch.autograd.grad(total, self._parameters, allow_unused=True)
            for index, gradient in enumerate(gradients):
                accumulated = self._gradients[index]
                if accumulated is None:
                    self._gradients[index] = gradient
                elif gradient is not None:
                    accumulated += gradient
        return total.detach()

    def back_propagate(self, slope: Tensor) -> None:
        """Scale the accumulated gradient by ``slope`` and add it to the parameters' gradients."""
        if self._gradients is None:
            raise RuntimeError("The MLM term of a cached loss can be backpropagated only once per forward pass.")
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


class _JoinTerms(torch.autograd.Function):
    """Return both terms as tensors that support autograd, so that callers can add and scale them."""

    @staticmethod
    def forward(
        ctx: Any, contrastive: Tensor, mlm: Tensor, slope: float, back_propagate: Callable[[Tensor], None]
    ) -> tuple[Tensor, Tensor]:
        ctx.slope, ctx.back_propagate = slope, back_propagate
        return contrastive.clone(), mlm.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, contrastive: Tensor, mlm: Tensor) -> tuple[Tensor, None, None, None]:
        ctx.back_propagate(ctx.slope * mlm)
        return contrastive, None, None, None


class _AttachSum(torch.autograd.Function):
    """Return the embeddings unchanged; on the backward pass, also backpropagate a sum times ``slope``."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, total: Tensor, slope: Tensor) -> Tensor:
        ctx.slope = slope
        return embeddings.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        return gradient, ctx.slope, None


def _arrange_columns(
    loss: CachedMultipleNegativesRankingMLMLoss, columns: list[Features]
) -> tuple[list[Features], Tensor | None]:
    """Merge columns into one batch, longest rows first; return the batch and the original index of each row.

    The rows of a mini-batch then have similar lengths, and GradCache strips their shared padding. Columns that cannot
    be merged, and batches of a single mini-batch, keep their order.
    """
    columns = [dict(features) for features in columns]
    for features in columns:
        if isinstance(prompt := features.get("prompt_length"), Tensor):
            features["prompt_length"] = int(prompt.reshape(-1)[0])  # a number is valid for any subset of rows
    merged = merge_columns(columns)
    if merged is None:
        return columns, None
    if len(mini_batch_ranges(merged, loss.mini_batch_size, loss.mini_batch_num_tokens)) == 1:
        return [merged], None
    order = merged["attention_mask"].sum(dim=1).argsort(descending=True, stable=True)
    return [take_rows(merged, order)], order
