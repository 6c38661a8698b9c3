"""Teaching a static model an encoder's embeddings: number and kind of passages, and each choice of the recipe.

    python -m benchmarks.teaching passages.parquet --shared SHARED_DATA --clones peps EIPs rfcs

Tables are fitted to all-MiniLM-L6-v2's embeddings of the first passages of ``benchmarks.builder.passages``, whose every
prefix has the same mix of sources; ``simlte-static`` is the last one after a little DocSplit
(:mod:`benchmarks.builder.static_model`). The encoder's embeddings are computed once, in a folder beside the passages.
No text of a measured set is among the passages. In search for the recipe, these made no difference or were worse at
20,000 passages: a contrast with the other passages of a batch (MRR .575, .572, .568 and .562 with weights 0, .1, 1 and
3), dropping tokens, word weights after teaching (SIF), and beginning with simlte-static 0.2.

Columns: Spearman correlation with human ratings of sentence pairs (STS-B alone, and the mean of STS12 to STS16, STS-B
and SICK); MRR of vectors alone over nine sets of ``search.md`` (questions: Python's proposals); macro-F1 with five
labels per class over the eight sets of ``static.md``, and on AG News alone; and sets that were measured once, after all
choices: the Pearson correlation of Lee et al.'s 1,225 pairs of documents, accuracy on TREC and SUBJ (linear probe), and
MRR of titles of Rust's proposals (github.com/rust-lang/rfcs). The encoder reads 256 tokens, static models whole texts.
Values x 100.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from benchmarks.bank.outcomes import FEW, probes
from benchmarks.bank.sets import BankSet
from benchmarks.bank.sets import load_sets as load_labelled_sets
from benchmarks.builder.static_model import embed_in_shards
from benchmarks.grid.work import Work
from benchmarks.nli.tasks import STS, ScoredPairs, load_labelled, load_pairs, transfer_accuracy
from benchmarks.pages import explanation, fill, write_results
from benchmarks.records import compute_dtype, environments, make_parser
from benchmarks.search import FIRST, SearchSet, load_sets, title_set
from benchmarks.static import SETS
from simlte_st.files import read_json
from simlte_st.models import teaching
from simlte_st.models.distillation import distil_base
from simlte_st.models.loading import load_model
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.models.static import token_embedding
from simlte_st.models.vectors import unit_rows
from simlte_st.words.tokens import flat_ids


@dataclass(frozen=True)
class Lesson:
    """How a table is taught.

    Attributes:
        passages: Number of passages; 0 for the bare distillation.
        teacher: The encoder.
        source: Use only the passages of this source.
        seed: Seed for the order of the passages.
        epochs: Passes over the passages.
        rate: Learning rate of Adam.
        dimension: Dimensions of the table.
        bare: Share of the bare distillation in the mean with the taught table.
    """

    passages: int
    teacher: str = PACKAGED_BASE
    source: str = ""
    seed: int = 0
    epochs: int = teaching.EPOCHS
    rate: float = teaching.LEARNING_RATE
    dimension: int = 256
    bare: float = 0.0


CURVE = {"distilled": 0, **{f"{count:,}": count for count in (5_000, 10_000, 20_000, 50_000, 100_000, 200_000)}}
"""Numbers of passages by row."""

ALL, SHIPPED, PREVIOUS = "all passages", "all, then DocSplit: simlte-static", "simlte-static 0.2"
USUAL = Lesson(20_000)
CHOICES = {
    "20,000 passages": USUAL,
    "seed 1": replace(USUAL, seed=1),
    "seed 2": replace(USUAL, seed=2),
    "5 epochs": replace(USUAL, epochs=5),
    "20 epochs": replace(USUAL, epochs=20),
    "learning rate .001": replace(USUAL, rate=1e-3),
    "learning rate .01": replace(USUAL, rate=1e-2),
    "128 dimensions": replace(USUAL, dimension=128),
    "384 dimensions": replace(USUAL, dimension=384),
    "mean with a fifth of the distilled": replace(USUAL, bare=0.2),
    "Wikipedia in the first 40,000": Lesson(40_000, source="wikipedia"),
    "5,000 passages": Lesson(5_000),
}
"""Recipes that differ from the usual one by one choice."""

LIMIT = 254
"""Maximum number of tokens in a passage, as many as all-MiniLM-L6-v2 reads."""

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating]]
"""A function from texts to vectors of length 1."""


class Measures:
    """The measured texts, and the scores of an embedding function on them."""

    def __init__(self, shared: Path, clones: Sequence[Path]) -> None:
        self.shared = shared
        self.pairs = {name: load_pairs(shared, name, None) for name in STS}
        self.searches = load_sets(shared, [clone for clone in clones if clone.name != "rfcs"])
        self.labelled = list(load_labelled_sets(shared, list(SETS), 600, 300))
        self.unseen = {clone.name: read_rfcs(clone) for clone in clones if clone.name == "rfcs"}

    def score(self, embed: Embed) -> dict[str, float]:
        """Return the scores on which choices are made."""
        return {
            **{name: correlate(embed, pairs) for name, pairs in self.pairs.items()},
            **{name: mean_reciprocal_rank(embed, data) for name, data in self.searches.items()},
            **{data.name: few_label_score(embed, data) for data in self.labelled},
        }

    def score_unseen(self, embed: Embed) -> dict[str, float]:
        """Return the scores on sets that were measured once, after all choices."""
        texts = pq.read_table(self.shared / "lee_documents.parquet")["text"].to_pylist()
        ratings, upper = np.asarray(read_json(self.shared / "lee_similarities_50x50.json")), np.triu_indices(50, 1)
        vectors = embed(texts)
        return {
            "Lee": float(pearsonr((vectors @ vectors.T)[upper], ratings[upper]).statistic),
            **{name: transfer_accuracy(embed, load_labelled(self.shared, name, None)) for name in ("TREC", "SUBJ")},
            **{f"{name}, titles": mean_reciprocal_rank(embed, data) for name, data in self.unseen.items()},
        }


def correlate(embed: Embed, pairs: ScoredPairs) -> float:
    """Return Spearman's correlation between cosine similarity and ratings."""
    return float(spearmanr((embed(pairs.first) * embed(pairs.second)).sum(axis=1), pairs.scores).statistic)


