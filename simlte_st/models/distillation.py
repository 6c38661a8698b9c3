"""Distil any encoder to a static model: a vector for each token, whose mean is a text's (model2vec's distillation).

model2vec's own ``distill_from_model`` pools an encoder's last states. Here the base pools as it pools texts, by all of
its modules; vocabulary, principal components and weights are model2vec's.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from simlte_st.arguments import Count, checked
from simlte_st.errors import ModelError
from simlte_st.extras import check_installed
from simlte_st.files import atomic_path, check_free
from simlte_st.models.names import shown_base
from simlte_st.progress import progress_bar

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from simlte_st.models.loading import LoadedModel

SIF = 1e-4
"""Smooth inverse frequency: a token weighs ``SIF / (SIF + p)``, its probability p guessed from its rank (Zipf)."""

UNUSED = r"\[unused\d+\]"
"""Tokens of BERT's vocabulary that stand for nothing: they get no vector."""

_BATCH = 256


@dataclass(frozen=True)
class Distilled:
    """What :func:`to_static` did.

    Attributes:
        output: The new model's folder.
        tokens: Tokens that have a vector.
        dimension: Dimensions of the embeddings.
    """

    output: Path
    tokens: int
    dimension: int


def check_distillation() -> None:
    """Check that the extra for distilling is installed."""
    for package in ("skeletoken", "model2vec"):
        check_installed(package, "static", "distilling a static model")


