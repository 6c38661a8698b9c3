"""AST: posts and articles in one space, against other encoders on the same word vectors, MiniLM and bags of words.

    python -m benchmarks.ast --shared data

Splits tweets and the articles that they are about by article, anew for each seed; trains the Star Transformer, a CNN,
a GRU and a Bi-GRU on fixed GloVe vectors with the multi-similarity triplet loss, and MiniLM by DocSplit on the training
articles without any pair; and links the posts of the other articles with each. What is finished stays in the work
folder: an interrupted run goes on with the same command, and several processes can share the folder. ``--report``
writes ``results/ast.json``, ``.md`` and figures of what is finished, as every run does at its end.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import WordEmbeddings

import simlte_st
from benchmarks.bm25 import Bm25Scores
from benchmarks.grid.work import Work
from benchmarks.linking.data import ARTICLES, POSTS, Linked, load, split
from benchmarks.linking.encoders import ENCODERS, VECTORS, make_encoder, word_vectors
from benchmarks.linking.figures import map_posts
from benchmarks.linking.page import report
from benchmarks.papers.linking import LinkingEvaluator, linking
from benchmarks.records import make_parser
from simlte_st.compat import quiet_transformers
from simlte_st.evaluation import PairScores, TfidfScores
from simlte_st.losses import MultiSimilarityTripletLoss
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules import StarTransformer
from simlte_st.training.fit import make_trainer, training_arguments

UNTRAINED = ("BM25", "TF-IDF", "MiniLM", "GloVe, mean")
ADAPTED = "MiniLM, DocSplit on the articles"
SYSTEMS = (*UNTRAINED, ADAPTED, *(name for name in ENCODERS if name not in UNTRAINED))


class Bench:
    """What all cells share."""

    def __init__(self, work: Work, options: argparse.Namespace) -> None:
        self.work, self.options = work, options
        self.data = load(options.shared)

    @cached_property
    def words(self) -> WordEmbeddings:
        """The word vectors."""
        return word_vectors(self.options.shared / VECTORS, self.options.words)

    def make(self) -> None:
        """Make what is missing."""
        names = ("words", "tokens", "epochs", "batch_size", "learning_rate", "margin")
        settings = {name: getattr(self.options, name) for name in names}
        for seed in self.options.seeds:
            for name in self.options.only:
                self.work.finish_aloud(f"linking/{name}-{seed}", settings, partial(self.measure, name, seed))

    def measure(self, name: str, seed: int) -> dict[str, Any]:
        """Train a system, where it is trained, and link the test posts."""
        train, test = split(self.data, seed)
        counts = {"posts": len(test.posts), "articles": len(test.articles), "links": len(test.links)}
        more: dict[str, Any] = {}
        if name in ("BM25", "TF-IDF"):
            texts = [*test.posts, *test.articles]
            scores: PairScores = Bm25Scores(texts) if name == "BM25" else TfidfScores(texts)
            result = linking(scores, test.links + np.array([0, len(test.posts)]), len(test.posts))
        else:
            model = self.encoder(name, train, seed)
            evaluator = LinkingEvaluator(test.posts, test.articles, test.links)
            evaluator(model.eval())
            assert evaluator.last_result is not None
            result = evaluator.last_result
            if isinstance(model[-1], StarTransformer):
                parts = {"ring": model[-1].ring, "star": model[-1].star}
                more = {"alpha": {part: attention.alpha.tolist() for part, attention in parts.items()}}
                more["map"] = map_posts(test, model.encode(test.posts, show_progress_bar=False), seed)
        return {
            "metrics": result.metrics(),
            "r_precision": {str(rank): value for rank, value in result.r_precision.items()},
            "counts": counts,
            **more,
        }

    def encoder(self, name: str, train: Linked, seed: int) -> SentenceTransformer:
        """Make an encoder, trained where it is to be."""
        options = self.options
        if name == "MiniLM":
            return load_model(PACKAGED_BASE, max_seq_length=options.tokens).model
        with tempfile.TemporaryDirectory() as folder:
            if name == ADAPTED:
                result = simlte_st.train(
                    train.articles,
                    Path(folder) / "model",
                    base=PACKAGED_BASE,
                    held_out=0.0,
                    seed=seed,
                    bf16=False,
                    progress=False,
                )
                return load_model(result.output, max_seq_length=options.tokens).model
            model = make_encoder(name, self.words, seed)
            if name in UNTRAINED:
                return model
            steps = max(1, len(train.links) // options.batch_size)
            arguments = training_arguments(
                Path(folder),
                batch_size=options.batch_size,
                epochs=options.epochs,
                steps=options.epochs * steps,
                learning_rate=options.learning_rate,
                warmup=0.1,
                seed=seed,
                save_strategy="no",
                dataloader_drop_last=True,
            )
            columns = {
                "post": [train.posts[row] for row in train.links[:, 0]],
                "article": [train.articles[row] for row in train.links[:, 1]],
                "label": train.links[:, 1].tolist(),
            }
            loss = MultiSimilarityTripletLoss(model, margin=options.margin)
            make_trainer(model, arguments, Dataset.from_dict(columns), loss, []).train()
        return model


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--results")
    parser.add_argument("--work", type=Path, default=Path("ast.work"), help="folder of what is finished")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)), help="splits and trainings")
    parser.add_argument("--words", type=int, default=512, help="of a text, for word vectors (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=256, help="of a text, for MiniLM (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="default: %(default)s")
    parser.add_argument("--margin", type=float, default=0.5, help="default: %(default)s")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--report", action="store_true", help="write the page of what is finished, train nothing")
    options = parser.parse_args(argv)
    missing = [name for name in (POSTS, ARTICLES) if not (options.shared / name).exists()]
    if missing:
        print(f"Skipped: there is no {' and no '.join(missing)} in {options.shared}.")
        return
    if options.threads:
        torch.set_num_threads(options.threads)
    work = Work(options.work)
    if not options.report:
        with quiet_transformers():
            try:
                Bench(work, options).make()
            except KeyboardInterrupt:
                raise SystemExit("Interrupted: the same command goes on.") from None
    report(work, options.results, SYSTEMS)


if __name__ == "__main__":
    main()
