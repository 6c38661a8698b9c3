"""Posts, the articles they discuss, and their split by article."""

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
        posts: Short texts.
        articles: Long ones.
        links: Row numbers of a post and its article, ``[n, 2]``.
    """

    posts: list[str]
    articles: list[str]
    links: NDArray[np.int64]


def load_linked(folder: Path) -> LinkedTexts:
    """Read all posts and articles; a post may have several articles, an article may have no posts."""
    posts, articles = pq.read_table(folder / POSTS), pq.read_table(folder / ARTICLES)
    places = {article: row for row, article in enumerate(articles["id"].to_pylist())}
    links = [(row, places[article]) for row, about in enumerate(posts["article_ids"].to_pylist()) for article in about]
    return LinkedTexts(posts["text"].to_pylist(), articles["text"].to_pylist(), np.array(links))


def split_by_article(data: LinkedTexts, seed: int) -> tuple[LinkedTexts, LinkedTexts]:
    """Split the articles with their posts into training and test parts.

    Posts with articles in both parts are dropped. Articles without posts stay as distractors.
    """
    order = np.random.default_rng(seed).permutation(len(data.articles))
    count = round(TEST_SHARE * len(order))
    parts = [np.sort(order[count:]), np.sort(order[:count])]
    sides = [set(data.links[np.isin(data.links[:, 1], part), 0].tolist()) for part in parts]
    return _part(data, parts[0], sides[0] - sides[1]), _part(data, parts[1], sides[1] - sides[0])


def _part(data: LinkedTexts, articles: NDArray[np.int64], posts: set[int]) -> LinkedTexts:
    rows = np.array(sorted(posts))
    kept = data.links[np.isin(data.links[:, 0], rows)]
    links = np.column_stack([np.searchsorted(rows, kept[:, 0]), np.searchsorted(articles, kept[:, 1])])
    return LinkedTexts([data.posts[row] for row in rows], [data.articles[row] for row in articles], links)
