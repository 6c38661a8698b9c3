"""Reconstruction loss: predict each token from its embedding, so that fine-tuning forgets less (TA-SBERT)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from sentence_transformers.base.losses import uses_gradient_cache
from sentence_transformers.util.tensor import repad_flattened_features
from torch import Tensor, nn

from simlte_st.arguments import Count, NotNegative, Seed, check_arguments
from simlte_st.compat import find_loss_wrapper, get_encoder
from simlte_st.errors import ConfigurationError
from simlte_st.losses.base import Features, HeadPrecision, LossStateMixin, average_gradient, row_count
from simlte_st.losses.masked_language_model import chunked_cross_entropy


class ReconstructionLoss(HeadPrecision, LossStateMixin):
    """Add a token reconstruction term to any sentence-transformers loss.

    A linear head predicts each token from its embedding, ``r = softmax(E Wr')`` (TA-SBERT, Eq. 5), and is trained with
    cross-entropy. Special tokens count, padding does not, and nothing is masked. The mean over the tokens of all
    columns, times the number of columns and ``weight``, is added to the wrapped loss. The token embeddings come from
    the first pass of the wrapped loss, not from later passes over masked copies.

    Eq. 7, ``L_sen + 0.017 (L_recon(r1) + L_recon(r2))``, sums over columns but does not define ``L_recon``'s mean. A
    mean per column would give the tokens of shorter columns more weight. Here all tokens have the same weight; the two
    definitions agree if the columns have the same number of tokens.

    The head ``Wr`` is not part of the model. The :func:`~simlte_st.trainer_callbacks` save it with each checkpoint and
    run it in bfloat16 if the Trainer uses bfloat16: in float32, the head costs more than a small encoder.

    Args:
        loss: The wrapped loss, such as ``SoftmaxLoss`` (Eq. 6), ``MultipleNegativesRankingLoss`` or
            :class:`~simlte_st.MultipleNegativesRankingMLMLoss`. It must run the model on each text column.
        weight: Weight of the reconstruction term; the paper found 0.017 best.
        chunk_size: Number of tokens per chunk of logits.
        seed: Seed for the head's initial weights; the global random state is not affected.

    Inputs:
        The same as those of the wrapped loss.

    Returns:
        A dictionary with the wrapped loss's terms (``sentence`` if it returns a single tensor) and the weighted
        ``reconstruction`` term. The Trainer sums and logs the terms.

    Raises:
        ConfigurationError: A setting is out of range, or the wrapped loss uses ``mlm_input="shared"`` or gradient
            caching, in which the first pass keeps no autograd graph.
        ModelError: The model has no encoder with word embeddings.

    Example:
        ::

            loss = ReconstructionLoss(MultipleNegativesRankingLoss(model))
            SentenceTransformerTrainer(model, train_dataset=pairs, loss=loss).train()
    """

    @check_arguments
    def __init__(self, loss: nn.Module, weight: NotNegative = 0.017, chunk_size: Count = 1024, seed: Seed = 0) -> None:
        super().__init__()
        modules = list(loss.modules())
        cached = [module for module in modules if uses_gradient_cache(module)]
        if cached:  # the innermost comes last
            raise ConfigurationError(
                f"ReconstructionLoss cannot wrap {type(cached[-1]).__name__}, whose gradient caching keeps no graph: "
                "use the loss without caching and a smaller batch size."
            )
        if any(getattr(module, "mlm_input", "") == "shared" and getattr(module, "mlm_weight", 0) for module in modules):
            problem = "ReconstructionLoss needs unmasked texts, but with mlm_input='shared' the model reads only masked"
            raise ConfigurationError(f"{problem} texts: use mlm_input='separate'.")
        self.loss, self.model = loss, _current_model(loss)
        self.weight, self.chunk_size = weight, chunk_size
        encoder = get_encoder(self.model)
        hidden = encoder.config.hidden_size
        words = cast(nn.Embedding, encoder.get_input_embeddings())
        head = nn.utils.skip_init(nn.Linear, hidden, words.num_embeddings, bias=False)
        bound = hidden**-0.5  # as in nn.Linear
        nn.init.uniform_(head.weight, -bound, bound, generator=torch.Generator().manual_seed(seed))
        self.head = head.to(self.model.device, torch.float32)
        self.head.weight.register_post_accumulate_grad_hook(average_gradient)

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> dict[str, Tensor]:
        """Return the wrapped loss's terms and the reconstruction term by name."""
        if (wrapper := find_loss_wrapper(_current_model(self.loss))) is not None:
            raise ConfigurationError(f"ReconstructionLoss does not work inside {wrapper.name}: put it outside.")
        columns = list(sentence_features)
        rows = sum(row_count(features) for features in columns)
        outputs: list[Features] = []

        def record(module: nn.Module, inputs: object, output: Features) -> None:
            if sum(row_count(features) for features in outputs) < rows:
                outputs.append(dict(output))

        hook = _current_model(self.loss).register_forward_hook(record)
        try:
            loss = self.loss(columns, labels)
        finally:
            hook.remove()
        terms = dict(loss) if isinstance(loss, dict) else {"sentence": loss}
        terms["reconstruction"] = self.weight * len(columns) * self._mean_cross_entropy(outputs)
        return terms

    def _mean_cross_entropy(self, outputs: list[Features]) -> Tensor:
        """Return the mean cross-entropy over the non-padding tokens of several passes; 0 without any tokens."""
        padded = [repad_flattened_features(output) if "cu_seq_lens_q" in output else output for output in outputs]
        masks = [output["attention_mask"].bool() for output in padded]
        hidden = torch.cat([output["token_embeddings"][mask] for output, mask in zip(padded, masks, strict=True)])
        targets = torch.cat([output["input_ids"][mask] for output, mask in zip(padded, masks, strict=True)])
        with self.precision(hidden.device):
            total = chunked_cross_entropy(hidden.float(), self.head.weight, None, targets, self.chunk_size)
        return total / max(1, len(targets))

    def get_config_dict(self) -> dict[str, str | float]:
        """Return the settings, for the model card."""
        return {"loss": type(self.loss).__name__, "weight": self.weight}

    @property
    def citation(self) -> str:
        """BibTeX entry of the paper."""
        return """
@article{seo2022tasbert,
    title = {{TA-SBERT}: Token Attention Sentence-BERT for Improving Sentence Representation},
    author = {Seo, Jaejin and Lee, Sangwon and Liu, Ling and Choi, Wonik},
    journal = {IEEE Access},
    year = {2022},
}
"""


def _current_model(loss: nn.Module) -> Any:
    """Return the loss's current model, which the Trainer may have wrapped."""
    return getattr(loss, "model", getattr(loss, "sentence_embedder", None))  # the name in batch triplet losses
