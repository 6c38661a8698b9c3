"""Pairs of papers with and without a citation, to train and test link classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError

Split = Literal["links", "papers"]

_RESTARTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class LinkPairs:
    """Pairs of papers and whether the first cites the second.

    Attributes:
        pairs: Row numbers of papers, shape ``[n, 2]``, int64.
        labels: 1 for a link, 0 for none, shape ``[n]``, int64.
    """

    pairs: NDArray[np.int64]
    labels: NDArray[np.int64]


def number_links(ids: Sequence[str], links: Iterable[tuple[str, str]]) -> NDArray[np.int64]:
    """Turn links between ids into links between rows."""
    row = {paper: number for number, paper in enumerate(ids)}
    return np.array([(row[citing], row[cited]) for citing, cited in links], dtype=np.int64).reshape(-1, 2)


def check_pairs(pairs: ArrayLike, papers: int) -> NDArray[np.int64]:
    """Convert pairs of rows to an int64 array ``[n, 2]`` and check that the rows exist."""
    data = np.asarray(pairs, dtype=np.int64)
    if data.ndim != 2 or data.shape[1] != 2 or data.min() < 0 or data.max() >= papers:
        raise DataError(f"Pairs must be a non-empty array [n, 2] of rows of {papers} papers, got shape {data.shape}.")
    return data


def link_pairs(
    links: ArrayLike, *, split: Split = "links", test_share: float = 0.3, seed: int = 0
) -> tuple[LinkPairs, LinkPairs]:
    """Make the training and test pairs of a link classification task from links alone.

    Each part has as many negatives as links. A negative is never a link, in either direction and in either part, and no
    pair of papers occurs twice in both parts together. Negatives are the part's links with their cited papers
    exchanged, so each paper cites and is cited in as many negatives as links. A single paper then says nothing about
    the label, and a head must compare the two.

    Splits:

    - ``"links"``: by links, as in the Long Range Arena. Most test papers also occur in training, in other pairs.
    - ``"papers"``: by papers, so test papers are unseen; links across the parts are dropped. ``test_share`` is then a
      share of papers, and the test part has about its square of the links.
    """
    data = np.unique(np.asarray(links, dtype=np.int64), axis=0)
    generator = np.random.default_rng(seed)
    divide = _divide_links if split == "links" else _divide_papers
    # Papers that cite each other are one pair. As two, they could be a link in one part and a negative in the other.
    taken = {_unordered_pair(*link) for link in data.tolist()}
    parts = []
    for part in divide(data, test_share, generator):
        drawn = _rewire(part, taken, generator)
        taken |= {_unordered_pair(*pair) for pair in drawn.tolist()}
        parts.append(LinkPairs(np.concatenate([part, drawn]), np.repeat([1, 0], len(part))))
    train, test = parts
    return train, test


def _unordered_pair(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _divide_links(
    links: NDArray[np.int64], test_share: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Both directions of a pair stay in one part.
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
    return links[ends == 0], links[ends == 2]


def _rewire(links: NDArray[np.int64], taken: set[tuple[int, int]], generator: np.random.Generator) -> NDArray[np.int64]:
    citing = links[:, 0].tolist()
    for _ in range(_RESTARTS):
        cited = generator.permutation(links[:, 1]).tolist()
        if _repair(citing, cited, taken, generator):
            return np.column_stack([citing, cited])
    raise DataError(f"{len(links)} links between few papers leave no way to exchange the cited papers.")


def _repair(citing: list[int], cited: list[int], taken: set[tuple[int, int]], generator: np.random.Generator) -> bool:
    """Exchange cited papers in place until no pair is taken or occurs twice; return False if a pair has no partner."""
    uses = Counter(map(_unordered_pair, citing, cited))
    for i in range(len(citing)):
        old = _unordered_pair(citing[i], cited[i])
        if old[0] != old[1] and old not in taken and uses[old] == 1:
            continue
        for j in generator.permutation(len(citing)).tolist():
            new = _unordered_pair(citing[i], cited[j]), _unordered_pair(citing[j], cited[i])
            if new[0] != new[1] and all(a != b and (a, b) not in taken and not uses[a, b] for a, b in new):
                uses.subtract([old, _unordered_pair(citing[j], cited[j])])
                uses.update(new)
                cited[i], cited[j] = cited[j], cited[i]
                break
        else:
            return False
    return True
