"""Label-free training objectives in a few lines each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.bank.static import STATIC_RECIPES, StaticRecipe, shuffled_batches
from benchmarks.bank.teacher import MAX_TOKENS, NEIGHBOURS, TeacherLoss, nearest_documents, smooth_vectors
from benchmarks.builder.lora import add_lora
from benchmarks.nli.training import WEIGHT
from benchmarks.rivals.train import CONTRASTIVE, train_rival
from simlte_st.data import Crop, DocSplit, Document, Identity, SegmentedDocument, View, draw_views
from simlte_st.losses import ReconstructionLoss
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.static import is_static
from simlte_st.modules import TokenAttention, to_chunk_mean
from simlte_st.training.prepare_model import set_dropout
from simlte_st.training.presets import Pooling
from simlte_st.words.sentences import make_segmenter, segment_documents, tokenizer_counter

BATCH = 32
"""Documents in a step."""

TOKEN_ATTENTION: Literal["token attention"] = "token attention"


@dataclass(frozen=True)
class Recipe:
    """Settings for training an encoder.

    Attributes:
        view: How a document becomes two views.
        pooling: ``"mean"`` as in the base, ``"cls"``, or TA-SBERT's ``"token attention"``.
        learning_rate: Peak learning rate of AdamW, with 10% warm-up and linear decay.
        temperature: Temperature of the contrastive term.
        contrast: Weight of the contrastive term.
        teacher: Weight of the cosine distance between a view and the base's embedding of the whole document.
        relation: Weight of the relation term of :class:`~benchmarks.bank.teacher.TeacherLoss`.
        smooth: Weight of the nearest documents in the target embedding; 0 uses the document alone.
        lexical: Weight of words in the similarity of documents, from 0 to 1.
        neighbours: Probability that the second view comes from a neighbouring document.
        dropout: Dropout in training.
        tokens: Maximum number of tokens of a view, special tokens included.
        rank: Rank of low-rank adapters, trained instead of the weights and merged at the end; 0 for none.
        reconstruction: Weight of TA-SBERT's reconstruction loss.
        steps: Optimizer steps; None for the bank's default.
    """

    view: View = field(default_factory=DocSplit)
    pooling: Pooling | Literal["token attention"] = "mean"
    learning_rate: float = 2e-5
    temperature: float = 0.05
    contrast: float = 1.0
    teacher: float = 0.0
    relation: float = 0.0
    smooth: float = 0.0
    lexical: float = 0.5
    neighbours: float = 0.0
    dropout: float = 0.0
    tokens: int = 64
    rank: int = 0
    reconstruction: float = 0.0
    steps: int | None = None


@dataclass(frozen=True)
class RivalRecipe:
    """A recipe that runs one of :data:`~benchmarks.rivals.RIVALS` on the same budget.

    Attributes:
        rival: Name of the rival.
        pooling: As in :class:`Recipe`.
        learning_rate: As in :class:`Recipe`.
    """

    rival: str
    pooling: Pooling = "mean"
    learning_rate: float = 2e-5


DOCSPLIT = Recipe()
WARM = replace(DOCSPLIT, temperature=0.5)
FASTER = replace(WARM, learning_rate=3e-5)
TEACHER = Recipe(contrast=0.0, teacher=1.0, learning_rate=1e-4)
TUNED = replace(TEACHER, smooth=0.5, relation=0.3)
RECIPES: dict[str, Recipe | RivalRecipe | StaticRecipe] = {
    "docsplit": DOCSPLIT,
    "docsplit-cls": replace(DOCSPLIT, pooling="cls", learning_rate=5e-5),
    "docsplit, token attention": replace(FASTER, pooling=TOKEN_ATTENTION),
    "docsplit, token attention, reconstruction": replace(FASTER, pooling=TOKEN_ATTENTION, reconstruction=WEIGHT),
    "docsplit, temperature 0.2, 3e-5": replace(FASTER, temperature=0.2),
    "docsplit, temperature 0.2, 7.5e-5": replace(WARM, temperature=0.2, learning_rate=7.5e-5),
    "docsplit, temperature 0.5": WARM,
    "docsplit, temperature 0.5, 3e-5": FASTER,
    "docsplit, temperature 0.5, 7.5e-5": replace(WARM, learning_rate=7.5e-5),
    "docsplit, temperature 1, 3e-5": replace(FASTER, temperature=1.0),
    "docsplit-gentle": replace(DOCSPLIT, learning_rate=5e-6, temperature=0.2),
    "crop": replace(DOCSPLIT, view=Crop()),
    "crop, temperature 0.5, 3e-5": replace(FASTER, view=Crop()),
    "simcse": replace(DOCSPLIT, view=Identity(unit="sentence"), dropout=0.1),
    "simcse, temperature 0.5, 3e-5": replace(FASTER, view=Identity(unit="sentence"), dropout=0.1),
    "tsdae": RivalRecipe("tsdae"),
    "contrastive tension": RivalRecipe("contrastive-tension"),
    "neighbours": replace(DOCSPLIT, neighbours=0.5, temperature=0.1),
    "neighbours, temperature 0.2, 3e-5": replace(FASTER, neighbours=0.5, temperature=0.2),
    "teacher": TEACHER,
    "smooth": replace(TEACHER, smooth=0.5),
    "tuned": TUNED,
    "tuned, relation 1": replace(TUNED, relation=1.0),
    "tuned, no words": replace(TUNED, lexical=0.0),
    "tuned, alone": replace(TUNED, smooth=0.0),
    "tuned, LoRA": replace(TUNED, rank=16, learning_rate=10 * TUNED.learning_rate),
    "tuned + contrast, 1.5e-4": replace(TUNED, contrast=0.3, temperature=0.2, learning_rate=1.5e-4),
}
RECIPES |= {
    f"docsplit, temperature 0.5, {steps} steps, {tokens} tokens": replace(WARM, steps=steps, tokens=tokens)
    for steps in (30, 100, 300)
    for tokens in (64, 256)
    if (steps, tokens) != (30, 64)
}
RECIPES |= STATIC_RECIPES
"""All recipes by name. The last ones vary the steps and view length of the default, or are static."""


@dataclass(frozen=True)
class RecipeCorpus:
    """Training documents, and the base that recipes adapt.

    Attributes:
        documents: The documents, split into sentences.
        texts: Their whole texts.
        base: The base.
        bf16: Compute in bfloat16.
    """

    documents: list[SegmentedDocument]
    texts: list[str]
    base: SentenceTransformer
    bf16: bool

    @cached_property
    def vectors(self) -> np.ndarray:
        """The base's normalised float32 embeddings of the whole documents, read in chunks."""
        return embed_texts(to_chunk_mean(self.base, max_length=MAX_TOKENS), self.texts, MAX_TOKENS, self.bf16)


