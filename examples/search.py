"""Index documents, search them, and explain the hits.

python examples/search.py "a takeover that shareholders refuse" --index news.index
"""

from __future__ import annotations

import argparse

from simlte_st import Index
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.bbc_news import bbc_news


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("query", nargs="?", default="a takeover that shareholders refuse")
    parser.add_argument("--index", default="news.index", help="folder of the index, created if missing")
    parser.add_argument("--model", default=PACKAGED_BASE)
    parser.add_argument("--documents", type=int, default=400)
    arguments = parser.parse_args()

    index = Index.create(arguments.index, arguments.model, exist_ok=True)
    articles = bbc_news()[:: max(1, 2000 // arguments.documents)]
    print(index.add(articles).summary())

    print(f"\nHits for: {arguments.query}")
    for hit in index.search(arguments.query, top_k=3, explain=True):
        words = ", ".join(word for word, _ in hit.words)
        print(f"- {hit.id} (cosine {hit.cosine:.2f}): {hit.sentences[0][0][:90]} [{words}]")


if __name__ == "__main__":
    main()
