"""Link posts to the articles they discuss, with a threshold chosen on labelled pairs.

    python examples/link_posts.py

The posts are titles of BBC News articles, which are indexed without their titles. Half of the posts are for choosing
the threshold, and the other half are linked with it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import precision_recall_curve

from simlte_st import Index
from simlte_st.evaluation import sample_documents
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.bbc_news import bbc_news


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    arguments = parser.parse_args()

    pairs = []
    for document in sample_documents(bbc_news(), arguments.documents, 0):
        title, _, article = document.text.strip().partition("\n")
        pairs.append({"id": document.id, "post": title, "article": article})
    labelled, new = pairs[::2], pairs[1::2]
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Path(folder, "articles.index"), PACKAGED_BASE)
        index.add([{"id": pair["id"], "text": pair["article"]} for pair in pairs])
        hits = [(pair["id"], hit) for pair in labelled for hit in index.link(pair["post"], mode="dense", threshold=-1)]
        cosines = [hit.cosine for _, hit in hits]
        precisions, _, thresholds = precision_recall_curve([hit.id == article for article, hit in hits], cosines)
        threshold = float(thresholds[np.argmax(precisions[:-1] >= 0.9)])  # the lowest with a precision of at least 0.9
        print(f"threshold {threshold:.4f}: {sum(cosine >= threshold for cosine in cosines)} of {len(cosines)} pairs")
        links = [index.link(pair["post"], mode="dense", threshold=threshold) for pair in new]
    correct = sum(hit.id == pair["id"] for hits, pair in zip(links, new, strict=True) for hit in hits)
    print(f"{len(new)} new posts, {sum(map(len, links))} links, {correct} of them to the post's own article")


if __name__ == "__main__":
    main()
