"""How the time of finding near-duplicates grows with the documents of one template.

    python -m benchmarks.near_duplicates

Seconds of the process, on one core, of :func:`simlte_st.data.find_duplicates` on mails that are made here, of kinds on
which a search for pairs takes time with the square of their number: all of them share most of their words.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from benchmarks.pages import document, explanation, write_results
from benchmarks.records import environment, make_parser
from simlte_st.data import find_duplicates
from simlte_st.evaluation.table import markdown_table

_VOCABULARY = [f"{first}{second}{third}" for first in ("ba", "ke", "li", "mo", "nu", "sa", "te", "vi")
               for second in ("ra", "so", "ti", "lu", "ne", "mi") for third in ("n", "st", "l", "r", "m")]  # fmt: skip


def _text(draw: random.Random, words: int) -> list[str]:
    return draw.choices(_VOCABULARY, k=words)


def one_number(draw: random.Random) -> Iterator[str]:
    """Yield one mail, with another number each time."""
    words = _text(draw, 60)
    while True:
        yield " ".join([*words[:30], str(draw.randrange(10**9)), *words[30:]])


def own_words(draw: random.Random) -> Iterator[str]:
    """Yield one mail with nine words of its own each time, in one place."""
    words = _text(draw, 60)
    while True:
        yield " ".join([*words[:30], *(str(draw.randrange(10**6)) for _ in range(9)), *words[30:]])


def fields(draw: random.Random) -> Iterator[str]:
    """Yield a form of 120 words with five fields that are filled in."""
    words = _text(draw, 120)
    while True:
        filled = list(words)
        for place in range(20, 120, 20):
            filled[place] = str(draw.randrange(10**6))
        yield " ".join(filled)


def names(draw: random.Random) -> Iterator[str]:
    """Yield a mail in which a name stands three times, another one each time."""
    words = _text(draw, 90)
    while True:
        name = f"name{draw.randrange(10**6)}"
        yield " ".join([name, *words[:40], name, *words[40:], name])


def short(draw: random.Random) -> Iterator[str]:
    """Yield an alert of twelve words, the last of them another each time."""
    words = _text(draw, 11)
    while True:
        yield " ".join([*words, str(draw.randrange(10**7))])


def templates(draw: random.Random) -> Iterator[str]:
    """Yield mails of 200 templates with two numbers each."""
    forms = [_text(draw, 80) for _ in range(200)]
    while True:
        words = list(draw.choice(forms))
        words[20], words[60] = (str(draw.randrange(10**6)) for _ in range(2))
        yield " ".join(words)


def threads(draw: random.Random) -> Iterator[str]:
    """Yield threads of up to twelve answers, each of which quotes all that came before."""
    while True:
        quoted: list[str] = []
        for _ in range(draw.randrange(1, 13)):
            quoted = [*_text(draw, 30), *quoted]
            yield " ".join(quoted)


KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "one number differs": one_number,
    "nine words of its own": own_words,
    "a form with five fields": fields,
    "a name, three times": names,
    "alerts of twelve words": short,
    "200 templates": templates,
    "threads that quote": threads,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--output")
    parser.add_argument("--mails", type=int, nargs="+", default=[1_000, 10_000, 100_000], metavar="N")
    options = parser.parse_args(argv)
    kinds = {}
    for name, kind in KINDS.items():
        kinds[name] = [measure(list(islice(kind(random.Random(0)), number))) for number in options.mails]
        print(name, kinds[name], flush=True)
    write_results("near_duplicates", {"kinds": kinds, "environment": environment()}, options.output)


def measure(texts: list[str]) -> dict[str, Any]:
    """Find the duplicates, and return the counts and the seconds of the process."""
    began = time.process_time()
    report = find_duplicates(texts).report
    return {"seconds": time.process_time() - began, **report.to_dict()}


def page(record: dict[str, Any]) -> str:
    """Return the page of the results."""
    kinds = record["kinds"]
    numbers = [each["documents"] for each in next(iter(kinds.values()))]
    rows = [
        [name, *(f"{each['seconds']:.2f}" for each in found), f"{found[-1]['exact'] + found[-1]['near']:,}"]
        for name, found in kinds.items()
    ]
    heads = ["mails", *(f"{number:,}: seconds" for number in numbers), f"duplicates of {numbers[-1]:,}"]
    return document(
        "# Near-duplicates of one template",
        explanation(__doc__),
        markdown_table(heads, rows),
        machines=[record["environment"]],
        command=f"python -m benchmarks.near_duplicates --mails {' '.join(map(str, numbers))}",
    )


if __name__ == "__main__":
    main()