@checked
def to_static(
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    dimension: Count = 256,
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Distilled:
    """Write a static model that is distilled from an encoder: it reads whole texts, some hundred times as fast.

    Each token of the base's vocabulary is encoded by itself, a principal component analysis leaves the wanted
    dimensions, and frequent tokens get less weight. A text's embedding is the mean of its tokens', of length 1. The
    folder is loaded by sentence-transformers and, without torch, by ``model2vec.StaticModel.from_pretrained``, with
    the same embeddings. Prompts of the base, a latent semantic analysis at its end and the order of words have no
    place in it.

    Args:
        base: The encoder: a folder or a name; see :func:`~simlte_st.models.names.find_model`.
        output: The folder to write.
        dimension: Number of dimensions; at most the base's.
        device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one).
        overwrite: Overwrite an existing model.
        progress: Show progress bars.

    Returns:
        What was done.

    Raises:
        ModelError: The base cannot be loaded, or cannot be distilled: it has no fast tokenizer, is static already,
            or makes no embeddings of tokens.
        ConfigurationError: An argument is out of its range, or something is at the output.
        MissingExtraError: The extra ``static`` is not installed.

    References:
        Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024; Arora et al., "A Simple but
        Tough-to-Beat Baseline for Sentence Embeddings", 2017, for the weights.
    """
    check_distillation()
    target, name = Path(output), os.fspath(base)
    check_free(target, overwrite)

    import torch

    from simlte_st.models.cards import write_model_card
    from simlte_st.models.loading import load_model
    from simlte_st.models.static import write_for_model2vec

    loaded = load_model(base, dtype=torch.float32, device=device)
    model = distilled(loaded, dimension=dimension, progress=progress)
    tokens, size = cast(Any, model[0]).embedding.weight.shape
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        write_for_model2vec(path)
        write_model_card(
            path,
            name=target.name,
            base=name,
            summary=f"A static model distilled from `{shown_base(name)}` by simlte_st: one vector for each token. The "
            "embedding of a text, of any length, is the mean of its token vectors.",
            about="## Distillation\n\n"
            f"- Tokens: {tokens:,}\n"
            f"- Dimensions: {size}\n"
            f"- Token weights: smooth inverse frequency, {SIF:g}\n",
        )
    return Distilled(target, tokens, size)


def distilled(
    base: SentenceTransformer | LoadedModel, *, dimension: int = 256, progress: bool = True
) -> SentenceTransformer:
    """Return a static model of a loaded base, in float32, on the CPU; the same base gives the same bytes."""
    check_distillation()
    import torch
    from model2vec.distill.inference import apply_pca, compute_weights
    from model2vec.tokenizer import clean_and_create_vocabulary
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from skeletoken import TokenizerModel
    from transformers import PreTrainedTokenizerFast

    from simlte_st.models.loading import LoadedModel

    loaded = base if isinstance(base, LoadedModel) else LoadedModel(base, "the base", "", tuned=True)
    modules, tokenizer = _modules_to_distil(loaded), loaded.model.tokenizer
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(f"{loaded.name!r} has no fast tokenizer ({type(tokenizer).__name__}), which distilling needs.")
    for name in ("model2vec", "skeletoken"):
        logging.getLogger(name).setLevel(logging.ERROR)  # they report single tokens
    vocabulary = TokenizerModel.from_transformers_tokenizer(tokenizer).prune_added_tokens()
    if vocabulary.adds_prefix_space is not None:
        vocabulary.adds_prefix_space = True  # a word at the beginning of a text is the same as elsewhere
    added = [str(each) for each in tokenizer.added_tokens_decoder.values() if not each.special]
    vocabulary = clean_and_create_vocabulary(vocabulary, added, re.compile(UNUSED))
    vectors = _token_vectors(loaded.model, modules, _read_by_base(tokenizer, vocabulary.sorted_vocabulary), progress)
    vectors = apply_pca(vectors, min(dimension, vectors.shape[1])) * compute_weights(len(vectors), SIF)[:, None]
    if vocabulary.unk_token_id is not None:
        # model2vec reads a text without its unknown tokens, StaticEmbedding with them: now both do the same.
        vectors[vocabulary.unk_token_id] = 0
    reads = vocabulary.to_tokenizer()
    reads.no_truncation()
    reads.no_padding()
    weights = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    return SentenceTransformer(modules=[StaticEmbedding(reads, embedding_weights=weights), Normalize()], device="cpu")


def _modules_to_distil(loaded: LoadedModel) -> list[nn.Module]:
    """Return the modules that embed a token; raise a ModelError if the base is not an encoder of tokens."""
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    from simlte_st.compat import encoder_of
    from simlte_st.models.static import is_static
    from simlte_st.modules import TokenTable

    if is_static(loaded.model):
        raise ModelError(f"{loaded.name!r} is a static model already.")
    encoder_of(loaded.model)  # raises where there is none
    modules = [module for module in loaded.model if not isinstance(module, (Normalize, TokenTable))]
    if not loaded.tuned:  # nobody has chosen how to pool
        modules = [Pooling(each.embedding_dimension) if isinstance(each, Pooling) else each for each in modules]
    return modules


def _read_by_base(tokenizer: Any, tokens: list[str]) -> list[list[int]]:
    """Return the ids by which the base reads each token by itself, with its special tokens around."""
    bare, full = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    start = next(at for at in range(len(full)) if full[at : at + len(bare)] == bare)
    before, after, known = full[:start], full[start + len(bare) :], tokenizer.get_vocab()
    own = (
        [known[each]] if each in known else tokenizer(each, add_special_tokens=False)["input_ids"] for each in tokens
    )
    return [[*before, *ids, *after] for ids in own]


def _token_vectors(
    model: SentenceTransformer, modules: list[nn.Module], tokens: list[list[int]], progress: bool
) -> NDArray[np.float32]:
    """Return what the base makes of each token, pooled as it pools texts."""
    import torch

    from simlte_st.models.passes import fast_products

    order, found = sorted(range(len(tokens)), key=lambda row: len(tokens[row])), []
    with (
        torch.inference_mode(),
        fast_products(model.device),
        progress_bar("Distilling", len(tokens), unit="token", shown=progress) as bar,
    ):
        for start in range(0, len(order), _BATCH):
            rows = [tokens[row] for row in order[start : start + _BATCH]]
            features = dict(model.tokenizer.pad({"input_ids": rows}, return_tensors="pt"))
            features = {name: value.to(model.device) for name, value in features.items()}
            for module in modules:
                features = module(features)
            found.append(features["sentence_embedding"].float().cpu().numpy())
            bar.update(len(rows))
    vectors: NDArray[np.float32] = np.concatenate(found)[np.argsort(order)]
    return vectors