def mean_reciprocal_rank(embed: Embed, data: SearchSet) -> float:
    """Return the MRR over the first 100 documents; a query that is a document's id ranks the cited documents."""
    rows = {document.id: row for row, document in enumerate(data.documents)}
    texts = [data.documents[rows[query]].text if query in rows else query for query, _ in data.queries]
    scores = embed(texts) @ embed([document.text for document in data.documents]).T
    scores[:, [not (document.metadata or {}).get("cited", True) for document in data.documents]] = -np.inf
    ranks = []
    for line, (query, relevant) in zip(scores, data.queries, strict=True):
        if query in rows:
            line[rows[query]] = -np.inf
        best = max((line[rows[name]] for name in relevant if name in rows), default=-np.inf)
        ranks.append(1 + np.count_nonzero(line > best))
    return float(np.mean([1 / rank if rank <= FIRST else 0 for rank in ranks]))


def few_label_score(embed: Embed, data: BankSet) -> float:
    """Return macro-F1 with five labels per class."""
    vectors = embed([document.text for document in data.held])
    return float(np.mean([result.macro_f1 for _, result in probes(data, vectors, FEW)]))


def read_rfcs(clone: Path) -> SearchSet:
    """Return Rust's proposals without their metadata, and a query of each file's name."""
    return title_set(
        (path.stem.partition("-")[2].replace("-", " "), path.read_text(encoding="utf-8").partition("\n#")[2])
        for path in sorted(clone.glob("text/*.md"))
    )


class Tables:
    """Static models taught by recipes, all from the bare distillation of all-MiniLM-L6-v2."""

    def __init__(self, passages: Path, bf16: bool) -> None:
        table = pq.read_table(passages)
        self.texts, self.sources = table["text"].to_pylist(), np.asarray(table["source"].to_pylist())
        self.passages, self.bf16, self.distil = passages, bf16, cache(distil)

    def make(self, lesson: Lesson) -> SentenceTransformer:
        """Return a static model taught by a recipe."""
        bare = self.distil(lesson.dimension)
        model, texts = copy.deepcopy(bare), self.texts[: lesson.passages]
        if texts:
            name = "embeddings" if lesson.teacher == PACKAGED_BASE else Path(lesson.teacher).name
            embeddings = embed_in_shards(lesson.teacher, texts, self.passages.with_suffix(f".{name}"), self.bf16)
            sources = self.sources[: lesson.passages]
            rows = np.flatnonzero(sources == lesson.source) if lesson.source else np.arange(len(texts))
            settings = {"epochs": lesson.epochs, "learning_rate": lesson.rate, "seed": lesson.seed, "limit": LIMIT}
            teaching.fit_table(model, [texts[row] for row in rows], embeddings[rows], progress=False, **settings)
            with torch.no_grad():
                token_embedding(model).weight.lerp_(token_embedding(bare).weight, lesson.bare)
        return model


