"""A folder of text files to a model, with the function behind ``simlte train``, and whether training helped.

    python examples/train_folder.py my_documents --output my-model

Some documents are held out. Where training does not clearly help on them, ``my-model`` holds the base, and what was
trained is in ``my-model.trained``.
"""

from __future__ import annotations

import argparse

from simlte_st import train
from simlte_st.models.names import PACKAGED_BASE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="folder of .txt and .md files, or any other source that `simlte train` takes")
    parser.add_argument("--output", default="my-model")
    parser.add_argument("--base", default=PACKAGED_BASE)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--tokens", type=int, default=64, help="tokens a view may have")
    arguments = parser.parse_args()

    result = train(
        arguments.source,
        arguments.output,
        base=arguments.base,
        max_steps=arguments.max_steps,
        max_view_length=arguments.tokens,
    )
    print(result.summary())
    print("Verdict:", result.gain["verdict"] if result.gain else "none, as too few documents were held out")
    print(f"{result.output} holds", "what was trained." if result.kept == "trained" else "the base.")


if __name__ == "__main__":
    main()
