"""Part files: the unit of encoding. What is finished stays, whoever made it, on whatever machine."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.compat import document_prompt
from simlte_st.data.documents import DocumentReader
from simlte_st.errors import ModelError, ResumeError
from simlte_st.files import atomic_path
from simlte_st.models.passes import TextReader


@dataclass(frozen=True)
class Part:
    """Texts that are encoded together, and the file of their vectors.

    Attributes:
        path: The file, which is there when the part is finished. Its name has the place of the part in the source and
            the digest of its ids and texts.
        ids: An id of each text.
        texts: The texts.
    """

    path: Path
    ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, folder: Path, number: int, ids: list[str], texts: list[str]) -> Part:
        """Name a part, which is the ``number``-th of its source."""
        digest = digest_of(each.encode("utf-8") for pair in zip(ids, texts, strict=True) for each in pair)
        return cls(folder / f"part-{number:08d}-{digest}.parquet", ids, texts)


class Parts(Protocol):
    """The parts of a source, in its order; Ray iterates a copy in another process.

    Attributes:
        folder: Where the files are.
        report: What came of reading them; set on the original when a copy was read in another process.
        done: Texts in the parts that were finished before.
        total: Texts in all of them; None where nobody knows.
    """

    folder: Path
    report: Any

    @property
    def done(self) -> int:  # noqa: D102
        ...

    @property
    def total(self) -> int | None:  # noqa: D102
        ...

    def __iter__(self) -> Iterator[Part]:
        """Read the source from its beginning."""
        ...


class DocumentParts:
    """The documents of a reader in parts."""

    def __init__(self, reader: DocumentReader, folder: Path, size: int) -> None:
        self._reader, self.folder, self._size = reader, folder, size
        self._before = {part_number(path): path.name for path in part_files(folder)}

    @property
    def report(self) -> Any:
        """The reader's report."""
        return self._reader.report

    @report.setter
    def report(self, report: Any) -> None:
        self._reader.report = report

    @property
    def done(self) -> int:
        """Documents in the parts that were there before."""
        return self._size * len(self._before)

    @property
    def total(self) -> int | None:
        """Documents that the reader has, where it knows."""
        return length_hint(self._reader, 0) or None

    def __iter__(self) -> Iterator[Part]:
        """Read the documents."""
        documents, number = iter(self._reader), 0
        while batch := list(islice(documents, self._size)):
            number += 1
            part = Part.of(self.folder, number, [one.id for one in batch], [one.text for one in batch])
            before = self._before.get(number, part.path.name)
            if before != part.path.name:
                raise ResumeError(
                    f"{self.folder / before} holds other documents than the source has now: start anew with "
                    "overwrite=True."
                )
            yield part
        if max(self._before, default=0) > number:
            raise ResumeError(
                f"{self.folder} holds more documents than the source has now: start anew with overwrite=True."
            )


@dataclass(frozen=True)
class PartEncoder:
    """Makes part files with a model, one at a time.

    Attributes:
        model: The model.
        batch_size: How many of the longest texts go through the model at once.
        normalize: Scale vectors to length 1.
    """

    model: SentenceTransformer
    batch_size: int = 32
    normalize: bool = False

    def make(self, part: Part, pool: Any = None) -> None:
        """Encode a part and write its file: ``id`` (string), ``vector`` (float32) and ``tokens`` (int64)."""
        vectors, tokens = encode_counted(self.model, part.texts, self.batch_size, self.normalize, pool)
        _check_finite(vectors, part.ids)
        columns = {
            "id": pa.array(part.ids, type=pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
            "tokens": pa.array(tokens, type=pa.int64()),
        }
        with atomic_path(part.path) as temporary:
            pq.write_table(pa.table(columns), temporary)
        _give_back()


def encode_counted(
    model: SentenceTransformer, texts: list[str], batch_size: int, normalize: bool = False, pool: Any = None
) -> tuple[NDArray[np.float32], list[int]]:
    """Encode documents behind the model's prompt for them."""
    order = np.argsort([-len(text) for text in texts], kind="stable") if pool is not None else np.arange(len(texts))
    prompt, reader = document_prompt(model), TextReader(model, batch_size, texts, embeds=pool is None)
    vectors = reader.model.encode_document(
        [texts[row] for row in order],
        prompt=prompt,
        batch_size=reader.batch_size,
        normalize_embeddings=normalize,
        show_progress_bar=False,
        pool=pool,
        chunk_size=batch_size,
    )
    ordered = np.empty((len(texts), len(vectors[0])), dtype=np.float32)
    ordered[order] = vectors
    return ordered, reader.lengths_of(texts, prompt)


def part_number(path: Path) -> int:
    """Tell which part of its source a file is of, from 1."""
    return int(path.name.split("-")[1])


def part_files(folder: Path) -> list[Path]:
    """Name the part files of a folder in the order of their source."""
    return sorted(folder.glob("part-*.parquet"))


def weights_digest(model: SentenceTransformer) -> str:
    """Digest what a model computes with: the names and values of its weights, and how many tokens it reads."""
    state = sorted(model.state_dict().items())
    values = (tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() for _, tensor in state)
    names = f"{[name for name, _ in state]} {model.max_seq_length}".encode()
    return digest_of(itertools.chain([names], values))


def digest_of(pieces: Iterable[Any]) -> str:
    """Digest bytes, and where each piece of them ends."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        data = memoryview(piece)
        digest.update(data.nbytes.to_bytes(8, "big"))  # or a text's end could be the next one's beginning
        digest.update(data)
    return digest.hexdigest()


def _check_finite(vectors: NDArray[np.float32], ids: list[str]) -> None:
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise ModelError(
            f"The vectors of {len(broken)} of {len(ids)} documents are not finite (first: {ids[broken[0]]!r}): the "
            "model computes numbers beyond its dtype. Load it in float32."
        )


def _give_back() -> None:
    """Return the system the memory that is free, where the C library is glibc.

    It would keep it by itself, in pieces that fit no other length of text: on texts of mixed lengths a process grew by
    1.4 GiB an hour, and by 0.3 since (``benchmarks/results/soak.md``).
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