def distil(dimension: int) -> SentenceTransformer:
    """Return the bare distillation of all-MiniLM-L6-v2."""
    base = load_model(PACKAGED_BASE, dtype=torch.float32, device="cpu")
    return distil_base(base, dimension=dimension, progress=False)


def embedder(model: SentenceTransformer) -> Embed:
    """Return the embedding function of a static model, which counts the tokens of each text once for all models."""
    vectors = token_embedding(model).weight.detach().numpy()
    return lambda texts: unit_rows(token_shares(model.tokenizer.to_str(), tuple(texts)) @ vectors)


@cache
def token_shares(tokenizer: str, texts: tuple[str, ...]) -> csr_array:
    """Return the share of each token in each text, ``[texts, tokens]``."""
    reader = Tokenizer.from_str(tokenizer)
    ids, sizes = flat_ids(reader, texts)
    shares = np.repeat(1 / np.maximum(sizes, 1), sizes).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return csr_array((shares, ids, starts), shape=(len(texts), reader.get_vocab_size()))


def encoder_embedder(bf16: bool) -> Embed:
    """Return the embedding function of all-MiniLM-L6-v2."""
    model = load_model(PACKAGED_BASE, dtype=compute_dtype(bf16), device="cpu").model
    return lambda texts: unit_rows(model.encode([*texts], show_progress_bar=False).astype(np.float32))


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, "--shared", "--output", "--work", "--bf16", work="teaching.work")
    parser.add_argument("passages", type=Path, help="parquet file of benchmarks.builder.passages")
    parser.add_argument("--clones", type=Path, nargs="*", default=[], help="clones of proposals (default: none)")
    parser.add_argument("--previous", metavar="FOLDER", help="simlte-static 0.2 (default: left out)")
    parser.add_argument("--teacher", metavar="ENCODER", help="another encoder, for 5,000 passages (default: none)")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    work, tables = Work(options.work), Tables(options.passages, options.bf16)
    lessons = {f"curve/{row}": Lesson(count) for row, count in CURVE.items() if count < len(tables.texts)}
    lessons |= {f"curve/{ALL}": Lesson(len(tables.texts))}
    lessons |= {f"choices/{row}": lesson for row, lesson in CHOICES.items()}
    if options.teacher:
        lessons[f"choices/5,000 passages, {Path(options.teacher).name}"] = Lesson(5_000, teacher=options.teacher)
    jobs: dict[str, Callable[[], Embed]] = {
        row: lambda lesson=lesson: embedder(tables.make(lesson)) for row, lesson in lessons.items()
    }
    shipped = {SHIPPED: OWN_STATIC} | ({PREVIOUS: options.previous} if options.previous else {})
    for row, name in shipped.items():
        jobs[f"curve/{row}"] = lambda name=name: embedder(load_model(name, dtype=torch.float32).model)
    measures = Measures(options.shared, options.clones)
    cells = {}
    for row, make in jobs.items():
        settings = asdict(lessons[row]) if row in lessons else {}
        settings |= {"teacher": Path(lessons[row].teacher).name} if row in lessons else {}
        cells[row] = work.finish_aloud(row, settings, lambda make=make: measures.score(make()))
    jobs[f"curve/{PACKAGED_BASE}"] = partial(encoder_embedder, options.bf16)
    for title in ("distilled", PREVIOUS, ALL, SHIPPED, PACKAGED_BASE):
        if make := jobs.get(f"curve/{title}"):
            row = f"unseen/{title}"
            cells[row] = work.finish_aloud(row, {}, lambda make=make: measures.score_unseen(make()))
    write_results("teaching", {"cells": cells, "searches": [*measures.searches]}, options.output)


def page(record: Mapping[str, Any]) -> str:
    """Return the page of the results."""
    scores = 100 * pd.DataFrame({row: cell["result"] for row, cell in record["cells"].items()}).T
    scores.index = pd.MultiIndex.from_tuples([tuple(row.split("/")) for row in scores.index])
    measured = {
        "STS-B": scores["STSb"],
        "STS, 7 sets": scores[[*STS]].mean(axis=1),
        "MRR, 9 sets": scores[record["searches"]].mean(axis=1),
        "5 labels, 8 sets": scores[[*SETS]].mean(axis=1),
        "AG News": scores["ag_news"],
    }
    groups = {group: pd.DataFrame(measured).loc[group] for group in ("curve", "choices")}
    groups["unseen"] = scores.loc["unseen"].dropna(axis=1, how="all")
    tables = {group: cells.map("{:.1f}".format).rename_axis("") for group, cells in groups.items()}
    return fill(
        "teaching.md", explanation=explanation(__doc__), environments=environments(record["cells"].values()), **tables
    )


if __name__ == "__main__":
    main()
