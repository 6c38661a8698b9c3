"""Train each recipe on each set, and store the vectors of each encoder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from benchmarks.bank.recipes import (
    RECIPES,
    RecipeCorpus,
    RivalRecipe,
    embed_texts,
    load_base,
    prepare_corpus,
    train_by_rival,
    train_recipe,
)
from benchmarks.bank.sets import BankSet
from benchmarks.bank.static import STATIC_RECIPES, StaticRecipe, train_static
from benchmarks.grid.work import Work
from simlte_st.evaluation import split_half_views
from simlte_st.evaluation.comparison import HALF_LENGTH
from simlte_st.files import atomic_path
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.static import is_static

READ = 256
"""Maximum number of tokens when embedding a whole document."""

HALF = HALF_LENGTH
"""Maximum number of tokens of half a document, without special tokens."""

BASE = "base"
UNTRAINED = {BASE: "mean", "base-cls": "cls"}
"""The untrained encoders and their pooling."""

ORDER = (*UNTRAINED, *RECIPES)
"""All entries of the bank, in the order of its tables."""

STAGED = (
    "docsplit", "docsplit-cls", "crop", "simcse", "tsdae", "contrastive tension", "teacher", "smooth", "tuned",
    "tuned, relation 1", "static docsplit", "static docsplit, temperature 0.1, 3e-3, 300 steps",
)  # fmt: skip
"""Recipes whose first seed also stores an encoder after a third of the steps (except for rivals), and the mean of base
and final encoder. Later seeds store only the final encoder, those of ``"tuned"`` also the mean."""


@dataclass(frozen=True)
class HeldOutVectors:
    """One encoder's normalised float32 embeddings of a set's held-out documents.

    Attributes:
        whole: Embeddings of the first :data:`READ` tokens.
        first: Embeddings of one half, as in split-half retrieval.
        second: Embeddings of the other half.
    """

    whole: np.ndarray
    first: np.ndarray
    second: np.ndarray


@dataclass
class Bank:
    """All encoders of the bank, stored in a work folder.

    Attributes:
        work: The work folder.
        sets: The data sets by name.
        steps: Optimizer steps of recipes without a number of their own.
        bf16: Compute in bfloat16.
        base: The model that recipes adapt, with mean pooling.
    """

    work: Work
    sets: Mapping[str, BankSet]
    steps: int
    bf16: bool
    base: str = PACKAGED_BASE

    def halves(self, data: BankSet) -> tuple[list[str], list[str]]:
        """Split the held-out documents into halves, in the same way for all encoders."""
        return split_half_views(data.held, budget=HALF)

    def make(self, name: str, recipes: Sequence[str], seeds: Sequence[int]) -> None:
        """Train the missing encoders of a set with the recipes for its kind of base (static or not)."""
        data, base = self.sets[name], load_model(self.base).model
        suitable = [recipe for recipe in recipes if isinstance(RECIPES[recipe], StaticRecipe) == is_static(base)]
        pairs = [(recipe, seed) for seed in seeds for recipe in suitable]
        missing = [pair for pair in pairs if self.find(name, *pair) is None]
        if not missing and self.find(name, BASE, 0) is not None:
            return
        corpus = prepare_corpus(base, data.train, self.bf16)
        for entry in [BASE] if is_static(base) else UNTRAINED:
            self._keep(data, entry, 0, corpus)
        for recipe, seed in missing:
            began = time.perf_counter()
            self._keep(data, recipe, seed, corpus)
            print(f"{name}: {recipe}, seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)

    def _models(self, entry: str, seed: int, corpus: RecipeCorpus) -> Iterator[tuple[str, SentenceTransformer]]:
        """Yield the encoders of an entry, stage by stage."""
        if entry in UNTRAINED:
            yield "", load_base(self.base, "keep" if is_static(corpus.base) else UNTRAINED[entry])
            return
        settings = RECIPES[entry]
        keeps_stages = entry in STAGED and seed == 0
        model, start = (load_base(self.base, getattr(settings, "pooling", "keep"), seed) for _ in range(2))
        if isinstance(settings, RivalRecipe):
            model = train_by_rival(settings, corpus, self.steps, seed, self.bf16, self.base)
        else:
            steps = settings.steps or self.steps
            if isinstance(settings, StaticRecipe):
                progress = train_static(model, settings, corpus.documents, seed)
            else:
                progress = train_recipe(model, settings, corpus, steps, seed, self.bf16)
            for step in progress:
                if keeps_stages and step == steps // 3:
                    yield "third", model
        yield "", model
        if keeps_stages or entry == "tuned":
            yield "half way", average_weights(start, model)

    def _settings(self, name: str, entry: str, seed: int) -> dict[str, Any]:
        data = self.sets[name]
        settings = {"pooling": UNTRAINED[entry]} if entry in UNTRAINED else asdict(RECIPES[entry])
        plain = {key: value if isinstance(value, (int, float, str)) else repr(value) for key, value in settings.items()}
        base = {} if self.base == PACKAGED_BASE else {"base": Path(self.base).name}
        sizes = {"set": name, "train": len(data.train), "held": len(data.held), "seed": seed}
        return {**sizes, **base, **plain, "steps": settings.get("steps") or self.steps}

    def _keep(self, data: BankSet, entry: str, seed: int, corpus: RecipeCorpus) -> None:
        (first, second), texts = self.halves(data), [document.text for document in data.held]
        inputs = {"whole": (texts, READ), "first": (first, HALF + 2), "second": (second, HALF + 2)}

        def store_vectors() -> dict[str, Any]:
            stages = []
            for stage, model in self._models(entry, seed, corpus):
                parts = {part: embed_texts(model, *limited, self.bf16) for part, limited in inputs.items()}
                with atomic_path(self._path(data.name, entry, seed, stage)) as path, path.open("wb") as file:
                    np.savez(file, **{part: rows.astype(np.float16) for part, rows in parts.items()})
                stages.append(stage)
            return {"stages": stages}

        self.work.finish(f"{data.name}/{entry}-{seed}", self._settings(data.name, entry, seed), store_vectors)

    def find(self, name: str, entry: str, seed: int) -> dict[str, Any] | None:
        """Return the cell of an entry, or None if it is unfinished."""
        return self.work.find(f"{name}/{entry}-{seed}", self._settings(name, entry, seed))

    def is_static(self, name: str) -> bool:
        """Return whether the models of a set are static."""
        return any(path.stem.rsplit("-", 1)[0] in STATIC_RECIPES for path, _ in self.work.cells(f"{name}/*"))

    def entries(self, name: str) -> Iterator[tuple[str, int, str, HeldOutVectors]]:
        """Yield recipe, seed, stage (empty at the end of training) and vectors of a set's encoders, the base first."""
        cells = {(*path.stem.rsplit("-", 1),): cell for path, cell in self.work.cells(f"{name}/*")}
        for entry, number in sorted(cells, key=lambda pair: (ORDER.index(pair[0]), int(pair[1]))):
            for stage in cells[entry, number]["result"]["stages"]:
                with np.load(self._path(name, entry, int(number), stage)) as file:
                    parts = {part: file[part].astype(np.float32) for part in ("whole", "first", "second")}
                yield entry, int(number), stage, HeldOutVectors(**parts)

    def _path(self, name: str, entry: str, seed: int, stage: str) -> Path:
        return self.work.folder / name / f"{encoder_file_name(entry, seed, stage)}.npz"


def average_weights(start: SentenceTransformer, model: SentenceTransformer) -> SentenceTransformer:
    """Average the weights of a trained model with its initial ones, in place."""
    initial = start.state_dict()
    final = model.state_dict().items()
    means = {name: (initial[name] + end) / 2 if end.is_floating_point() else end for name, end in final}
    model.load_state_dict(means)
    return model


def encoder_file_name(entry: str, seed: int, stage: str) -> str:
    """Return the file name of an encoder, without suffix."""
    return f"{entry}-{seed}{' ' + stage if stage else ''}"
