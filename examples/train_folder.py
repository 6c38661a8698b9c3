"""Train a model on a folder of text files, and see whether it helped: ``simlte train`` in Python.

    python examples/train_folder.py my_documents --output my-model

Training holds out some documents to measure the improvement. Without a clear improvement, ``my-model`` is the base and
``my-model.trained`` the trained model.
"""

from __future__ import annotations

import argparse

from simlte_st import train
from simlte_st.models.names import PACKAGED_BASE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="folder of text files, or any other source that `simlte train` accepts")
    parser.add_argument("--output", default="my-model")
    parser.add_argument("--base", default=PACKAGED_BASE)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--tokens", type=int, default=64, help="maximum view length in tokens")
    arguments = parser.parse_args()

    result = train(
        arguments.source,
        arguments.output,
        base=arguments.base,
        max_steps=arguments.max_steps,
        max_view_length=arguments.tokens,
    )
    print(result.summary())
    print("Verdict:", result.gain["verdict"] if result.gain else "too few held-out documents")
    print(f"{result.output} holds", "the trained model." if result.kept == "trained" else "the base.")


if __name__ == "__main__":
    main()
