"""AST's loss: mined triplets of an article, a post about it and a post about another article."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from annotated_types import Interval
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.arguments import checked
from simlte_st.errors import DataError
from simlte_st.extras import require

NotNegative = Annotated[float, Interval(ge=0)]


class MultiSimilarityTripletLoss(nn.Module):
    """Triplet margin loss with multi-similarity mining, over pairs of a post and its article (AST, Eq. 7).

    The loss of a triplet is ``max(0, |a - p|^2 - |a - n|^2 + margin)``, where a is an article, p a post about it, and n
    a post of the batch about another article; all vectors have length 1. The loss is the mean over the triplets that
    are not 0. Those posts are mined that the cosine hardly separates (Wang et al., 2019): posts about the article that
    are not nearer to it, by ``epsilon``, than the nearest post about another, and posts about another article that are
    not farther than the farthest about this one. Both parts are pytorch-metric-learning's.

    Args:
        model: The model to train.
        margin: Margin of the triplets.
        epsilon: Margin of the mining.

    Inputs:
        Two columns of texts, posts and articles, and a column ``label``, the article's number. Posts with equal numbers
        are about the same article and never each other's negatives.

    Raises:
        ConfigurationError: ``margin`` or ``epsilon`` is negative.
        MissingExtraError: pytorch-metric-learning is not installed (extra ``ast``).
        DataError: A batch has no labels, or not two columns.
    """

    @checked
    def __init__(self, model: SentenceTransformer, margin: NotNegative = 0.2, epsilon: NotNegative = 0.1) -> None:
        super().__init__()
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
        """Return the loss, a scalar; 0, with a gradient of 0, where nothing is mined."""
        columns = list(sentence_features)
        if labels is None or len(columns) != 2:
            raise DataError(
                "MultiSimilarityTripletLoss needs posts, articles and a column 'label' with the article's number; got "
                f"{len(columns)} columns of texts and {'no ' * (labels is None)}labels."
            )
        posts, articles = (self.model(features)["sentence_embedding"].float() for features in columns)
        return self.compute_loss_from_embeddings(posts, articles, labels)

    def compute_loss_from_embeddings(self, posts: Tensor, articles: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of embeddings ``[B, d]`` and the articles' numbers ``[B]``."""
        own = labels.clone()  # with one and the same tensor the library would not pair row i with itself
        mined = self.miner(articles, labels, posts, own)
        loss: Tensor = self.triplets(articles, labels, mined, posts, own)
        return loss

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, for the model card."""
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
