"""Pairs of papers with and without a citation, for link classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError

Links = NDArray[np.int64]
"""Pairs of row numbers, citing and cited, ``[links, 2]``."""

Split = Literal["links", "papers"]

_RESTARTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class LinkPairs:
    """Pairs of papers, and whether the first cites the second.

    Attributes:
        pairs: Row numbers of papers, shape ``[n, 2]``, int64.
        labels: 1 for a link, 0 for none, shape ``[n]``, int64.
    """

    pairs: NDArray[np.int64]
    labels: NDArray[np.int64]


def number_links(ids: Sequence[str], links: Iterable[tuple[str, str]]) -> Links:
    """Turn links between ids into links between row numbers."""
    row = {paper: number for number, paper in enumerate(ids)}
    return np.array([(row[citing], row[cited]) for citing, cited in links], dtype=np.int64).reshape(-1, 2)


def check_pairs(pairs: ArrayLike, papers: int) -> NDArray[np.int64]:
    """Convert pairs of row numbers to an int64 array ``[n, 2]``, and check that the rows exist."""
    data = np.asarray(pairs, dtype=np.int64)
    if data.ndim != 2 or data.shape[1] != 2 or data.min() < 0 or data.max() >= papers:
        raise DataError(f"Pairs must be a non-empty array [n, 2] of rows of {papers} papers, got shape {data.shape}.")
    return data


def link_pairs(
    links: ArrayLike, *, split: Split = "links", test_share: float = 0.3, seed: int = 0
) -> tuple[LinkPairs, LinkPairs]:
    """Make the training and test pairs of a link classification task from its links.

    Each part has as many negatives as links. A negative is not a link of either part in either direction, and no pair
    of papers occurs twice over both parts. Negatives are the part's links with cited papers exchanged, so that each
    paper cites and is cited as often in negatives as in links. A single paper then says nothing about the label, and a
    head must compare the two.

    Splits:

    - ``"links"``: by links, as in the Long Range Arena. Most test papers also occur in training, in other pairs.
    - ``"papers"``: by papers, so that test papers are unseen. Links across the parts are dropped. ``test_share`` is
      then a share of the papers, and about its square is the share of links in the test part.
    """
    data = np.unique(np.asarray(links, dtype=np.int64), axis=0)
    generator = np.random.default_rng(seed)
    divide = _divide_links if split == "links" else _divide_papers
    # Papers that cite each other are one pair. As two, they could be a link in one part and a negative in the other.
    used = {_unordered_pair(*link) for link in data.tolist()}
    parts = []
    for part in divide(data, test_share, generator):
        negatives = _rewire(part, used, generator)
        used |= {_unordered_pair(*pair) for pair in negatives.tolist()}
        parts.append(LinkPairs(np.concatenate([part, negatives]), np.repeat([1, 0], len(part))))
    train, test = parts
    return train, test


def _unordered_pair(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _divide_links(links: Links, test_share: float, generator: np.random.Generator) -> tuple[Links, Links]:
    # Both directions of a pair stay in one part.
    pairs, pair_of_link = np.unique(np.sort(links, axis=1), axis=0, return_inverse=True)
    in_test = np.zeros(len(pairs), dtype=bool)
    in_test[generator.permutation(len(pairs))[: round(test_share * len(pairs))]] = True
    is_test = in_test[pair_of_link.reshape(-1)]
    return links[~is_test], links[is_test]


def _divide_papers(links: Links, test_share: float, generator: np.random.Generator) -> tuple[Links, Links]:
    papers = np.unique(links)
    test_papers = generator.permutation(papers)[: round(test_share * len(papers))]
    ends = np.isin(links, test_papers).sum(axis=1)
    return links[ends == 0], links[ends == 2]


def _rewire(links: Links, used: set[tuple[int, int]], generator: np.random.Generator) -> Links:
    citing = links[:, 0].tolist()
    for _ in range(_RESTARTS):
        cited = generator.permutation(links[:, 1]).tolist()
        if _repair(citing, cited, used, generator):
            return np.column_stack([citing, cited])
    raise DataError(f"{len(links)} links between few papers: the cited papers cannot be exchanged.")


def _repair(citing: list[int], cited: list[int], used: set[tuple[int, int]], generator: np.random.Generator) -> bool:
    """Exchange cited papers in place until no pair is used or occurs twice; return whether that is possible."""
    uses = Counter(map(_unordered_pair, citing, cited))
    for i in range(len(citing)):
        old = _unordered_pair(citing[i], cited[i])
        if old[0] != old[1] and old not in used and uses[old] == 1:
            continue
        for j in generator.permutation(len(citing)).tolist():
            new = _unordered_pair(citing[i], cited[j]), _unordered_pair(citing[j], cited[i])
            if new[0] != new[1] and all(a != b and (a, b) not in used and not uses[a, b] for a, b in new):
                uses.subtract([old, _unordered_pair(citing[j], cited[j])])
                uses.update(new)
                cited[i], cited[j] = cited[j], cited[i]
                break
        else:
            return False
    return True