def prepare_corpus(base: SentenceTransformer, documents: Sequence[Document], bf16: bool) -> RecipeCorpus:
    """Segment documents for recipes that adapt the base."""
    segmenter = make_segmenter("punkt", lambda: (document.text for document in documents))
    segmented = list(segment_documents(documents, segmenter, tokenizer_counter(base.tokenizer)))
    usable = [row for row, document in enumerate(segmented) if DocSplit().accepts(document)]
    return RecipeCorpus([segmented[row] for row in usable], [documents[row].text for row in usable], base, bf16)


def embed_texts(model: SentenceTransformer, texts: Sequence[str], tokens: int, bf16: bool) -> np.ndarray:
    """Embed texts, truncated to ``tokens`` unless the model is static; normalised, float32."""
    model.eval()
    if not is_static(model):
        model.max_seq_length = tokens
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        vectors = model.encode(list(texts), show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True)
    return np.asarray(vectors, dtype=np.float32)


def train_recipe(
    model: SentenceTransformer, recipe: Recipe, corpus: RecipeCorpus, steps: int, seed: int, bf16: bool
) -> Iterator[int]:
    """Train a model in place, yielding the number of finished steps."""
    adapters = add_lora(model, recipe.rank, seed=seed) if recipe.rank else None
    set_dropout(model, recipe.dropout)
    model.max_seq_length = recipe.tokens
    torch.manual_seed(seed)
    loss = Objective(model, recipe, corpus)
    full_loss = ReconstructionLoss(loss, recipe.reconstruction, seed=seed) if recipe.reconstruction else loss
    parameters = [weights for weights in full_loss.parameters() if weights.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=0.0)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    model.train()
    for step, (rows, anchors, positives) in enumerate(recipe_batches(recipe, corpus, steps, seed), start=1):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            terms = full_loss([model.preprocess(texts) for texts in (anchors, positives)], rows)
        optimizer.zero_grad()
        (sum(terms.values()) if isinstance(terms, dict) else terms).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step == steps and adapters is not None:
            adapters.merge_and_unload(safe_merge=True)
        yield step
        model.max_seq_length = recipe.tokens
        model.train()


