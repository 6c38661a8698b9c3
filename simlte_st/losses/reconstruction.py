"""Reconstruction loss: embeddings predict their tokens, so that fine-tuning forgets less (TA-SBERT)."""

from __future__ import annotations

from typing import Annotated, Any, cast

import torch
from annotated_types import Interval
from sentence_transformers.base.losses import uses_gradient_cache
from sentence_transformers.util.tensor import repad_flattened_features
from torch import Tensor, nn

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.compat import get_encoder
from simlte_st.errors import ConfigurationError
from simlte_st.losses.columns import row_count
from simlte_st.losses.loss_state import LossStateMixin, average_gradient
from simlte_st.losses.masked_language_model import HeadPrecision, chunked_cross_entropy


class ReconstructionLoss(HeadPrecision, LossStateMixin):
    """Add the prediction of each token from its embedding to any sentence-transformers loss.

    ``r = softmax(E Wr')`` (TA-SBERT, Eq. 5) is trained with cross-entropy on the ids of all tokens, including special
    tokens and excluding padding; nothing is masked. The mean over the tokens of all columns, times the number of
    columns and ``weight``, is added to the wrapped loss. The token embeddings come from the wrapped loss's first pass,
    not from a later pass over masked copies.

    Eq. 7, ``L_sen + 0.017 (L_recon(r1) + L_recon(r2))``, sums over columns without defining the mean in ``L_recon``. A
    mean over each column's tokens would give tokens of shorter columns more weight. Here all tokens have the same
    weight; the two agree if the columns have the same number of tokens.

    The head ``Wr`` is not part of the model. :func:`~simlte_st.trainer_callbacks` save it with checkpoints and let it
    compute in bfloat16 if the Trainer does: in float32 it costs more than a small encoder.

    Args:
        loss: The wrapped loss, such as ``SoftmaxLoss`` (Eq. 6), ``MultipleNegativesRankingLoss`` or
            :class:`~simlte_st.MultipleNegativesRankingMLMLoss`. It must run the model on each column of texts.
        weight: Weight of the reconstruction; the paper found 0.017 best.
        chunk_size: Number of tokens per chunk of logits.
        seed: Seed of the head's initial weights; the global random state does not change.

    Inputs:
        The inputs of the wrapped loss.

    Returns:
        A dictionary with the wrapped loss's terms, or ``sentence``, and the weighted ``reconstruction``. The Trainer
        sums and logs them.

    Raises:
        ConfigurationError: A setting is out of range, or the wrapped loss uses gradient caching, whose passes keep no
            graph, or ``mlm_input="shared"``.
        ModelError: The model has no encoder with word embeddings.

    Example:
        ::

            loss = ReconstructionLoss(MultipleNegativesRankingLoss(model))
            SentenceTransformerTrainer(model, train_dataset=pairs, loss=loss).train()
    """

    @check_arguments
    def __init__(
        self,
        loss: nn.Module,
        weight: Annotated[float, Interval(ge=0)] = 0.017,
        chunk_size: Count = 1024,
        seed: Seed = 0,
    ) -> None:
        super().__init__()
        inner = list(loss.modules())
        cached = [part for part in inner if uses_gradient_cache(part)]
        if cached:  # the innermost is the last
            raise ConfigurationError(
                f"ReconstructionLoss cannot wrap {type(cached[-1]).__name__}, whose gradient caching keeps no graph: "
                "use the loss without caching, and a smaller batch."
            )
        if any(getattr(part, "mlm_input", None) == "shared" and getattr(part, "mlm_weight", 0) > 0 for part in inner):
            raise ConfigurationError(
                "ReconstructionLoss needs unmasked texts, but with mlm_input='shared' the model reads only masked "
                "ones: use mlm_input='separate'."
            )
        model = _current_model(loss)
        self.loss = loss
        self.model = model
        self.weight = weight
        self.chunk_size = chunk_size
        encoder = get_encoder(model)
        hidden = encoder.config.hidden_size
        words = cast(nn.Embedding, encoder.get_input_embeddings())
        head = nn.utils.skip_init(nn.Linear, hidden, words.num_embeddings, bias=False)
        bound = hidden**-0.5  # nn.Linear's own
        nn.init.uniform_(head.weight, -bound, bound, generator=torch.Generator().manual_seed(seed))
        self.head = head.to(model.device, torch.float32)
        self.head.weight.register_post_accumulate_grad_hook(average_gradient)

    def forward(self, sentence_features: Any, labels: Any = None) -> dict[str, Tensor]:
        """Return all terms."""
        columns = list(sentence_features)
        wanted = sum(row_count(features) for features in columns)
        seen: list[dict[str, Any]] = []

        def see(module: nn.Module, inputs: Any, output: dict[str, Any]) -> None:
            if sum(row_count(features) for features in seen) < wanted:
                seen.append(dict(output))

        hook = _current_model(self.loss).register_forward_hook(see)
        try:
            result = self.loss(columns, labels)
        finally:
            hook.remove()
        terms = dict(result) if isinstance(result, dict) else {"sentence": result}
        terms["reconstruction"] = self.weight * len(columns) * self._mean(seen)
        return terms

    def _mean(self, outputs: list[dict[str, Any]]) -> Tensor:
        """Return the mean cross-entropy over the tokens of some passes, without padding; 0 if there are none."""
        padded = [repad_flattened_features(out) if "cu_seq_lens_q" in out else out for out in outputs]
        real = [out["attention_mask"].bool() for out in padded]
        hidden = torch.cat([out["token_embeddings"][mask] for out, mask in zip(padded, real, strict=True)])
        targets = torch.cat([out["input_ids"][mask] for out, mask in zip(padded, real, strict=True)])
        with self.precision(hidden.device):
            total = chunked_cross_entropy(hidden.float(), self.head.weight, None, targets, self.chunk_size)
        return total / max(1, len(targets))

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, for the model card."""
        return {"loss": type(self.loss).__name__, "weight": self.weight}

    @property
    def citation(self) -> str:
        """The paper, as BibTeX."""
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
