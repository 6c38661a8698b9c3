"""Each document segmented and tokenized once, whatever number of runs, epochs and processes use it.

The cache is a folder for each pair of segmenter and tokenizer, named by what decides their work::

    <settings>/settings.json            what the name stands for, for people
    <settings>/parts/<digest>.arrow     token ids of some thousand documents, named by their ids and texts
    <settings>/corpora/<digest>.json    the parts of a corpus, in order; written when all are there

A part is there as a whole or not at all. So a build that was interrupted goes on where it stopped, a corpus that has
grown at its end is tokenized only there, and processes that build the same corpus at once wait for each other's parts.
Everything in it can be deleted while no run uses it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import nltk
from filelock import FileLock
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from simlte_st.data.document import Document
from simlte_st.data.segmenters import PunktSegmenter, Segmenter, make_segmenter, peek, segmenter_identity
from simlte_st.data.sentences import MAX_WORDS
from simlte_st.data.token_corpus import TokenCorpus
from simlte_st.data.token_parts import SCHEMA, Part, in_parts, part_digest, write_part
from simlte_st.data.tokens import SentenceTokenizer
from simlte_st.errors import ConfigurationError, DataError, EmptyCorpusError
from simlte_st.files import home, read_json, write_json

logger = logging.getLogger(__name__)

FORMAT = 1
"""To be raised with every change of what segmenting, tokenizing or writing makes of the same documents."""


def tokenize_corpus(
    documents: Iterable[Document],
    tokenizer: PreTrainedTokenizerBase,
    *,
    segmenter: str | Segmenter = "punkt",
    directory: str | os.PathLike[str] | None = None,
    progress: bool = False,
    total: int | None = None,
) -> TokenCorpus:
    """Segment and tokenize documents, or find that done by an earlier call.

    The documents are read in any case, to know whether they are the same; memory holds one part of them.

    Args:
        documents: Read once, in order.
        tokenizer: The model's tokenizer, a fast one.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        directory: Folder of the cache; None for ``tokens`` in :func:`~simlte_st.home.home`, which all runs share. A
            callable without an attribute ``fingerprint`` (a string that changes with what it does) cannot be told from
            another one, so it needs a folder of its own.
        progress: Show a progress bar.
        total: Number of documents, where it is known, for the progress bar.

    Returns:
        The corpus.

    Raises:
        EmptyCorpusError: There are no documents.
        ConfigurationError: A segmenter without a fingerprint and no ``directory``; an unknown segmenter.
        ModelError: The tokenizer is not a fast one.
    """
    place = home() / "tokens" if directory is None else Path(directory)
    encode = SentenceTokenizer(tokenizer)
    cut, stream = _segmenter(segmenter, documents, place)
    folder = _settings_folder(place, cut, encode, shared=directory is None)
    parts: list[dict[str, Any]] = []
    made = differ = 0
    with tqdm(desc="Tokenizing", unit="doc", total=total, disable=not progress) as bar:
        for part in in_parts(stream):
            digest = part_digest(part)
            path = folder / "parts" / f"{digest}.arrow"
            # Whoever comes second waits and finds the part. Few lock files, since they can never be removed safely.
            with FileLock(_lock_file(folder, digest)):
                if not _complete(path, len(part)):
                    for rest in path.parent.glob(f".{path.name}.*.tmp"):  # of a process that was killed
                        shutil.rmtree(rest, ignore_errors=True)
                    differ += write_part(path, _counted(part, bar), cut, encode)
                    made += 1
                else:
                    bar.update(len(part))
            parts.append({"digest": digest, "documents": len(part)})
    if not parts:
        raise EmptyCorpusError("There are no documents to tokenize.")
    if differ:
        logger.warning(
            "%s tokenizes across spaces: in %d of the documents looked at, some ids at the seams of sentences differ "
            "from those of the joined text.",
            type(tokenizer).__name__,
            differ,
        )
    logger.info("Tokenized %d of %d parts; the cache had the rest.", made, len(parts))
    name = _digest([part["digest"] for part in parts])
    path = folder / "corpora" / f"{name}.json"
    if not path.exists():
        write_json(path, {"documents": sum(part["documents"] for part in parts), "parts": parts})
    return TokenCorpus(path)


def _segmenter(
    segmenter: str | Segmenter, documents: Iterable[Document], place: Path
) -> tuple[Segmenter, Iterable[Document]]:
    """Make the segmenter; where Punkt has to learn, take what it learned from the same beginning of a corpus before."""
    if segmenter != "punkt" or PunktSegmenter.installed() is not None:
        return make_segmenter(segmenter, lambda: ()), documents
    first, stream = peek(documents, lambda document: len(document.text))
    path = place / "punkt" / f"{_digest([nltk.__version__, *(document.text for document in first)])}.json"
    if path.exists():
        return PunktSegmenter.from_dict(read_json(path)), stream
    logger.info("NLTK's punkt_tab is not installed: learning Punkt's parameters from a sample of the corpus.")
    learned = PunktSegmenter.learn(document.text for document in first)
    write_json(path, learned.to_dict())
    return learned, stream


def _settings_folder(place: Path, cut: Segmenter, encode: SentenceTokenizer, *, shared: bool) -> Path:
    identity = segmenter_identity(cut)
    if identity is None and shared:
        raise ConfigurationError(
            f"The segmenter {cut!r} has no fingerprint, so what it makes cannot be shared between runs: give it an "
            "attribute 'fingerprint' (a string that changes with what it does), or pass directory=."
        )
    settings = {
        "format": FORMAT,
        "columns": SCHEMA.names,
        "max_words": MAX_WORDS,
        "segmenter": identity,
        "tokenizer": encode.identity,
    }
    folder = place / _digest([json.dumps(settings, sort_keys=True)])
    if not (folder / "settings.json").exists():
        write_json(folder / "settings.json", settings)
    return folder


def _digest(values: Iterable[str]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for value in values:
        data = value.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def _lock_file(folder: Path, digest: str) -> str:
    locks = folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    return str(locks / f"{digest[:2]}.lock")


def _complete(path: Path, documents: int) -> bool:
    """Tell whether a part is there and can be read: a machine that lost power may leave a file without its end."""
    try:
        return len(Part(path)) == documents
    except DataError:
        return False


def _counted(part: Sequence[Document], bar: tqdm) -> Iterable[Document]:
    for document in part:
        yield document
        bar.update()
