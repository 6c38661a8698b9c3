"""The papers' data sets: where to get them, under which licence, in which form; and one in numbers.

    python -m benchmarks.data
    python -m benchmarks.data arxiv --path snapshot.json

The second counts documents, classes and words (mean, median, longest; a word is what white space separates), with the
papers' own numbers beside, to see whether it is the same data.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.datasets import SETS, load_benchmark, statistics, statistics_table
from benchmarks.records import make_parser


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("name", nargs="?", choices=SETS, help="the one to count")
    parser.add_argument("--path", help="where it is, in the form it comes in")
    options = parser.parse_args(arguments)
    if options.name is None:
        for name, item in SETS.items():
            print(f"{name}: {item.card.where_to_get()}\n")
        return
    found = load_benchmark(options.name, options.path, progress=True)
    counted = statistics(found)
    print(f"{found.card.title}, from {found.source}\n{statistics_table(counted, found.card.printed)}")
    for title, numbers in (("classes", counted.labels), ("splits", counted.splits)):
        if numbers:
            print(f"{title}: {', '.join(f'{number:,} {name}' for name, number in numbers.items())}")
    print("\n".join([found.report.summary(), *(f"note: {note}" for note in found.card.notes)]))


if __name__ == "__main__":
    main()
