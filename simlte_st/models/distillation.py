"""Distil any encoder to a static model: a vector for each token, whose mean is a text's (model2vec's distillation).

model2vec's own ``distill_from_model`` pools an encoder's last states, and reads the words that it adds by their form in
the vocabulary: the bytes of "\u0120word", for a byte-level tokenizer. Here the base pools as it pools texts, by all of
its modules, and reads words as they stand in a text; vocabulary, principal components and weights are model2vec's.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from simlte_st.arguments import Count, CountOrZero, checked
from simlte_st.data.analyzer import PLAIN
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.report import ReadReport
from simlte_st.errors import ModelError
from simlte_st.extras import check_installed
from simlte_st.files import atomic_path, check_apart, check_free
from simlte_st.models.names import shown_base
from simlte_st.progress import progress_bar, with_progress_bar

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
_FEWEST = 2  # documents with a word


@dataclass(frozen=True)
class Distilled:
    """What :func:`to_static` did.

    Attributes:
        output: The new model's folder.
        tokens: Tokens that have a vector.
        words: How many of them are words of the documents that were added.
        dimension: Dimensions of the embeddings.
        read: What came of reading the documents; None without documents.
    """

    output: Path
    tokens: int
    words: int
    dimension: int
    read: ReadReport | None


def check_distillation() -> None:
    """Check that the extra for distilling is installed."""
    for package in ("skeletoken", "model2vec"):
        check_installed(package, "static", "distilling a static model")


@checked
def to_static(
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    documents: Any = None,
    dimension: Count = 256,
    words: CountOrZero = 500,
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
        documents: Anything that :func:`~simlte_st.data.read_documents` takes. Their most frequent words that the
            base's tokenizer cuts into several pieces get vectors of their own.
        dimension: Number of dimensions; at most the base's.
        words: Number of frequent words of the documents that get vectors of their own.
        device: Where to compute: cpu, cuda, cuda:1 or mps (default: a GPU, if there is one).
        overwrite: Overwrite an existing model.
        progress: Show progress bars.

    Returns:
        What was done.

    Raises:
        ModelError: The base cannot be loaded, or cannot be distilled: it has no fast tokenizer, is static already,
            or makes no embeddings of tokens.
        DataError: The documents cannot be read.
        ConfigurationError: An argument is out of its range, something is at the output, or the documents are in there.
        MissingExtraError: The extra ``static`` is not installed.

    References:
        Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024; Arora et al., "A Simple but
        Tough-to-Beat Baseline for Sentence Embeddings", 2017, for the weights.
    """
    check_distillation()
    target, name = Path(output), os.fspath(base)
    if documents is not None:
        check_apart(documents, target)
    check_free(target, overwrite)
    reader = None if documents is None else read_documents(documents)

    import torch

    from simlte_st.models.cards import write_model_card
    from simlte_st.models.loading import load_model, without_queries
    from simlte_st.models.static import write_for_model2vec

    loaded = without_queries(load_model(base, dtype=torch.float32, device=device), "distilled")
    model, added = _distil(loaded, reader, dimension, words, progress)
    tokens, size = cast(Any, model[0]).embedding.weight.shape
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        write_for_model2vec(path)
        said = f", {added:,} of them words of {reader.report.documents:,} documents" if reader is not None else ""
        write_model_card(
            path,
            name=target.name,
            base=name,
            summary=f"A static model that simlte_st distilled from `{shown_base(name)}`: one vector for each token, "
            "whose mean is the embedding of a text of any length.",
            about="## Distillation\n\n"
            f"- Tokens: {tokens:,}{said}\n"
            f"- Dimensions: {size}\n"
            f"- Weights of tokens: smooth inverse frequency, {SIF:g}\n"
            "- Without torch: `model2vec.StaticModel.from_pretrained` loads this folder\n",
        )
    return Distilled(target, tokens, added, size, None if reader is None else reader.report)


