"""AST: link posts to articles, beside other encoders on the same word vectors, MiniLM and bags of words.

    python -m benchmarks.ast --shared data

Splits tweets and the articles they discuss by article, anew for each seed. Trains the Star Transformer, a CNN, a GRU
and a Bi-GRU on frozen GloVe vectors with the multi-similarity triplet loss, and MiniLM by DocSplit on the training
articles alone. The work folder keeps finished parts, so the same command resumes an interrupted run. Results go to
``results/ast.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer

import simlte_st
from benchmarks.bm25 import Bm25Scores
from benchmarks.grid.work import Work
from benchmarks.linking.data import LinkedTexts, load_linked, split_by_article
from benchmarks.linking.encoders import ENCODERS, VECTORS, make_encoder, word_vectors
from benchmarks.pages import write_results
from benchmarks.papers.linking import measure_linking
from benchmarks.records import environments, make_parser
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.losses import MultiSimilarityTripletLoss
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.modules import StarTransformer
from simlte_st.training.fit import make_trainer, training_arguments

UNTRAINED = ("BM25", "TF-IDF", "MiniLM", "GloVe, mean")
ADAPTED = "MiniLM, DocSplit on the articles"
SYSTEMS = (*UNTRAINED, ADAPTED, *(name for name in ENCODERS if name not in UNTRAINED))


def measure_system(options: argparse.Namespace, data: LinkedTexts, name: str, seed: int) -> dict[str, Any]:
    """Train a system if necessary, then link the test posts."""
    train, test = split_by_article(data, seed)
    texts, sparsity = [*test.posts, *test.articles], {}
    if name in ("BM25", "TF-IDF"):
        scores: PairScores = Bm25Scores(texts) if name == "BM25" else TfidfScores(texts)
    else:
        model = prepare_encoder(options, name, train, seed)
        scores = CosineScores(encode_texts(model.eval(), texts))
        if isinstance(model[-1], StarTransformer):
            parts = {"ring": model[-1].ring, "star": model[-1].star}
            sparsity = {"alpha": {part: attention.alpha.tolist() for part, attention in parts.items()}}
    metrics = measure_linking(scores, test.links + np.array([0, len(test.posts)]), len(test.posts))
    return {
        "r_precision": {str(rank): value for rank, value in metrics.pop("r_precision").items()},
        "metrics": metrics,
        "counts": {"posts": len(test.posts), "articles": len(test.articles), "links": len(test.links)},
        **sparsity,
    }


def prepare_encoder(options: argparse.Namespace, name: str, train: LinkedTexts, seed: int) -> SentenceTransformer:
    """Make an encoder, and train it if its system is trained."""
    if name == "MiniLM":
        return load_model(PACKAGED_BASE).copy(max_seq_length=options.tokens).model
    with tempfile.TemporaryDirectory() as folder:
        if name == ADAPTED:
            output, settings = Path(folder) / "model", {"base": PACKAGED_BASE, "bf16": False, "progress": False}
            result = simlte_st.train(train.articles, output, held_out=0.0, seed=seed, **settings)
            return load_model(result.output).copy(max_seq_length=options.tokens).model
        model = make_encoder(name, word_vectors(options.shared / VECTORS, options.words), seed)
        if name in UNTRAINED:
            return model
        arguments = training_arguments(
            Path(folder),
            batch_size=options.batch_size,
            epochs=options.epochs,
            steps=options.epochs * max(1, len(train.links) // options.batch_size),
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
    parser.add_argument("--work", type=Path, default=Path("ast.work"), help="folder of finished parts")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)), help="seeds of splits and runs")
    parser.add_argument("--words", type=int, default=512, help="words read by other encoders (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=256, help="tokens read by MiniLM (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="default: %(default)s")
    parser.add_argument("--margin", type=float, default=0.5, help="default: %(default)s")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args(argv)
    if options.threads:
        torch.set_num_threads(options.threads)
    work, data = Work(options.work), load_linked(options.shared)
    names = ("words", "tokens", "epochs", "batch_size", "learning_rate", "margin")
    settings = {name: getattr(options, name) for name in names}
    for seed in options.seeds:
        for name in options.only:
            work.finish_aloud(f"linking/{name}-{seed}", settings, partial(measure_system, options, data, name, seed))
    results: dict[str, dict[str, Any]] = {}
    cells = {path.stem: cell for path, cell in work.cells("linking/*")}
    for stem, cell in cells.items():
        name, _, seed = stem.rpartition("-")
        results.setdefault(name, {})[seed] = cell["result"] | {"settings": cell["settings"]}
    write_results("ast", {"results": results, "environments": environments(cells.values())}, options.results)


if __name__ == "__main__":
    main()
