"""How often documents repeat their nouns and verbs, by the length of the documents (SimLTE, equation 2 and table 3).

    python -m benchmarks.papers.redundancy my_documents
    python -m benchmarks.papers.redundancy posts.csv --limit 1000 --output nouns.json

Needs spaCy and one of its pipelines: pip install "simlte-st[pos]".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import length_hint
from typing import Any

from benchmarks.papers.command import make_parser, open_documents, report
from benchmarks.papers.tagging import SpacyTagger, TaggedWord, Tagger, batches, described
from simlte_st.data.document import count_words
from simlte_st.data.documents import read_documents
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.progress import complete, progress_bar

COUNTED = frozenset({"NOUN", "PROPN", "VERB"})
"""Universal parts of speech that count as nouns and verbs: common nouns, names, and verbs other than auxiliaries."""

BUCKETS: tuple[tuple[int, int | None], ...] = ((0, 50), (51, 100), (101, 200), (201, 300), (301, None))
"""Words of the documents in each column of the paper's table, both ends included; None: no end."""


def redundancy(words: Collection[Hashable]) -> float | None:
    """Return the number of nouns and verbs divided by that of distinct ones (SimLTE, equation 2); None without any."""
    return len(words) / len(set(words)) if words else None


def nouns_and_verbs(words: Iterable[TaggedWord], counted: Collection[str] = COUNTED) -> list[tuple[str, str]]:
    """Return the nouns and verbs of a document as part of speech and lower-case lemma.

    So "a report" and "reports" are one word, "a report" and "to report" are two.
    """
    return [(word.pos, word.lemma.casefold()) for word in words if word.pos in counted]


@dataclass(frozen=True, slots=True)
class BucketRedundancy:
    """The mean redundancy of the documents in a range of lengths, with its 95% bootstrap interval.

    ``longest`` is None without a limit, ``without`` counts documents that have neither nouns nor verbs and are in no
    mean, ``mean`` is None without documents, and ``low`` and ``high`` with fewer than two.
    """

    shortest: int
    longest: int | None
    documents: int
    without: int
    mean: float | None
    low: float | None
    high: float | None

    def name(self) -> str:
        """Return the range as the paper's table has it."""
        if self.longest is None:
            return f"more than {self.shortest - 1}" if self.shortest else "all"
        return f"{self.shortest}-{self.longest}"


@dataclass(frozen=True, slots=True)
class RedundancyResult:
    """The redundancy of a corpus, by length (:data:`BUCKETS`) and of all documents together."""

    buckets: tuple[BucketRedundancy, ...]
    all: BucketRedundancy
    tagger: dict[str, str]
    seed: int

    def rows(self) -> list[list[str]]:
        """Return words, documents and mean with its interval, for each range of lengths and for all."""
        rows = []
        for bucket in (*self.buckets, self.all):
            mean = "" if bucket.mean is None else f"{bucket.mean:.2f}"
            interval = "" if bucket.low is None else f" [{bucket.low:.2f}, {bucket.high:.2f}]"
            rows.append([bucket.name(), f"{bucket.documents:,}", mean + interval])
        return rows

    def table(self) -> str:
        """Return the rows as a Markdown table."""
        return markdown_table(["words", "documents", "redundancy [95%]"], self.rows())

    def summary(self) -> str:
        """Return a sentence on what was counted and what is missing."""
        text = f"Nouns and verbs to distinct ones in {self.all.documents:,} documents; tags: {described(self.tagger)}"
        if self.all.without:
            text += f"; {self.all.without:,} more have neither nouns nor verbs and are in no mean"
        return text + "."

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return asdict(self)


def measure_redundancy(
    documents: Any,
    tagger: Tagger,
    *,
    counted: Collection[str] = COUNTED,
    seed: int = 0,
    progress: bool = False,
) -> RedundancyResult:
    """Measure the redundancy of a corpus, reading it once with a few hundred documents in memory.

    Lengths are in words as :func:`~simlte_st.data.document.count_words` counts them.

    References:
        SimLTE, appendix A. The paper does not say whether names and auxiliaries count, nor whether a noun and a verb of
        one lemma are distinct. Of the readings that we tried, :data:`COUNTED` and :func:`nouns_and_verbs` come closest
        to its numbers for 20News.
    """
    measured: list[tuple[int, float | None]] = []
    reader = read_documents(documents)
    with progress_bar("Tagging", length_hint(reader, 0) or None, shown=progress) as bar:
        for batch in batches(reader):
            texts = [document.text for document in batch]
            for text, words in zip(texts, tagger.tag(texts), strict=True):
                measured.append((count_words(text), redundancy(nouns_and_verbs(words, counted))))
            bar.update(len(batch))
        complete(bar)
    return RedundancyResult(
        buckets=tuple(_bucket(measured, shortest, longest, seed) for shortest, longest in BUCKETS),
        all=_bucket(measured, 0, None, seed),
        tagger=tagger.describe(),
        seed=seed,
    )


def _bucket(
    measured: Sequence[tuple[int, float | None]], shortest: int, longest: int | None, seed: int
) -> BucketRedundancy:
    ratios = [value for words, value in measured if words >= shortest and (longest is None or words <= longest)]
    values = [value for value in ratios if value is not None]
    low, high = bootstrap_interval(values, seed=seed) if len(values) > 1 else (None, None)
    return BucketRedundancy(
        shortest=shortest,
        longest=longest,
        documents=len(values),
        without=len(ratios) - len(values),
        mean=sum(values) / len(values) if values else None,
        low=low,
        high=high,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = make_parser(__doc__, models=False).parse_args(arguments)
    tagger, reader = SpacyTagger(), open_documents(options)
    result = measure_redundancy(reader, tagger)
    report(options, f"{result.table()}\n{result.summary()}", result.to_dict(), reader)


if __name__ == "__main__":
    main()
