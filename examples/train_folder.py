"""A folder of text files to a model, with the function behind ``simlte train``.

python examples/train_folder.py my_documents --output my-model
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


if __name__ == "__main__":
    main()