def train_by_rival(
    rival: RivalRecipe, corpus: RecipeCorpus, steps: int, seed: int, bf16: bool, base: str = PACKAGED_BASE
) -> SentenceTransformer:
    """Train the base with one of the rivals."""
    preset = CONTRASTIVE.changed(
        batch_size=BATCH, max_view_length=Recipe.tokens, pooling=rival.pooling, learning_rate=rival.learning_rate
    )
    documents = [{"id": str(row), "text": text} for row, text in enumerate(corpus.texts)]
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/{rival.rival}"
        train_rival(rival.rival, documents, base, output, steps=steps, preset=preset, seed=seed, bf16=bf16)
        return load_model(output).model


def recipe_batches(
    recipe: Recipe, corpus: RecipeCorpus, steps: int, seed: int
) -> Iterator[tuple[list[int], list[str], list[str]]]:
    """Yield batches of row numbers, first views and second views of documents."""
    generator = np.random.default_rng(seed)
    count = len(corpus.documents)
    neighbours = nearest_documents(corpus.vectors, corpus.texts, lexical=recipe.lexical) if recipe.neighbours else None
    for epoch, rows in islice(shuffled_batches(count, min(BATCH, count), generator), steps):
        pairs = [_draw_pair(corpus.documents[row], recipe, seed, epoch) for row in rows]
        positives = [
            _draw_pair(corpus.documents[neighbours[row, generator.integers(NEIGHBOURS)]], recipe, seed, epoch)[1]
            if neighbours is not None and generator.random() < recipe.neighbours
            else pair[1]
            for row, pair in zip(rows, pairs, strict=True)
        ]
        yield rows, [pair[0] for pair in pairs], positives


def _draw_pair(document: SegmentedDocument, recipe: Recipe, seed: int, epoch: int) -> tuple[str, str]:
    budget = recipe.tokens - 2
    pair = draw_views(document, recipe.view, seed=seed, epoch=epoch, budget=budget)
    pair = pair or draw_views(document, DocSplit(), seed=seed, epoch=epoch, budget=budget)
    assert pair is not None  # DocSplit accepts every document of the corpus
    return pair.anchor, pair.positive


class Objective(nn.Module):
    """The loss of a recipe on two views of each document."""

    def __init__(self, model: SentenceTransformer, recipe: Recipe, corpus: RecipeCorpus) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe
        if recipe.teacher or recipe.relation:
            targets = corpus.vectors
            if recipe.smooth:
                neighbours = nearest_documents(targets, corpus.texts, lexical=recipe.lexical)
                targets = smooth_vectors(targets, neighbours, recipe.smooth)
            self.targets = torch.from_numpy(targets)
        self.teacher_loss = TeacherLoss(model, relation_weight=recipe.relation)

    def forward(self, columns: Sequence[dict[str, Any]], rows: list[int]) -> Tensor:
        """Compute the loss from the features of both views; ``rows`` are the row numbers of their documents."""
        sides = [functional.normalize(self.model(features)["sentence_embedding"], dim=-1) for features in columns]
        recipe = self.recipe
        with torch.autocast("cpu", enabled=False):
            anchors, positives = (side.float() for side in sides)
            loss = anchors.new_zeros(())
            if recipe.contrast:
                scores = anchors @ positives.T / recipe.temperature
                loss = loss + recipe.contrast * functional.cross_entropy(scores, torch.arange(len(rows)))
            if recipe.teacher or recipe.relation:
                targets = self.targets[rows]
                terms = self.teacher_loss.compute_loss_from_embeddings([anchors, positives], [targets, targets])
                loss = loss + recipe.teacher * terms["distance"] + terms.get("relation", 0.0)
        return loss


def load_base(base: str, pooling: str, seed: int = 0) -> SentenceTransformer:
    """Load the base with a recipe's pooling; the seed initialises token attention."""
    # In 16 bits, as static models may be stored, Adam would divide by zero.
    model = load_model(base).copy("mean" if pooling == TOKEN_ATTENTION else pooling).model.float()
    if pooling == TOKEN_ATTENTION:
        model[1] = TokenAttention(model[0].get_embedding_dimension(), s_max=Recipe.tokens, seed=seed)
    return model
