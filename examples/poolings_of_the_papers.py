"""The papers' own poolings in a training: TA-SBERT's token attention and AST's Star Transformer, on DocSplit's views.

python examples/poolings_of_the_papers.py --pooling star-transformer
"""

from __future__ import annotations

import argparse
import tempfile

from bbc_news import bbc_news
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from simlte_st import DocSplit, DocSplitTransform, trainer_callbacks
from simlte_st.losses import ReconstructionLoss
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules import StarTransformer, TokenAttention


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pooling", choices=["token-attention", "star-transformer"], default="token-attention")
    parser.add_argument("--documents", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=64, help="tokens a view may have")
    arguments = parser.parse_args()

    transformer = load_model(PACKAGED_BASE, max_seq_length=arguments.tokens).model[0]
    width = transformer.get_embedding_dimension()
    star = arguments.pooling == "star-transformer"
    model = SentenceTransformer(modules=[transformer, StarTransformer(width) if star else TokenAttention(width)])

    views = DocSplitTransform(DocSplit(), model=model, seed=0)
    ranking = MultipleNegativesRankingLoss(model)
    loss = ranking if star else ReconstructionLoss(ranking)  # TA-SBERT also tells each token from the embedding
    with tempfile.TemporaryDirectory() as folder:
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=folder,
                num_train_epochs=arguments.epochs,
                per_device_train_batch_size=16,
                # All but the encoder learn faster, as in the paper.
                learning_rate_mapping={r"^(?!.*\b(model|sentence_embedder)\.0\.)": 3e-5},
                learning_rate=2e-5,
                logging_steps=1,
                report_to="none",
            ),
            train_dataset=views.attach(bbc_news()[: arguments.documents]),
            loss=loss,
            callbacks=trainer_callbacks(views, loss),
        )
        trainer.train()
    weights = model(model.preprocess(["Shares fell after the merger failed."]))["token_attention"]
    print("Weights of the tokens:", [round(float(weight), 3) for weight in weights.flatten()])


if __name__ == "__main__":
    main()
