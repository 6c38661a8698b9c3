"""Pairs of papers, linked by a citation or not: what link classification is trained and scored on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.config import check_choice, check_number
from simlte_st.errors import DataError

logger = logging.getLogger(__name__)

Split = Literal["links", "papers"]
Negatives = Literal["rewired", "uniform"]

_RESTARTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class LinkPairs:
    """Pairs of papers and whether the first cites the second.

    Attributes:
        pairs: Rows of a list of papers, shape ``[n, 2]``, int64.
        labels: 1 for a link, 0 for none, shape ``[n]``, int64.
    """

    pairs: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check shapes and values."""
        pairs, labels = check_pairs(self.pairs), np.asarray(self.labels)
        if labels.shape != (len(pairs),) or not np.isin(labels, (0, 1)).all():
            raise DataError(f"{len(pairs)} pairs need as many labels, 0 or 1; got shape {labels.shape}.")
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "labels", labels.astype(np.int64))


def number_links(ids: Sequence[str], links: Iterable[tuple[str, str]]) -> NDArray[np.int64]:
    """Turn links between ids into links between rows."""
    row = {paper: number for number, paper in enumerate(ids)}
    if len(row) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        raise DataError(f"Each paper needs an id of its own; {repeated!r} occurs more than once.")
    pairs = [tuple(link) for link in links]
    unknown = sorted({paper for link in pairs for paper in link if paper not in row})
    if unknown:
        raise DataError(f"{len(unknown)} linked papers are not among the {len(ids)} given: {unknown[:5]}.")
    return np.array([(row[citing], row[cited]) for citing, cited in pairs], dtype=np.int64).reshape(-1, 2)


def check_pairs(pairs: ArrayLike, papers: int | None = None) -> NDArray[np.int64]:
    """Bring pairs of rows to an array ``[n, 2]``, int64."""
    data = np.asarray(pairs)
    if data.ndim != 2 or data.shape[1] != 2 or len(data) == 0:
        raise DataError(f"Pairs of papers must form a non-empty array [n, 2], got shape {data.shape}.")
    if not np.issubdtype(data.dtype, np.integer):
        raise DataError(f"Pairs of papers are pairs of row numbers, got {data.dtype}; number_links makes them of ids.")
    if data.min() < 0 or (papers is not None and data.max() >= papers):
        raise DataError(f"A pair names row {data.min() if data.min() < 0 else data.max()} of {papers} papers.")
    return data.astype(np.int64)


def check_links(links: ArrayLike, papers: int | None = None) -> NDArray[np.int64]:
    """As :func:`check_pairs`, for links: sorted, each once."""
    data = check_pairs(links, papers)
    own = data[data[:, 0] == data[:, 1], 0]
    if len(own):
        raise DataError(f"{len(own)} papers cite themselves, row {own[0]} for one: leave these links out.")
    return np.unique(data, axis=0)


def link_pairs(
    links: ArrayLike,
    *,
    split: Split = "links",
    negatives: Negatives = "rewired",
    test_share: float = 0.3,
    seed: int = 0,
) -> tuple[LinkPairs, LinkPairs]:
    """Make the two parts of a link classification task of links alone.

    Each part has as many pairs without a link as with one. These negatives are never links, in neither direction and
    of neither part; and no two papers are a pair twice, in one part or in both. How they are drawn:

    - ``"rewired"``: the part's links with their cited papers exchanged. Each paper cites, and is cited, in as many
      negatives as links, so that no single paper says anything about the label: a head must compare the two.
    - ``"uniform"``: the citing paper of a link, and any cited paper of the part. Papers that are cited often then
      occur in more links than negatives, and a head that looks at the cited paper alone beats chance.

    How the parts are divided:

    - ``"links"``: by links, as in the Long Range Arena. Most test papers occur in training pairs too, with others.
    - ``"papers"``: by papers; links across the parts are left out (the log says how many). A test paper was never
      seen. ``test_share`` is then a share of papers: the test part has about its square of the links.
    """
    check_choice("split", split, ("links", "papers"))
    check_choice("negatives", negatives, ("rewired", "uniform"))
    check_number("test_share", test_share, above=0, below=1)
    data = check_links(links)
    generator = np.random.default_rng(seed)
    divide = _divide_links if split == "links" else _divide_papers
    draw = _rewired if negatives == "rewired" else _uniform
    # Two papers that cite each other are one pair: as two they could be a link in one part and a negative in the other.
    taken = {_unordered(*link) for link in data.tolist()}
    parts = []
    for part in divide(data, test_share, generator):
        if len(part) < 2:
            raise DataError(f"Of {len(data)} links only {len(part)} would be in one of the two parts: too few.")
        drawn = draw(part, taken, generator)
        taken |= {_unordered(*pair) for pair in drawn.tolist()}
        parts.append(LinkPairs(np.concatenate([part, drawn]), np.repeat([1, 0], len(part))))
    train, test = parts
    return train, test


