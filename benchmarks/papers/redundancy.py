"""How often documents repeat their nouns and verbs, by the length of the documents (SimLTE, equation 2 and table 3).

    python -m benchmarks.papers.redundancy my_documents
    python -m benchmarks.papers.redundancy posts.csv --limit 1000 --output nouns.json

Needs spaCy and one of its pipelines: pip install "simlte-st[pos]".
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers.command import make_parser, open_documents, report
from simlte_st.exploration.redundancy import measure_redundancy
from simlte_st.exploration.tagging import SpacyTagger


def main(arguments: Sequence[str] | None = None) -> None:
    options = make_parser(__doc__, models=False).parse_args(arguments)
    tagger, reader = SpacyTagger(), open_documents(options)
    result = measure_redundancy(reader, tagger)
    report(options, f"{result.table()}\n{result.summary()}", result.to_dict(), reader)


if __name__ == "__main__":
    main()
