"""DocSplit's training loss with gradient caching, for large batches in little memory."""

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
    """:class:`~simlte_st.losses.MultipleNegativesRankingMLMLoss` with the memory use of a mini-batch.

    More in-batch negatives help, but need more memory. This loss has the same value and gradients as the plain loss
    and keeps the activations of only one mini-batch at a time:

    1. It embeds all texts without a graph, one mini-batch after another.
    2. It computes the contrastive loss of the whole batch and the gradient of each embedding.
    3. In the backward pass it embeds each mini-batch again, with a graph and the same dropout, and backpropagates the
       gradients from step 2.
    4. The MLM term is a sum over masked tokens and needs no cache. With ``mlm_input="separate"``, each masked
       mini-batch takes one forward and one backward pass, whose gradients accumulate; with ``"shared"``, steps 1 and 3
       include it. In both cases it is the mean over the masked tokens of the whole batch.

    If a forward pass costs 1 and a backward pass 2, this loss costs 7 and the plain loss 6; with
    ``mlm_input="shared"``, they cost 4 and 3.

    Args:
        model: The model to train.
        mlm_weight: Weight of the MLM term; 0 gives exactly ``CachedMultipleNegativesRankingLoss``.
        mini_batch_size: Number of texts per pass through the model, counted over all columns.
        mini_batch_num_tokens: Number of tokens per pass through the model, without padding, instead of a number of
            texts. A longer text gets its own pass. ``mini_batch_size`` then applies to the scores only.
        **options: Other options of ``MultipleNegativesRankingMLMLoss`` and ``CachedMultipleNegativesRankingLoss``.

    Raises:
        ConfigurationError: A setting is out of range.
        ModelError: The model cannot train a masked language model.

    References:
        - GradCache (https://aclanthology.org/2021.repl4nlp-1.31)
        - The references of ``MultipleNegativesRankingMLMLoss``

    Requirements:
        1. The requirements of ``MultipleNegativesRankingMLMLoss``
        2. A large ``per_device_train_batch_size`` and a mini-batch that fits into memory
        3. A single process or DDP; gradient caching does not work with sharded gradients (FSDP, DeepSpeed)
        4. ``use_reentrant=False``, transformers' default, for gradient checkpointing

    Inputs:
        Two columns of texts, (view A, view B), without labels.

    Example:
        ::

            loss = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_size=32)
            arguments = SentenceTransformerTrainingArguments(per_device_train_batch_size=1024)
            SentenceTransformerTrainer(model, arguments, train_dataset=views.attach(dataset), loss=loss)
    """

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the contrastive and the weighted MLM term, scalars."""
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
        """Average once for all mini-batches, in all processes, including those without masked tokens."""
        assert self.mlm_head is not None
        for parameter in self.mlm_head.parameters():
            if parameter.requires_grad:
                average_gradient(parameter)


class ContrastivePass(CachedLossMixin):
    """The contrastive term of one batch, computed with sentence-transformers' GradCache implementation.

    Each batch needs a new object: the second embedding step runs in the backward pass, by which time the loss may have
    seen another batch. If the columns have MLM labels (``mlm_input="shared"``), each mini-batch adds its MLM term: the
    value in the first embedding step, the gradient in the second.
    """

    def __init__(self, loss: CachedMultipleNegativesRankingMLMLoss, columns: list[Features]) -> None:
        self.loss, self.model = loss, loss.model
        self.mini_batch_size, self.mini_batch_num_tokens = loss.mini_batch_size, loss.mini_batch_num_tokens
        self.batches, self._order = _arrange_columns(loss, columns)
        # Summed cross-entropy and number of the masked tokens of all columns, complete after the first embedding step.
        self.mlm_sum = torch.zeros((), device=self.batches[0]["input_ids"].device)
        self.mlm_count = 0
        self._mlm_slope: Tensor | None = None
        self._columns = len(columns)
        # The second embedding step runs in the backward pass, outside the current autocast.
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
        """Embed some rows, like the overridden method, and compute their MLM term."""
        features = slice_rows(sentence_feature, begin, end)
        with random_state or nullcontext(), torch.set_grad_enabled(with_grad), self._autocast():
            state = RandContext(*features.values()) if copy_random_state else None
            torch.clear_autocast_cache()  # in some versions of PyTorch, passes with and without a graph share it
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
        """Return the loss for the embeddings of all mini-batches; ``with_backward`` also computes their gradients."""
        if len(self.batches) > 1:
            columns = [torch.cat(batches) for batches in reps]
        else:
            embeddings = torch.cat(reps[0])
            if self._order is not None:
                embeddings = embeddings[self._order.argsort()]
            columns = list(embeddings.chunk(self._columns))
        if with_backward:
            self.loss.metrics.update(columns)
        # The stock method backpropagates once per chunk of scores, so the graph must begin at leaves.
        leaves = [column.detach().requires_grad_(with_backward) for column in columns]
        total: Tensor = self.loss.calculate_loss([[leaf] for leaf in leaves], labels, with_backward=with_backward)
        if with_backward:
            torch.autograd.backward(columns, [leaf.grad for leaf in leaves])
        return total


class MLMPass:
    """The MLM term of one batch with ``mlm_input="separate"``; the forward pass computes its value and gradient.

    The term is a sum over tokens, so its gradient is the sum of the mini-batches' gradients. This takes one forward
    pass, where GradCache takes two, and keeps one gradient per parameter until the backward pass. It differentiates the
    unweighted sum, so half-precision gradients are about as large as with a gradient scaler.
    """

    def __init__(self, loss: CachedMultipleNegativesRankingMLMLoss, columns: list[Features]) -> None:
        self.mlm_count = 0  # number of masked tokens of all columns
        self._parameters = [parameter for parameter in loss.parameters() if parameter.requires_grad]
        self._gradients: list[Tensor | None] | None = [None] * len(self._parameters)
        # Bypass DDP, which ignores gradients that the backward pass does not accumulate.
        wrapper = unwrap_compiled(loss.model)
        model = wrapper.module if isinstance(wrapper, DistributedDataParallel) else loss.model
        sums = [
            self._run(loss, model, slice_rows(features, begin, end))
            for features in _arrange_columns(loss, columns)[0]
            for begin, end in mini_batch_ranges(features, loss.mini_batch_size, loss.mini_batch_num_tokens)
        ]
        self.mlm_sum = torch.stack(sums).sum()

    def _run(self, loss: CachedMultipleNegativesRankingMLMLoss, model: nn.Module, features: Features) -> Tensor:
        """Return the summed cross-entropy of a mini-batch, and add its gradient."""
        torch.clear_autocast_cache()  # as above
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
        """Add the gradient, times ``slope``, to the parameters' gradients."""
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
    """Return the two terms as tensors that can be added and scaled."""

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
    """Return the embeddings unchanged, and backpropagate a sum times a factor that is set after the forward pass."""

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
    """Merge columns into one batch, the longest rows first; return it and the original index of each row.

    The rows of a mini-batch then have similar lengths, and GradCache strips their shared padding. Columns that cannot
    be merged, and batches of a single mini-batch, keep their order.
    """
    columns = [dict(features) for features in columns]
    for features in columns:
        if isinstance(prompt := features.get("prompt_length"), Tensor):
            features["prompt_length"] = int(prompt.reshape(-1)[0])  # the same for all subsets of rows
    merged = merge_columns(columns)
    if merged is None:
        return columns, None
    if len(mini_batch_ranges(merged, loss.mini_batch_size, loss.mini_batch_num_tokens)) == 1:
        return [merged], None
    order = merged["attention_mask"].sum(dim=1).argsort(descending=True, stable=True)
    return [take_rows(merged, order)], order