def _unordered(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _divide_links(
    links: NDArray[np.int64], test_share: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # The two directions of one pair go together.
    pairs, pair_of_link = np.unique(np.sort(links, axis=1), axis=0, return_inverse=True)
    in_test = np.zeros(len(pairs), dtype=bool)
    in_test[generator.permutation(len(pairs))[: round(test_share * len(pairs))]] = True
    chosen = in_test[pair_of_link.reshape(-1)]
    return links[~chosen], links[chosen]


def _divide_papers(
    links: NDArray[np.int64], test_share: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    papers = np.unique(links)
    chosen = generator.permutation(papers)[: round(test_share * len(papers))]
    ends = np.isin(links, chosen).sum(axis=1)
    logger.info("%d of %d links lie across the two parts and are left out.", int((ends == 1).sum()), len(links))
    return links[ends == 0], links[ends == 2]


def _uniform(
    links: NDArray[np.int64], taken: set[tuple[int, int]], generator: np.random.Generator
) -> NDArray[np.int64]:
    pool = np.unique(links[:, 1])
    drawn: set[tuple[int, int]] = set()
    pairs = []
    for citing in links[:, 0].tolist():
        for cited in generator.permutation(pool).tolist():
            pair = _unordered(citing, cited)
            if citing != cited and pair not in taken and pair not in drawn:
                drawn.add(pair)
                pairs.append((citing, cited))
                break
        else:
            raise DataError(f"Negatives run out: row {citing} is linked to, or paired with, all {len(pool)} papers.")
    return np.array(pairs, dtype=np.int64)


def _rewired(
    links: NDArray[np.int64], taken: set[tuple[int, int]], generator: np.random.Generator
) -> NDArray[np.int64]:
    citing = links[:, 0].tolist()
    for _ in range(_RESTARTS):
        cited = generator.permutation(links[:, 1]).tolist()
        if _repair(citing, cited, taken, generator):
            return np.column_stack([citing, cited])
    raise DataError(
        f"{len(links)} links between few papers leave no way to exchange what they cite; try negatives='uniform'."
    )


def _repair(citing: list[int], cited: list[int], taken: set[tuple[int, int]], generator: np.random.Generator) -> bool:
    """Exchange cited papers, in place, until no pair is taken or occurs twice; False where a pair finds no partner."""
    uses = Counter(map(_unordered, citing, cited))
    for i in range(len(citing)):
        old = _unordered(citing[i], cited[i])
        if old[0] != old[1] and old not in taken and uses[old] == 1:
            continue
        for j in generator.permutation(len(citing)).tolist():
            new = _unordered(citing[i], cited[j]), _unordered(citing[j], cited[i])
            if new[0] != new[1] and all(a != b and (a, b) not in taken and not uses[a, b] for a, b in new):
                uses.subtract([old, _unordered(citing[j], cited[j])])
                uses.update(new)
                cited[i], cited[j] = cited[j], cited[i]
                break
        else:
            return False
    return True
