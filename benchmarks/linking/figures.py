"""AST's figures: what softmax and entmax do as a text grows, the sparsity of each head, and a map of posts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from benchmarks.figures import drawn_figure, plain
from benchmarks.linking.data import Linked
from benchmarks.linking.sparsity import CLOSED, TITLES

SHOWN = 10
"""Articles on the map."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")


def map_posts(data: Linked, vectors: np.ndarray, seed: int) -> dict[str, Any]:
    """Put the posts about the most posted articles on a plane, by t-SNE of their cosines (Figure 2)."""
    counts = np.bincount(data.links[:, 1], minlength=len(data.articles))
    ranks = {int(article): rank for rank, article in enumerate(np.argsort(-counts, kind="stable")[:SHOWN])}
    shown: dict[int, int] = {}
    for post, article in data.links.tolist():
        if article in ranks:
            shown.setdefault(post, ranks[article])
    perplexity = min(30.0, (len(shown) - 1) / 3)
    tsne = TSNE(metric="cosine", init="random", perplexity=perplexity, random_state=seed)
    return {
        "points": np.round(tsne.fit_transform(vectors[list(shown)]), 3).tolist(),
        "articles": list(shown.values()),
        "titles": [plain(" ".join(data.articles[article].split()[:7])) for article in ranks],
    }


def draw_map(found: Mapping[str, Any], path: Path) -> None:
    """Draw :func:`map_posts`."""
    points, articles = np.array(found["points"]), np.array(found["articles"])
    with drawn_figure(path, (7.6, 3.8)) as figure:
        axes = figure.subplots()
        for number, title in enumerate(found["titles"]):
            x, y = points[articles == number].T
            axes.scatter(x, y, s=22, marker=_MARKERS[number], color=f"C{number}", label=title)
        axes.set_xticks([])
        axes.set_yticks([])
        legend = axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), title="posts about")
        for text in legend.get_texts():
            text.set_parse_math(False)
        figure.tight_layout()


def draw_alphas(found: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Draw the alpha of each head: bars of the mean, a dot for each training (Figure 3)."""
    with drawn_figure(path, (6, 2.8)) as figure:
        for number, (part, values) in enumerate(found.items()):
            axes = figure.add_subplot(1, len(found), number + 1)
            alphas = np.array(values)
            heads = np.arange(1, alphas.shape[1] + 1)
            axes.bar(heads, alphas.mean(axis=0) - 1, bottom=1, color=f"C{number}")
            for training in alphas:
                axes.scatter(heads, training, s=8, color="black", zorder=3)
            axes.axhline(1.5, color="grey", linewidth=0.8)
            axes.set_ylim(1, 2)
            axes.set_title(f"{part} attention", fontsize=9)
            axes.set_xlabel("head")
            axes.set_xticks(heads)
        figure.axes[0].set_ylabel("alpha (1: softmax, 2: sparsemax)")
        figure.tight_layout()


def draw_sparsity(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the share of tokens that have weight, and the largest weight, over the number of tokens (Figure 1)."""
    sizes = [row["tokens"] for row in rows]
    with drawn_figure(path, (7, 2.9)) as figure:
        for place, (key, label) in enumerate([("weighted", "tokens with weight"), ("largest", "largest weight")]):
            axes = figure.add_subplot(1, 2, place + 1)
            for number, (name, title) in enumerate(TITLES.items()):
                axes.plot(sizes, [row[name][key] for row in rows], _MARKERS[number], color=f"C{number}", label=title)
                closed = CLOSED[name][place]
                axes.plot(sizes, [closed(size) for size in sizes], color=f"C{number}", linewidth=0.8)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("tokens")
            axes.set_title(label, fontsize=9)
        figure.axes[0].legend(fontsize=7)
        figure.tight_layout()
