"""Train with DocSplit in the stock SentenceTransformerTrainer.

python examples/trainer_transform.py --documents 64 --epochs 2
"""

from __future__ import annotations

import argparse
import tempfile

from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from simlte_st import DocSplit, DocSplitTransform, MultipleNegativesRankingMLMLoss, trainer_callbacks
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.bbc_news import bbc_news


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64, help="maximum view length in tokens")
    arguments = parser.parse_args()

    model = load_model(PACKAGED_BASE).copy(max_seq_length=arguments.tokens).model
    articles = bbc_news()[: arguments.documents]

    views = DocSplitTransform(DocSplit(), model=model, seed=0)
    loss = MultipleNegativesRankingMLMLoss(model)
    with tempfile.TemporaryDirectory() as folder:
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=folder,
                num_train_epochs=arguments.epochs,
                per_device_train_batch_size=16,
                learning_rate=5e-5,
                logging_steps=1,
                report_to="none",
            ),
            train_dataset=views.attach(articles),
            loss=loss,
            # They set the transform's epoch, save the MLM head with checkpoints, and log each term of the loss.
            callbacks=trainer_callbacks(views, loss),
        )
        trainer.train()
    for line in trainer.state.log_history:
        if "contrastive" in line:
            print({name: line[name] for name in ("step", "contrastive", "mlm", "mean_cosine")})


if __name__ == "__main__":
    main()
