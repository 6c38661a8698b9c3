"""AST's loss over mined triplets of an article, a post about it, and a post about another article."""

from __future__ import annotations

from collections.abc import Iterable

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.arguments import NotNegative, check_arguments
from simlte_st.errors import DataError
from simlte_st.extras import require
from simlte_st.losses.base import Features


class MultiSimilarityTripletLoss(nn.Module):
    """Triplet margin loss with multi-similarity mining over pairs of posts and articles (AST, Eq. 7).

    The loss of a triplet is ``max(0, |a - p|^2 - |a - n|^2 + margin)`` for an article a, a post p about it, and a
    post n from the batch about another article; all vectors have length 1. The loss is the mean over the triplets with
    a nonzero loss. Mining keeps the posts that are hard to tell apart by cosine (Wang et al., 2019): positives that are
    not at least ``epsilon`` more similar to the article than its most similar negative, and negatives that are not at
    least ``epsilon`` less similar than its least similar positive. pytorch-metric-learning does the mining and computes
    the loss.

    Args:
        model: The model to train.
        margin: Margin of the triplet loss.
        epsilon: Mining margin, as a difference of cosines.

    Inputs:
        Two text columns, posts and articles, and a ``label`` column with the article's number. Posts with the same
        number are about the same article and are never negatives of each other.

    Raises:
        ConfigurationError: ``margin`` or ``epsilon`` is negative.
        MissingExtraError: pytorch-metric-learning is not installed (the ``ast`` extra).
        DataError: A batch lacks labels or does not have two text columns.
    """

    @check_arguments
    def __init__(self, model: SentenceTransformer, margin: NotNegative = 0.2, epsilon: NotNegative = 0.1) -> None:
        super().__init__()
        self.model, self.margin, self.epsilon = model, margin, epsilon
        names = (f"pytorch_metric_learning.{part}" for part in ("miners", "losses", "distances"))
        miners, losses, distances = (require(name, "ast", "triplet mining") for name in names)
        self.miner = miners.MultiSimilarityMiner(epsilon)
        self.triplets = losses.TripletMarginLoss(margin, distance=distances.LpDistance(power=2))

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> Tensor:
        """Return the loss, a scalar. If no triplet is mined, the loss and its gradient are 0."""
        columns = list(sentence_features)
        if labels is None or len(columns) != 2:
            problem = "MultiSimilarityTripletLoss needs posts, articles and a 'label' column with the article's number"
            raise DataError(f"{problem}; got {len(columns)} text columns and {'no ' * (labels is None)}labels.")
        posts, articles = (self.model(features)["sentence_embedding"].float() for features in columns)
        return self.compute_loss_from_embeddings(posts, articles, labels)

    def compute_loss_from_embeddings(self, posts: Tensor, articles: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss from embeddings, ``(batch, dim)``, and article numbers, ``(batch,)``."""
        post_labels = labels.clone()  # a copy: given one tensor twice, the library never pairs row i with itself
        mined = self.miner(articles, labels, posts, post_labels)
        loss: Tensor = self.triplets(articles, labels, mined, posts, post_labels)
        return loss

    def get_config_dict(self) -> dict[str, float]:
        """Return the settings, for the model card."""
        return {"margin": self.margin, "epsilon": self.epsilon}

    @property
    def citation(self) -> str:
        """BibTeX entry of the paper."""
        return """
@misc{danovitch2020linking,
    title = {Linking Social Media Posts to News with Siamese Transformers},
    author = {Danovitch, Jacob},
    year = {2020},
    eprint = {2001.03303},
    archivePrefix = {arXiv},
}
"""
