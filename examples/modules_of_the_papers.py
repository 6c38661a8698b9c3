"""Train the modules of TA-SBERT and AST with the stock Trainer, each with the loss of its paper.

    python examples/modules_of_the_papers.py

Both models begin with TA-SBERT's base form, which expands "won't" to "will not". The encoder is the packaged MiniLM, so
nothing is downloaded; the papers start from a bare BERT and from word vectors. Requires the extras ``demo``, ``pos``
and ``ast``.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from simlte_st import DocSplitTransform, trainer_callbacks
from simlte_st.data import Document
from simlte_st.losses import MultiSimilarityTripletLoss, ReconstructionLoss
from simlte_st.models.names import packaged_base_path
from simlte_st.modules import BaseForm, StarTransformer, TokenAttention
from simlte_st.reading.bbc_news import bbc_news


def ta_sbert(transformer: BaseForm, articles: list[Document]) -> SentenceTransformer:
    """Weight tokens by token attention, and learn which halves are of the same article."""
    model = SentenceTransformer(modules=[transformer, TokenAttention(transformer.get_embedding_dimension())])
    loss = ReconstructionLoss(MultipleNegativesRankingLoss(model))  # also predicts each token from its embedding
    views = DocSplitTransform(model=model, seed=0)
    train(model, views.attach(articles), loss, callbacks=trainer_callbacks(views, loss))
    return model


def ast(transformer: BaseForm, articles: list[Document]) -> SentenceTransformer:
    """Pool tokens with a Star Transformer, and learn from posts and the articles they discuss.

    The posts are titles, removed from their articles.
    """
    model = SentenceTransformer(modules=[transformer, StarTransformer(transformer.get_embedding_dimension())])
    parts = [article.text.strip().partition("\n") for article in articles]
    pairs = [{"post": post, "article": text, "label": number} for number, (post, _, text) in enumerate(parts)]
    train(model, Dataset.from_list(pairs), MultiSimilarityTripletLoss(model))
    return model


def train(model: SentenceTransformer, data: Dataset, loss: Any, callbacks: list[Any] | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=16,
            # All parameters except the encoder's learn faster, as in TA-SBERT.
            learning_rate_mapping={r"^(?!.*\b(model|sentence_embedder)\.0\.)": 3e-5},
            learning_rate=2e-5,
            report_to="none",
        )
        SentenceTransformerTrainer(model, arguments, data, loss=loss, callbacks=callbacks).train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64, help="maximum text length in tokens")
    arguments = parser.parse_args()

    for paper in (ta_sbert, ast):
        transformer = BaseForm(str(packaged_base_path()))
        transformer.max_seq_length = arguments.tokens
        model = paper(transformer, bbc_news()[: arguments.documents])

        features = model.preprocess(["Shares won't rise after the merger failed."])
        tokens = model.tokenizer.convert_ids_to_tokens(features["input_ids"][0])
        weights = model(features)["token_attention"].flatten().tolist()
        print(
            f"Weights of {paper.__name__}:",
            *(f"{token} {weight:.2f}" for token, weight in zip(tokens, weights, strict=True)),
        )


if __name__ == "__main__":
    main()
