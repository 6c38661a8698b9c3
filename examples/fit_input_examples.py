"""Train with DocSplit, ``SentenceTransformer.fit`` and ``InputExample``.

    python examples/fit_input_examples.py --documents 64 --epochs 2

``docsplit_objectives`` makes one data loader per epoch, each with its own views; ``fit`` draws from each in turn.
"""

from __future__ import annotations

import argparse
import tempfile

from simlte_st.data import DocSplit, docsplit_examples, docsplit_objectives
from simlte_st.losses import MultipleNegativesRankingMLMLoss
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
    documents = [{"id": article.id, "text": article.text} for article in bbc_news()[: arguments.documents]]

    example = next(iter(docsplit_examples(documents, view=DocSplit(), seed=0, epoch=0, model=model)))
    print("View A:", example.texts[0][:100], "...\nView B:", example.texts[1][:100], "...")

    loss = MultipleNegativesRankingMLMLoss(model)
    objectives = docsplit_objectives(documents, loss, epochs=arguments.epochs, batch_size=16, model=model)
    with tempfile.TemporaryDirectory() as folder:
        model.fit(
            train_objectives=objectives,
            epochs=1,  # the epochs are inside the objectives
            warmup_steps=0,
            optimizer_params={"lr": 5e-5},
            checkpoint_path=folder,
        )
    print("Trained. A vector has", model.encode(documents[0]["text"]).shape[0], "dimensions.")


if __name__ == "__main__":
    main()
