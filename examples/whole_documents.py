"""Read whole documents with a model of 256 tokens, by the mean over chunks.

python examples/whole_documents.py --output reads-it-all

The package also ships ``SentenceTransformer("simlte-longformer")``, which reads 4,096 tokens at once.
"""

from __future__ import annotations

import argparse

from simlte_st import SentenceTransformer
from simlte_st.models.conversion import convert_base
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.bbc_news import bbc_news


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="reads-it-all")
    parser.add_argument("--documents", type=int, default=5)
    arguments = parser.parse_args()

    convert_base(PACKAGED_BASE, arguments.output, overwrite=True)
    model = SentenceTransformer(arguments.output)

    longest = sorted(bbc_news(), key=lambda article: len(article.text))[-arguments.documents :]
    vectors = model.encode([article.text for article in longest])
    for article, vector in zip(longest, vectors, strict=True):
        print(f"{article.id}: {len(article.text.split()):,} words, all read: a vector of {len(vector)} numbers")


if __name__ == "__main__":
    main()
