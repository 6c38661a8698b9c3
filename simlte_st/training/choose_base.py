"""The base of a run that names none, and whether the run makes a static model of its base."""

from __future__ import annotations

import logging
import os

from simlte_st.data.document import LONG, median_words
from simlte_st.data.document_stream import shard_order
from simlte_st.data.documents import DocumentReader
from simlte_st.data.shards import Shards
from simlte_st.files import SETTINGS_FILE, read_json
from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.training.config import ONLY_ENCODERS, TrainConfig, wants_static
from simlte_st.training.folder import RunFolder

logger = logging.getLogger(__name__)


def choose_base(config: TrainConfig, folder: RunFolder, documents: DocumentReader | Shards | None) -> str:
    """Return the name of the base: what was asked for, or the default for documents of their length.

    An interrupted run goes on with its own.
    """
    saved = folder.path / SETTINGS_FILE
    if config.base is not None:
        return os.fspath(config.base)
    if config.resume and saved.exists():
        return str(read_json(saved)["base"])
    static = wants_static(config)
    if leaves_open(config):
        words = words_of(documents, config.seed)
        static = words >= LONG
        logger.info("%s", in_words(words, static))
    name = OWN_STATIC if static else PACKAGED_BASE
    logger.info("Base: %s, the default.", name)
    return name


def leaves_open(config: TrainConfig) -> bool:
    """Return whether neither base nor settings tell which kind of model a run is to make."""
    encoder = any(config.settings.get(name) is not None for name in ONLY_ENCODERS) or config.bf16
    return config.base is None and config.static is None and config.preset == "auto" and not encoder


def words_of(documents: DocumentReader | Shards | None, seed: int) -> float:
    """Return the median number of words of the first documents."""
    if isinstance(documents, Shards):
        documents = documents.first(200, shard_order(len(documents.names), seed, epoch=0))
    assert documents is not None
    return median_words(document.text for document in documents.peek())


def in_words(words: float, static: bool) -> str:
    """Return what a run makes of documents of a length, why, and how to have the other kind."""
    length = f"The documents have {words:,.0f} words each (the median of the first)"
    if static:
        return (
            f"{length}: a static model is trained, which reads them whole and is at least as good as an adapted "
            f"encoder on documents of {LONG} words or more. To train an encoder: static=False."
        )
    return (
        f"{length}: an encoder is trained, which is better than a static model on documents of fewer than {LONG} "
        "words. To train a static model, in seconds: static=True."
    )
