"""How often documents repeat their nouns and verbs, by the length of the documents (SimLTE, equation 2 and table 3)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import length_hint
from typing import Any

from simlte_st.data.document import count_words
from simlte_st.data.documents import read_documents
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.exploration.tagging import TaggedWord, Tagger, batches, described
from simlte_st.progress import complete, progress_bar

COUNTED = frozenset({"NOUN", "PROPN", "VERB"})
"""Universal parts of speech that count as nouns and verbs: common nouns, names, and verbs other than auxiliaries."""

BUCKETS: tuple[tuple[int, int | None], ...] = ((0, 50), (51, 100), (101, 200), (201, 300), (301, None))
"""Words of the documents in each column of the paper's table, both ends included; None: no end."""


def redundancy(words: Collection[Hashable]) -> float | None:
    """Divide the number of nouns and verbs by the number of distinct ones (SimLTE, equation 2).

    Args:
        words: A document's nouns and verbs without their inflection, each as often as it occurs.

    Returns:
        A number in ``[1, len(words)]``: 1 where nothing is repeated, ``len(words)`` where all are one word. None for a
        document without nouns and verbs, for which the equation says nothing.
    """
    return len(words) / len(set(words)) if words else None


def nouns_and_verbs(words: Iterable[TaggedWord], counted: Collection[str] = COUNTED) -> list[tuple[str, str]]:
    """Return a document's nouns and verbs as part of speech and lemma, without regard to case.

    So "a report" and "reports" are one word, "a report" and "to report" are two.
    """
    return [(word.pos, word.lemma.casefold()) for word in words if word.pos in counted]


@dataclass(frozen=True, slots=True)
class BucketRedundancy:
    """The redundancy of the documents of some lengths.

    Attributes:
        shortest: Fewest words of a document.
        longest: Most words of a document; None: any number.
        documents: Documents of these lengths that have nouns or verbs.
        without: Documents of these lengths that have none: they are in no mean.
        mean: Mean of the documents' redundancies, from 1 to the most nouns and verbs of a document; None without
            documents.
        low: Lower end of the mean's 95% bootstrap interval; None with fewer than two documents.
        high: Its upper end.
    """

    shortest: int
    longest: int | None
    documents: int
    without: int
    mean: float | None
    low: float | None
    high: float | None

    def name(self) -> str:
        """Name the lengths as the paper's table does."""
        if self.longest is None:
            return f"more than {self.shortest - 1}" if self.shortest else "all"
        return f"{self.shortest}-{self.longest}"


@dataclass(frozen=True, slots=True)
class RedundancyResult:
    """The redundancy of a corpus.

    Attributes:
        buckets: By length; see :data:`BUCKETS`.
        all: Of all documents together.
        tagger: What decided the tags and lemmas.
        seed: Seed of the intervals.
    """

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
        """Return the result as a dictionary that can be written as JSON."""
        return asdict(self)


def measure_redundancy(
    documents: Any,
    tagger: Tagger,
    *,
    counted: Collection[str] = COUNTED,
    seed: int = 0,
    progress: bool = False,
) -> RedundancyResult:
    """Measure the redundancy of a corpus; memory holds a few hundred documents and two numbers for each of the others.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes. Read once, in order.
        tagger: Finds words, parts of speech and lemmas.
        counted: Universal parts of speech that count.
        seed: Seed of the bootstrap intervals.
        progress: Show a progress bar.

    Returns:
        The redundancy by length. A length is a number of words as :func:`~simlte_st.data.document.count_words` counts
        them: runs without white space.

    Raises:
        DataError: The documents cannot be read, or there are none.

    References:
        SimLTE, appendix A. The paper does not say whether names and auxiliaries count, nor whether a noun and a verb of
        one lemma are distinct; :data:`COUNTED` and :func:`nouns_and_verbs` are our reading. Of those we tried it comes
        closest to the paper's numbers for 20News.
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
