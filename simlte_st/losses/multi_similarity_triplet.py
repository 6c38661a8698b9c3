"""AST's loss: triplets of an article, a post about it and a post about another, of which the informative are mined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.checks import check_number
from simlte_st.errors import DataError
from simlte_st.extras import require


class MultiSimilarityTripletLoss(nn.Module):
    """Triplet margin loss with multi-similarity mining, over pairs of a post and its article (AST, Eq. 7).

    ``max(0, |a - p|^2 - |a - n|^2 + margin)``, where a is an article, p a post about it, and n a post of the batch
    about another article; the mean over the triplets that are not 0. All vectors are scaled to length 1, as they are
    compared by the cosine afterwards. Of the posts, those are mined that the cosine cannot tell well
    (Wang et al., 2019): about the article, but no nearer to it than the nearest post about another, or about another,
    but no farther than the farthest about this one, each by ``epsilon``. Both are pytorch-metric-learning's.

    Args:
        model: The model.
        margin: Of the triplets.
        epsilon: Of the mining.

    Inputs:
        Two columns of texts, the posts and the articles, and a column ``label``: a number of the article, integer.
        Posts with equal numbers are about the same article and never each other's negatives, however often it stands
        in a batch.

    Raises:
        ConfigurationError: ``margin`` or ``epsilon`` is negative.
        MissingExtraError: pytorch-metric-learning is not installed (extra ``ast``).
        DataError: There are no labels, or not two columns; raised by the first batch.
    """

    def __init__(self, model: SentenceTransformer, margin: float = 0.2, epsilon: float = 0.1) -> None:
        super().__init__()
        check_number("margin", margin, least=0)
        check_number("epsilon", epsilon, least=0)
        self.model = model
        self.margin = margin
        self.epsilon = epsilon
        miners, losses, distances = (
            require(f"pytorch_metric_learning.{part}", "ast", "mining of triplets")
            for part in ("miners", "losses", "distances")
        )
        self.miner = miners.MultiSimilarityMiner(epsilon)
        self.triplets = losses.TripletMarginLoss(margin, distance=distances.LpDistance(power=2))

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Compute the loss, a scalar; 0, with a gradient of 0, where nothing is mined."""
        columns = list(sentence_features)
        if labels is None or len(columns) != 2:
            raise DataError(
                f"MultiSimilarityTripletLoss takes posts, articles and a column 'label' with a number of the article; "
                f"got {len(columns)} columns of texts and {'no ' * (labels is None)}labels."
            )
        posts, articles = (self.model(features)["sentence_embedding"].float() for features in columns)
        return self.compute_loss_from_embeddings(posts, articles, labels)

    def compute_loss_from_embeddings(self, posts: Tensor, articles: Tensor, labels: Tensor) -> Tensor:
        """Compute the loss of embeddings ``[B, d]`` and the articles' numbers ``[B]``."""
        own = labels.clone()  # of one and the same tensor the library takes row i for a copy of itself, and no pair
        mined = self.miner(articles, labels, posts, own)
        loss: Tensor = self.triplets(articles, labels, mined, posts, own)
        return loss

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"margin": self.margin, "epsilon": self.epsilon}

    @property
    def citation(self) -> str:
        """The paper, as BibTeX."""
        return """
@misc{danovitch2020linking,
    title = {Linking Social Media Posts to News with Siamese Transformers},
    author = {Danovitch, Jacob},
    year = {2020},
    eprint = {2001.03303},
    archivePrefix = {arXiv},
}
"""
