from __future__ import annotations

from pathlib import Path

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional
from training_support import stock_trainer

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.losses import MultiSimilarityTripletLoss

pytest.importorskip("pytorch_metric_learning")


def brute_force(posts: Tensor, articles: Tensor, labels: list[int], margin: float, epsilon: float) -> Tensor:
    """Wang et al. (2019), Eq. 7 and 8, then AST, Eq. 7, with loops."""
    posts, articles = functional.normalize(posts, dim=-1), functional.normalize(articles, dim=-1)
    found = []
    for row, article in enumerate(articles):
        alike = posts @ article
        near = [post for post, label in enumerate(labels) if label == labels[row]]
        far = [post for post, label in enumerate(labels) if label != labels[row]]
        if not far:
            continue
        positives = [post for post in near if alike[post] - epsilon < max(alike[other] for other in far)]
        negatives = [post for post in far if alike[post] + epsilon > min(alike[other] for other in near)]
        for positive in positives:
            for negative in negatives:
                distances = [(article - posts[post]).square().sum() for post in (positive, negative)]
                found.append(functional.relu(distances[0] - distances[1] + margin))
    wrong = [value for value in found if value > 0]
    return torch.stack(wrong).mean() if wrong else (posts.sum() + articles.sum()) * 0


@pytest.mark.parametrize("labels", [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 1, 2], [3, 3, 3, 3, 3, 3]])
def test_loss_matches_brute_force(model: SentenceTransformer, labels: list[int]) -> None:
    loss = MultiSimilarityTripletLoss(model, margin=0.3, epsilon=0.05)
    generator = torch.Generator().manual_seed(len(set(labels)))
    sides = [torch.randn(6, 5, generator=generator).requires_grad_() for _ in range(2)]
    found = loss.compute_loss_from_embeddings(*sides, torch.tensor(labels))
    expected = brute_force(*sides, labels, margin=0.3, epsilon=0.05)
    torch.testing.assert_close(found, expected)
    assert (found > 0) == (len(set(labels)) > 1)
    gradients = [torch.autograd.grad(v, sides, allow_unused=True, materialize_grads=True) for v in (found, expected)]
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


def test_stock_trainer_lowers_the_loss(model: SentenceTransformer, tmp_path: Path) -> None:
    posts = [f"ba {word}" for word in ("ca", "da", "fa", "ga")] * 4
    articles = [f"{word} ca. " * 6 for word in ("ca", "da", "fa", "ga")] * 4
    dataset = Dataset.from_dict({"post": posts, "article": articles, "label": [0, 1, 2, 3] * 4})
    settings = {"per_device_train_batch_size": 8, "num_train_epochs": 4, "learning_rate": 1e-3, "logging_steps": 1}
    loss = MultiSimilarityTripletLoss(model)
    trainer = stock_trainer(model, loss, dataset, tmp_path, save_strategy="no", **settings)
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert losses[-1] < losses[0]


def test_invalid_inputs_are_refused(model: SentenceTransformer) -> None:
    with pytest.raises(ConfigurationError, match="margin=-1"):
        MultiSimilarityTripletLoss(model, margin=-1)
    loss = MultiSimilarityTripletLoss(model)
    features = [model.preprocess(["ba", "ca"]) for _ in range(3)]
    with pytest.raises(DataError, match=r"2 text columns.* no labels"):
        loss(features[:2], None)
    with pytest.raises(DataError, match=r"3 text columns.* and labels"):
        loss(features, torch.tensor([0, 1]))
    assert loss.get_config_dict() == {"margin": 0.2, "epsilon": 0.1}
    assert "Siamese Transformers" in loss.citation
