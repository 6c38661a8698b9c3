"""How often documents repeat their nouns and verbs, by the length of the documents (SimLTE, equation 2 and table 3).

    python -m benchmarks.papers.redundancy my_documents
    python -m benchmarks.papers.redundancy posts.csv --limit 1000 --output nouns.json

Needs spaCy and one of its pipelines: pip install "simlte-st[pos]".
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers.command import add_tagger, check_files, make_parser, open_documents, report, short_errors
from simlte_st.exploration.redundancy import measure_redundancy
from simlte_st.exploration.tagging import SpacyTagger


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, models=False)
    add_tagger(parser)
    options = parser.parse_args(arguments)
    with short_errors():
        check_files(options)
        tagger, reader = SpacyTagger(options.pipeline), open_documents(options)
        result = measure_redundancy(reader, tagger, seed=options.seed, progress=not options.quiet)
        report(options, f"{result.table()}\n{result.summary()}", result.to_dict(), reader)


if __name__ == "__main__":
    main()
