"""Posts and the articles they discuss, split by article."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

POSTS, ARTICLES = "politifact_tweets.parquet", "politifact_articles.parquet"
TEST_SHARE = 0.3


@dataclass(frozen=True)
class LinkedTexts:
    """Posts and articles.

    Attributes:
        posts: The posts, which are short.
        articles: The articles, which are long.
        links: Row numbers of posts and their articles, ``[n, 2]``.
    """

    posts: list[str]
    articles: list[str]
    links: NDArray[np.int64]


def load_linked(folder: Path) -> LinkedTexts:
    """Read all posts and articles. A post may have several articles, and an article no posts."""
    posts, articles = pq.read_table(folder / POSTS), pq.read_table(folder / ARTICLES)
    rows = {article: row for row, article in enumerate(articles["id"].to_pylist())}
    links = [(post, rows[article]) for post, ids in enumerate(posts["article_ids"].to_pylist()) for article in ids]
    return LinkedTexts(posts["text"].to_pylist(), articles["text"].to_pylist(), np.array(links))


def split_by_article(data: LinkedTexts, seed: int) -> tuple[LinkedTexts, LinkedTexts]:
    """Split articles and their posts into training and test parts.

    Posts with articles in both parts are dropped. Articles without posts remain as distractors.
    """
    order = np.random.default_rng(seed).permutation(len(data.articles))
    count = round(TEST_SHARE * len(order))
    parts = [np.sort(order[count:]), np.sort(order[:count])]
    sides = [set(data.links[np.isin(data.links[:, 1], part), 0].tolist()) for part in parts]
    return _part(data, parts[0], sides[0] - sides[1]), _part(data, parts[1], sides[1] - sides[0])


def _part(data: LinkedTexts, articles: NDArray[np.int64], posts: set[int]) -> LinkedTexts:
    rows = np.array(sorted(posts))
    part_links = data.links[np.isin(data.links[:, 0], rows)]
    links = np.column_stack([np.searchsorted(rows, part_links[:, 0]), np.searchsorted(articles, part_links[:, 1])])
    return LinkedTexts([data.posts[row] for row in rows], [data.articles[row] for row in articles], links)