def distilled(
    base: SentenceTransformer | LoadedModel,
    documents: Iterable[Document] | None = None,
    *,
    dimension: int = 256,
    words: int = 500,
    progress: bool = True,
) -> SentenceTransformer:
    """Return a static model of a loaded base, in float32, on the CPU; the same base gives the same bytes."""
    check_distillation()
    return _distil(base, documents, dimension, words, progress)[0]


def _distil(
    base: SentenceTransformer | LoadedModel,
    documents: Iterable[Document] | None,
    dimension: int,
    words: int,
    progress: bool,
) -> tuple[SentenceTransformer, int]:
    """Return the static model, and how many words of documents it has."""
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
    chosen = [] if documents is None or not words else _words_to_add(documents, vocabulary, words, progress)
    if chosen:
        vocabulary = clean_and_create_vocabulary(vocabulary, [*added, *chosen], re.compile(UNUSED))

    vectors = _token_vectors(loaded.model, modules, _read_by_base(tokenizer, vocabulary), progress)
    vectors = apply_pca(vectors, min(dimension, vectors.shape[1])) * compute_weights(len(vectors), SIF)[:, None]
    if vocabulary.unk_token_id is not None:
        # model2vec reads a text without its unknown tokens, StaticEmbedding with them: now both do the same.
        vectors[vocabulary.unk_token_id] = 0
    reads = vocabulary.to_tokenizer()
    reads.no_truncation()
    reads.no_padding()
    weights = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    return SentenceTransformer(
        modules=[StaticEmbedding(reads, embedding_weights=weights), Normalize()], device="cpu"
    ), len(chosen)


def _modules_to_distil(loaded: LoadedModel) -> list[nn.Module]:
    """Return the modules that embed a token; raise a ModelError if the base is not an encoder of tokens."""
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    from simlte_st.compat import encoder_of
    from simlte_st.models.static import is_static
    from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis

    if is_static(loaded.model):
        raise ModelError(f"{loaded.name!r} is a static model already.")
    encoder_of(loaded.model)  # raises where there is none
    modules = [module for module in loaded.model if not isinstance(module, Normalize)]
    if isinstance(modules[-1], LatentSemanticAnalysis):
        del modules[-1]
    if not loaded.tuned:  # nobody has chosen how to pool
        modules = [Pooling(each.embedding_dimension) if isinstance(each, Pooling) else each for each in modules]
    return modules


def _words_to_add(documents: Iterable[Document], vocabulary: Any, number: int, progress: bool) -> list[str]:
    """Return the words that most documents have, of those that the tokenizer cuts into pieces."""
    counts: Counter[str] = Counter()
    for document in with_progress_bar(documents, "Counting words", shown=progress):
        counts.update(set(PLAIN.findall(document.text)))
    preprocessor, known = vocabulary.preprocessor, vocabulary.vocabulary
    pieces: Counter[str] = Counter()  # by their form in the vocabulary, which may be lower-cased
    forms: dict[str, str] = {}
    for word, count in counts.items():
        form = preprocessor.preprocess(word, had_initial_subword_prefix=True)
        if count >= _FEWEST and len(form) == 1 and form[0] not in known:
            pieces[form[0]] += count
            forms.setdefault(form[0], word)
    return [forms[form] for form, _ in sorted(pieces.items(), key=lambda each: (-each[1], each[0]))[:number]]


def _read_by_base(tokenizer: Any, vocabulary: Any) -> list[list[int]]:
    """Return the ids by which the base reads each token by itself, with its special tokens around."""
    bare, full = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    start = next(at for at in range(len(full)) if full[at : at + len(bare)] == bare)
    before, after = full[:start], full[start + len(bare) :]
    preprocessor, known, found = vocabulary.preprocessor, tokenizer.get_vocab(), []
    for token in vocabulary.sorted_vocabulary:
        if token in known:
            ids = [known[token]]
        else:  # a word, or a piece of one that byte pairs are merged by
            read = preprocessor.decode(token)
            space = " " * (read.had_initial_subword_prefix and preprocessor.byte_transformer is not None)
            ids = tokenizer(f"{space}{read.decoded}", add_special_tokens=False)["input_ids"]
        found.append([*before, *ids, *after])
    return found


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
