"""Part files, the unit of encoding: finished ones stay, whichever process or machine made them.

They are in a folder beside the file that vectors are written to, until all of them are there.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError, ModelError, ResumeError
from simlte_st.files import (
    SETTINGS_FILE,
    atomic_path,
    changes,
    check_apart,
    check_place,
    digest_of,
    hold,
    is_unused,
    read_json,
    write_json,
)
from simlte_st.prompts import document_prompt

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

    from simlte_st.data.documents import DocumentReader


@dataclass(frozen=True)
class Part:
    """Texts that are encoded together, and the file of their vectors."""

    path: Path
    ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, folder: Path, number: int, ids: list[str], texts: list[str]) -> Part:
        """Return the ``number``-th part of a source."""
        digest = digest_of(each.encode("utf-8") for pair in zip(ids, texts, strict=True) for each in pair)
        return cls(folder / f"part-{number:08d}-{digest}.parquet", ids, texts)


class Parts:
    """The parts of a source, in order.

    Attributes:
        reader: Reads the documents.
        folder: Where the part files are.
    """

    def __init__(self, reader: DocumentReader, folder: Path) -> None:
        self.reader, self.folder = reader, folder

    @property
    def total(self) -> int | None:
        """Number of texts, if known."""
        return length_hint(self.reader, 0) or None

    def __iter__(self) -> Iterator[Part]:
        """Read the source from its beginning."""
        raise NotImplementedError


class DocumentParts(Parts):
    """The documents of a reader, a fixed number in each part."""

    def __init__(self, reader: DocumentReader, folder: Path, size: int) -> None:
        super().__init__(reader, folder)
        self._size = size
        self._before = {part_number(path): path.name for path in part_files(folder)}

    def __iter__(self) -> Iterator[Part]:
        """Read the documents; raise a ResumeError if they are not those of the finished parts."""
        documents, number = iter(self.reader), 0
        while batch := list(islice(documents, self._size)):
            number += 1
            part = Part.of(self.folder, number, [one.id for one in batch], [one.text for one in batch])
            before = self._before.get(number, part.path.name)
            if before != part.path.name:
                raise ResumeError(
                    f"{self.folder / before} holds other documents than the source has now: start again with "
                    "overwrite=True."
                )
            yield part
        if max(self._before, default=0) > number:
            raise ResumeError(
                f"{self.folder} holds more documents than the source has now: start again with overwrite=True."
            )


@dataclass(frozen=True)
class PartEncoder:
    """Makes part files with a model."""

    model: SentenceTransformer
    batch_size: int = 32
    normalize: bool = False

    def make(self, part: Part, pool: Any = None) -> None:
        """Encode a part and write its file: ``id`` (string), ``vector`` (float32); ``tokens`` (int64)."""
        vectors, tokens = encode_counted(self.model, part.texts, self.batch_size, self.normalize, pool)
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(broken):
            raise ModelError(
                f"The vectors of {len(broken)} of {len(part.ids)} documents are not finite (first: "
                f"{part.ids[broken[0]]!r}): the model computes numbers beyond its dtype. Load it in float32."
            )
        columns = {
            "id": pa.array(part.ids, type=pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
            "tokens": pa.array(tokens, type=pa.int64()),
        }
        with atomic_path(part.path) as temporary:
            pq.write_table(pa.table(columns), temporary, use_dictionary=False)  # no two numbers are the same
        # Otherwise glibc keeps free memory in pieces that fit no other length of text: on mixed lengths a process grew
        # by 1.4 GiB an hour, and now by 0.3.
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)


class Encoded(NamedTuple):
    """Vectors of texts, and their numbers of tokens."""

    vectors: NDArray[np.float32]
    tokens: list[int]


def encode_counted(
    model: SentenceTransformer, texts: list[str], batch_size: int, normalize: bool = False, pool: Any = None
) -> Encoded:
    """Encode documents with the model's prompt for them, and count their tokens."""
    from simlte_st.models.passes import TextReader

    order = np.argsort([-len(text) for text in texts], kind="stable") if pool is not None else np.arange(len(texts))
    prompt, reader = document_prompt(model), TextReader(model, batch_size, texts, embeds=pool is None)
    vectors = reader.model.encode_document(
        [texts[row] for row in order],
        prompt=prompt,
        batch_size=reader.batch_size,
        normalize_embeddings=normalize,
        show_progress_bar=False,
        pool=pool,
        chunk_size=reader.batch_size,
    )
    ordered = np.empty((len(texts), len(vectors[0])), dtype=np.float32)
    ordered[order] = vectors
    return Encoded(ordered, reader.counts_of(texts, prompt))


