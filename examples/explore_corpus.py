"""Explore a corpus without labels: topics, a map and near-duplicates on one HTML page.

python examples/explore_corpus.py --output corpus.html
"""

from __future__ import annotations

import argparse

from simlte_st import explore
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.bbc_news import bbc_news


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="corpus.html")
    parser.add_argument("--model", default=PACKAGED_BASE)
    parser.add_argument("--documents", type=int, default=400)
    arguments = parser.parse_args()

    articles = bbc_news()[:: max(1, 2000 // arguments.documents)]
    report = explore(arguments.model, articles, output=arguments.output, overwrite=True)
    for name, size in report.topics:
        print(f"{size:>4}  {name}")
    print(f"Open {report.page} in a browser; {report.table} has the same data as a table.")


if __name__ == "__main__":
    main()
