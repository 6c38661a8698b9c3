from __future__ import annotations

from typing import Any

import pytest
import torch
from losses_support import columns_of
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor

from simlte_st.errors import ConfigurationError
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.losses.loss_state import LossStateMixin
from simlte_st.losses.masked_language_model import make_mlm_head


class WordLoss(LossStateMixin):
    """No MLM loss, but one with a head, around any other loss: each text's embedding has to name its tokens."""

    def __init__(self, model: SentenceTransformer, loss: torch.nn.Module, seed: int = 0) -> None:
        super().__init__()
        self.model = model
        self.loss = loss
        self.word_head = make_mlm_head(model, "fresh", seed)

    def forward(self, sentence_features: list[dict[str, Any]], labels: Any) -> Tensor:
        words = self.model[0].auto_model.get_input_embeddings().weight
        total = torch.zeros(())
        for features in sentence_features:
            embeddings = self.model(dict(features))["sentence_embedding"]
            total = total + self.word_head.summed_loss(embeddings, words, features["input_ids"][:, 1], 4)
        return total


PARAMETERS = {"dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias"}


@pytest.mark.parametrize("mlm", [True, False])
def test_the_state_of_a_loss_is_its_own_and_that_of_the_losses_it_wraps(
    model: SentenceTransformer, documents: list[str], mlm: bool
) -> None:
    model.eval()
    inner = MultipleNegativesRankingMLMLoss if mlm else MultipleNegativesRankingLoss
    first, second = (WordLoss(model, inner(model), seed) for seed in (1, 2))
    columns = columns_of(model, documents)
    state = {name: value.clone() for name, value in first.extra_state().items()}
    inners = {"loss.batches", *(f"loss.mlm_head.{name}" for name in PARAMETERS)} if mlm else set()
    assert state.keys() == {f"word_head.{name}" for name in PARAMETERS} | inners
    assert not torch.equal(first(columns, None), second(columns, None))
    first.load_extra_state(state)
    second.load_extra_state(state)
    assert torch.equal(first(columns, None), second(columns, None))
    with pytest.raises(ConfigurationError, match="The saved loss"):
        second.load_extra_state({"word_head.bias": state["word_head.bias"]})
    with pytest.raises(RuntimeError, match="size mismatch"):
        second.load_extra_state({**state, "word_head.bias": torch.zeros(1)})
