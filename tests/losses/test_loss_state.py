from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest
import torch
from losses_support import columns_of
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor

from simlte_st.errors import ConfigurationError
from simlte_st.losses import MultipleNegativesRankingMLMLoss
from simlte_st.losses.loss_state import BatchMetrics, LossStateMixin
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


def naive(anchors: Tensor, positives: Tensor) -> dict[str, float]:
    a = [(row / row.norm()).double() for row in anchors.detach()]
    b = [(row / row.norm()).double() for row in positives.detach()]
    pairs = list(permutations(range(len(a)), 2))
    kernels = [math.exp(-2 * float((side[i] - side[j]).square().sum())) for side in (a, b) for i, j in pairs]
    return {
        "alignment": sum(float((x - y).square().sum()) for x, y in zip(a, b, strict=True)) / len(a),
        "mean_cosine": sum(float(a[i] @ b[j]) for i, j in pairs) / len(pairs),
        "uniformity": math.log(sum(kernels) / len(kernels)),
    }


def batch(seed: int, rows: int, columns: int = 2) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(rows, 6, generator=generator) + 1.0
    # Of any length, and the second view near the first.
    return [3.0 * first + column * torch.randn(rows, 6, generator=generator) for column in range(columns)]


def test_one_batch_against_loops() -> None:
    metrics = BatchMetrics()
    embeddings = batch(0, 7)
    metrics.update(embeddings)
    taken = metrics.take()
    assert taken == pytest.approx(naive(*embeddings), abs=6e-5)  # rounded to four digits
    assert len({*taken.values(), 0.0}) == 4


def test_the_mean_over_batches_and_take_starts_anew() -> None:
    metrics = BatchMetrics()
    assert metrics.take() == {}
    batches = [batch(seed, rows) for seed, rows in ((1, 4), (2, 9), (3, 2))]
    for embeddings in batches:
        metrics.update(embeddings)
    values = [naive(*embeddings) for embeddings in batches]
    assert metrics.take() == pytest.approx({n: sum(v[n] for v in values) / 3 for n in values[0]}, abs=6e-5)
    assert metrics.take() == {}
    metrics.update(batches[0])
    assert metrics.take() == pytest.approx(values[0], abs=6e-5)


def test_a_batch_of_one_document_has_no_pairs() -> None:
    metrics = BatchMetrics()
    single, whole = batch(4, 1), batch(5, 5)
    alignment = float((single[0] / single[0].norm() - single[1] / single[1].norm()).square().sum())
    metrics.update(single)
    assert metrics.take() == pytest.approx({"alignment": alignment}, abs=6e-5)
    # Nor does it count among the batches that have some.
    metrics.update(whole)
    metrics.update(single)
    expected = naive(*whole)
    expected["alignment"] = (expected["alignment"] + alignment) / 2
    assert metrics.take() == pytest.approx(expected, abs=6e-5)
