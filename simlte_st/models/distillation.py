"""Any encoder to a static one: a vector for each token, of which a text's is the mean (model2vec's distillation)."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from transformers import PreTrainedTokenizerFast

from simlte_st.compat import encoder_of
from simlte_st.config import configured
from simlte_st.data.analyzer import PLAIN
from simlte_st.data.config import ReadConfig
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.report import ReadReport
from simlte_st.errors import ModelError
from simlte_st.files import atomic_path, check_apart, check_free
from simlte_st.models.base import load_model
from simlte_st.models.cards import write_model_card
from simlte_st.models.config import StaticConfig
from simlte_st.models.loading import LoadedModel, without_queries
from simlte_st.models.model2vec import write_for_model2vec
from simlte_st.models.names import shown_base
from simlte_st.models.passes import fast_products
from simlte_st.models.static import is_static
from simlte_st.modules.latent_semantic_analysis import LatentSemanticAnalysis
from simlte_st.progress import progress_bar, with_progress_bar

if TYPE_CHECKING:
    from skeletoken import TokenizerModel
    from tokenizers import Tokenizer
    from typing_extensions import Unpack

    from simlte_st.overrides import StaticOverrides

logger = logging.getLogger(__name__)

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


@configured(StaticConfig)
def to_static(
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    config: StaticConfig | None = None,
    *,
    documents: Any = None,
    **overrides: Unpack[StaticOverrides],
) -> Distilled:
    """Write a static model that is distilled from an encoder: it reads whole texts, some hundred times as fast.

    Each token of the base's vocabulary is encoded by itself, a principal component analysis leaves the wanted
    dimensions, and frequent tokens get less weight. A text's embedding is the mean of its tokens', of length 1. The
    folder is loaded by sentence-transformers and, without torch, by ``model2vec.StaticModel.from_pretrained``, with
    the same embeddings. Prompts of the base, a latent semantic analysis at its end and the order of words have no
    place in it.

    Args:
        base: The encoder; see :func:`~simlte_st.models.names.find_model`.
        output: The folder to write.
        config: How to distil.
        documents: Anything :func:`~simlte_st.data.read_documents` takes. Their most frequent words that the base's
            tokenizer cuts into several pieces get vectors of their own.
        **overrides: Settings of :class:`~simlte_st.models.config.StaticConfig`, in place of those of ``config``.

    Returns:
        What was done.

    Raises:
        ModelError: The base cannot be loaded, or cannot be distilled: it has no fast tokenizer, is static already,
            or makes no embeddings of tokens.
        DataError: The documents cannot be read.
        ConfigurationError: A setting is out of its range, something is at the output, or the documents are in there.
        MissingExtraError: The extra ``static`` is not installed.

    References:
        Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024; Arora et al., "A Simple but
        Tough-to-Beat Baseline for Sentence Embeddings", 2017, for the weights.
    """
    config = StaticConfig.make(config, overrides)
    target = Path(output)
    if documents is not None:
        check_apart(documents, target)
    check_free(target, config.overwrite)
    reader = None if documents is None else read_documents(documents, **config.values(ReadConfig))
    loaded = without_queries(load_model(base, dtype=torch.float32, device=config.device), "distilled")
    model, words = _distil(loaded, config, reader)
    tokens, dimension = cast(StaticEmbedding, model[0]).embedding.weight.shape
    with atomic_path(target) as path:
        model.save_pretrained(str(path))
        write_for_model2vec(path)
        added = f", {words:,} of them words of {reader.report.documents:,} documents" if reader is not None else ""
        write_model_card(
            path,
            name=target.name,
            base=os.fspath(base),
            summary=f"A static model that simlte_st distilled from `{shown_base(os.fspath(base))}`: one vector for "
            "each token, whose mean is the embedding of a text of any length.",
            about="## Distillation\n\n"
            f"- Tokens: {tokens:,}{added}\n"
            f"- Dimensions: {dimension}\n"
            f"- Weights of tokens: smooth inverse frequency, {SIF:g}\n"
            "- Without torch: `model2vec.StaticModel.from_pretrained` loads this folder\n",
        )
    return Distilled(target, tokens, words, dimension, None if reader is None else reader.report)


def distilled(
    base: SentenceTransformer | LoadedModel, config: StaticConfig, documents: Iterable[Document] | None = None
) -> SentenceTransformer:
    """Return a static model of a loaded base, in float32, on the CPU; the same base gives the same bytes."""
    return _distil(base, config, documents)[0]


def _distil(
    base: SentenceTransformer | LoadedModel, config: StaticConfig, documents: Iterable[Document] | None
) -> tuple[SentenceTransformer, int]:
    """Return the static model, and how many words of documents it has."""
    from model2vec.distill.inference import apply_pca, compute_weights

    loaded = base if isinstance(base, LoadedModel) else LoadedModel(base, "the base", "", tuned=True)
    modules = _modules_to_distil(loaded)
    vocabulary = _Vocabulary(loaded)
    if documents is not None and config.words:
        vocabulary.add_words(documents, config.words, config.progress)
    vectors = _token_vectors(loaded.model, modules, vocabulary.read_by_base(), config.progress)
    size = min(config.dimension, vectors.shape[1])
    vectors = apply_pca(vectors, size) * compute_weights(len(vectors), SIF)[:, None]
    if vocabulary.unknown is not None:
        # model2vec reads a text without its unknown tokens, StaticEmbedding with them: now both do the same.
        vectors[vocabulary.unknown] = 0
    weights = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    embedding = StaticEmbedding(vocabulary.tokenizer(), embedding_weights=weights)
    return SentenceTransformer(modules=[embedding, Normalize()], device="cpu"), vocabulary.words


def _modules_to_distil(loaded: LoadedModel) -> list[torch.nn.Module]:
    """Return the modules that embed a token; raise a ModelError if the base is not an encoder of tokens."""
    model, name = loaded.model, loaded.name
    if is_static(model):
        raise ModelError(f"{name!r} is a static model already.")
    if not isinstance(model[0], Transformer):
        raise ModelError(f"{name!r} begins with {type(model[0]).__name__}, not with an encoder of tokens.")
    encoder_of(model)  # raises where there is none
    modules = [module for module in model if not isinstance(module, Normalize)]
    if isinstance(modules[-1], LatentSemanticAnalysis):
        del modules[-1]
    if not loaded.tuned:  # nobody has chosen how to pool
        modules = [Pooling(each.embedding_dimension) if isinstance(each, Pooling) else each for each in modules]
    return modules


class _Vocabulary:
    """The tokens of a static model, and how its base reads each of them.

    A base's special tokens, ``[unused0]`` and the like have no place in it. Tokens that somebody added to the base's
    tokenizer stay.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        from skeletoken import TokenizerModel

        base, name = loaded.model.tokenizer, loaded.name
        if not isinstance(base, PreTrainedTokenizerFast):
            raise ModelError(f"{name!r} has no fast tokenizer ({type(base).__name__}), which distilling needs.")
        self._base, self._known = base, base.get_vocab()
        self._added = [str(each) for each in base.added_tokens_decoder.values() if not each.special]
        with _silence():
            model = TokenizerModel.from_transformers_tokenizer(base).prune_added_tokens()
            if model.adds_prefix_space is not None:
                model.adds_prefix_space = True  # a word at the beginning of a text is the same as elsewhere
            self._model = self._with([], model)
        self.words = 0

    def add_words(self, documents: Iterable[Document], number: int, progress: bool) -> None:
        """Add the words that most documents have, of those that the tokenizer cuts into pieces."""
        counts: Counter[str] = Counter()
        for document in with_progress_bar(documents, "Counting words", shown=progress):
            counts.update(set(PLAIN.findall(document.text)))
        preprocessor, vocabulary = self._model.preprocessor, self._model.vocabulary
        pieces: Counter[str] = Counter()  # by their form in the vocabulary, which may be lower-cased
        forms: dict[str, str] = {}
        for word, count in counts.items():
            form = preprocessor.preprocess(word, had_initial_subword_prefix=True)
            if count >= _FEWEST and len(form) == 1 and form[0] not in vocabulary:
                pieces[form[0]] += count
                forms.setdefault(form[0], word)
        chosen = [forms[form] for form, _ in sorted(pieces.items(), key=lambda each: (-each[1], each[0]))[:number]]
        with _silence():
            self._model = self._with(chosen, self._model)
        self.words = len(chosen)

    def _with(self, words: list[str], model: TokenizerModel) -> TokenizerModel:
        from model2vec.tokenizer import clean_and_create_vocabulary

        return clean_and_create_vocabulary(model, [*self._added, *words], re.compile(UNUSED))

    def read_by_base(self) -> list[list[int]]:
        """Return the ids by which the base reads each token by itself, with its special tokens around."""
        text = "a"
        bare, full = (self._base(text, add_special_tokens=special)["input_ids"] for special in (False, True))
        start = next(at for at in range(len(full)) if full[at : at + len(bare)] == bare)
        before, after = full[:start], full[start + len(bare) :]
        preprocessor = self._model.preprocessor
        found = []
        for token in self._model.sorted_vocabulary:
            if token in self._known:
                ids = [self._known[token]]
            else:  # a word, or a piece of one that byte pairs are merged by
                read = preprocessor.decode(token)
                space = " " * (read.had_initial_subword_prefix and preprocessor.byte_transformer is not None)
                ids = self._base(f"{space}{read.decoded}", add_special_tokens=False)["input_ids"]
            found.append([*before, *ids, *after])
        return found

    @property
    def unknown(self) -> int | None:
        """The id of the token for what has none."""
        unknown: int | None = self._model.unk_token_id
        return unknown

    def tokenizer(self) -> Tokenizer:
        """Return the static model's tokenizer, which reads whole texts, whatever the base's was set to."""
        tokenizer = self._model.to_tokenizer()
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def _token_vectors(
    model: SentenceTransformer, modules: Sequence[torch.nn.Module], tokens: list[list[int]], progress: bool
) -> NDArray[np.float32]:
    """Return what the base makes of each token, pooled as it pools texts."""
    order = sorted(range(len(tokens)), key=lambda row: len(tokens[row]))
    vectors: NDArray[np.float32] | None = None
    with (
        torch.inference_mode(),
        fast_products(model.device),
        progress_bar("Distilling", len(tokens), unit="token", shown=progress) as bar,
    ):
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            features = dict(model.tokenizer.pad({"input_ids": [tokens[row] for row in rows]}, return_tensors="pt"))
            features = {name: value.to(model.device) for name, value in features.items()}
            for module in modules:
                features = module(features)
            made = features["sentence_embedding"].float().cpu().numpy()
            if vectors is None:
                vectors = np.empty((len(tokens), made.shape[1]), dtype=np.float32)
            vectors[rows] = made
            bar.update(len(rows))
    assert vectors is not None
    return vectors


@contextmanager
def _silence() -> Iterator[None]:
    """Hide what model2vec and skeletoken log of single tokens."""
    loggers = [logging.getLogger(name) for name in ("model2vec", "skeletoken")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