def part_number(path: Path) -> int:
    """Return the number of a part file, from 1."""
    return int(path.name.split("-")[1])


def weights_digest(model: SentenceTransformer) -> str:
    """Return a digest of the names and values of a model's weights, and of its ``max_seq_length``.

    Weights of parts that its vectors do not depend on, such as a pooler that is not asked, do not count: a checkpoint
    may lack them, and other versions of the libraries draw others in their place. Values of 16 bits count as the same
    ones in 32: a checkpoint is loaded as either.
    """
    import torch

    from simlte_st.models.static import is_static

    without = unused_parts(model)
    state = sorted(item for item in model.state_dict().items() if not item[0].startswith(without))
    values = (_counted(tensor).contiguous().view(-1).view(torch.uint8).numpy() for _, tensor in state)
    names = f"{[name for name, _ in state]} {None if is_static(model) else model.max_seq_length}".encode()
    return digest_of(itertools.chain([names], values))


def _counted(tensor: torch.Tensor) -> torch.Tensor:
    kept = tensor.detach().cpu()
    return kept.float() if kept.is_floating_point() and kept.itemsize == 2 else kept


def unused_parts(model: SentenceTransformer) -> tuple[str, ...]:
    """Return the prefixes of the names of weights that the vectors do not depend on: a pooler beside a ``Pooling``."""
    from sentence_transformers.base.modules import Transformer

    if not isinstance(model[0], Transformer) or model[0].module_output_name != "token_embeddings":
        return ()
    if getattr(model[0].auto_model, "pooler", None) is None:
        return ()
    prefix = next(name for name, module in model.named_modules() if module is model[0].auto_model)
    return (f"{prefix}.pooler.",)


# Their folder.


def parts_folder(output: Path) -> Path:
    """Return the folder of the parts."""
    return output.with_name(f"{output.name}.parts")


def part_files(folder: Path) -> list[Path]:
    """Return the part files of a folder in the order of their source."""
    return sorted(folder.glob("part-*.parquet"))


def check_vectors(documents: Any, output: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Check that vectors of documents can be written, and that there is an interrupted run where one is resumed."""
    check_apart(documents, output)
    check_place(output)
    if output.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{output}: the vectors are a parquet file: choose a name that ends in .parquet.")
    parts = parts_folder(output)
    saved = parts / SETTINGS_FILE
    if resume:
        if not saved.exists():
            raise ResumeError(f"There is no interrupted run at {parts}.")
        return
    unused = parts.is_dir() and is_unused(parts)
    for path, ours in ((output, output.is_file()), *([] if unused else [(parts, saved.exists())])):
        if path.exists() and not overwrite:
            how = "resume it (resume=True) or " if path == parts else ""
            raise ConfigurationError(f"{path} exists already: {how}replace it (overwrite=True).")
        if path.exists() and not ours:
            raise ConfigurationError(f"{path} was not written by this command and is not replaced: choose another.")


def open_parts(output: Path, settings: dict[str, Any], *, resume: bool) -> FileLock:
    """Open the folder of the parts of a checked output for this process, empty unless a run is resumed."""
    parts = parts_folder(output)
    lock, saved = hold(parts), parts / SETTINGS_FILE
    if resume:
        if different := changes(read_json(saved), settings):
            lock.release()
            raise ResumeError(f"The interrupted run at {parts} has other settings ({'; '.join(different.values())}).")
        return lock
    for path in part_files(parts):
        path.unlink()
    write_json(saved, settings)
    return lock
