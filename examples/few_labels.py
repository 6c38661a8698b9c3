"""Classify documents with five labels per class, on a model's vectors, without fine-tuning.

    python examples/few_labels.py --model my-model

If SetFit is installed (``pip install "setfit>=1.2"``), the script also fine-tunes the model with these labels, which
takes about two CPU minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.util import find_spec

from datasets import Dataset
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import f1_score

from simlte_st import SentenceTransformer
from simlte_st.evaluation import draw_shots, split_by_label
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.bbc_news import bbc_news


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=PACKAGED_BASE, help="folder or name (default: the packaged MiniLM)")
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--shots", type=int, default=5, help="labelled documents per class")
    parser.add_argument("--setfit-steps", type=int, default=20)
    arguments = parser.parse_args()

    model = SentenceTransformer(arguments.model)
    labelled, test = split_by_label(bbc_news()[:: max(1, 2000 // arguments.documents)], 0.5, seed=0)
    rows = draw_shots([article.label for article in labelled], arguments.shots, draw=0, seed=0)
    shots = [labelled[row] for row in rows]

    classifier = LogisticRegressionCV(Cs=[1, 10, 100, 1000], cv=2, scoring="accuracy", max_iter=2000)
    classifier.fit(model.encode([article.text for article in shots]), [article.label for article in shots])
    predicted = classifier.predict(model.encode([article.text for article in test]))
    score = f1_score([article.label for article in test], predicted, average="macro")
    print(f"Macro-F1 on {len(test)} articles after {len(shots)} labelled ones: {100 * score:.1f}")

    if not find_spec("setfit"):
        print("SetFit is not installed.")
        return
    from setfit import SetFitModel, Trainer, TrainingArguments

    examples = Dataset.from_dict({"text": [shot.text for shot in shots], "label": [shot.label for shot in shots]})
    tuned = SetFitModel(model_body=model, model_head=LogisticRegression(max_iter=2000))
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(folder, max_steps=arguments.setfit_steps, batch_size=8, report_to="none")
        Trainer(tuned, settings, train_dataset=examples).train()
    predicted = list(tuned.predict([article.text for article in test]))
    score = f1_score([article.label for article in test], predicted, average="macro")
    print(f"Macro-F1 of SetFit after {arguments.setfit_steps} steps: {100 * score:.1f}")


if __name__ == "__main__":
    main()
