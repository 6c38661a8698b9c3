"""Parts of a corpus of token ids: Arrow files of some thousand documents each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from simlte_st.data.document import Document
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import cut_document
from simlte_st.data.tokenized_document import TokenizedDocument
from simlte_st.data.tokens import Ints, SentenceTokenizer
from simlte_st.errors import DataError
from simlte_st.files import atomic_path

_INTS = pa.list_(pa.int32())
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "ids": _INTS,
        "sizes": _INTS,
        "paragraph_starts": _INTS,
        "word_counts": _INTS,
        "word_starts": _INTS,
        "head_ids": _INTS,
        "head_sizes": _INTS,
        "head_replaces": _INTS,
    }
)
"""Columns of a part: the attributes of a :class:`TokenizedDocument`. One record batch, uncompressed, to be mapped."""

_MOST_DOCUMENTS = 16_384
_MOST_CHARACTERS = 32_000_000  # half a minute of work, which is what an interruption can lose
_GROUP_CHARACTERS = 1_000_000  # tokenized at once
_CHECKED = 16  # documents of a part whose ids are compared with those of their text ...
_CHECKED_SENTENCES = 64  # ... as far as this


def in_parts(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Cut a stream of documents into parts. Where they are cut depends on the documents only."""
    part: list[Document] = []
    characters = 0
    for document in documents:
        part.append(document)
        characters += len(document.text)
        if len(part) == _MOST_DOCUMENTS or characters >= _MOST_CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


def part_digest(documents: Iterable[Document]) -> str:
    """Name a part by the ids and texts in it, in order: 32 hexadecimal digits."""
    total = hashlib.blake2b(digest_size=16)
    for document in documents:
        for value in (document.id, document.text):
            data = value.encode("utf-8", "surrogatepass")
            total.update(len(data).to_bytes(8, "little"))
            total.update(data)
    return total.hexdigest()


def write_part(path: Path, documents: Iterable[Document], cut: Segmenter, tokenizer: SentenceTokenizer) -> int:
    """Segment and tokenize documents and write them to ``path``, atomically.

    Args:
        path: The file.
        documents: The documents; iterated once.
        cut: Cuts paragraphs into sentences.
        tokenizer: Tokenizes sentences.

    Returns:
        How many of the first documents have other ids than their text, sentences joined by spaces, would have.
    """
    groups: list[dict[str, Any]] = []
    differ = checked = characters = 0
    names: list[str] = []
    group: list[tuple[list[str], list[int]]] = []
    for document in documents:
        sentences, paragraphs = cut_document(document, cut)
        if sentences and checked < _CHECKED:
            checked += 1
            differ += not tokenizer.joins(sentences[:_CHECKED_SENTENCES])
        names.append(document.id)
        group.append((sentences, paragraphs))
        characters += len(document.text)
        if characters >= _GROUP_CHARACTERS:
            groups.append(_columns(group, tokenizer))
            group, characters = [], 0
    if group:
        groups.append(_columns(group, tokenizer))
    arrays = [pa.array(names, pa.string())]
    for name in SCHEMA.names[1:]:
        counts = np.concatenate([columns[name][0] for columns in groups])
        values = np.concatenate([columns[name][1] for columns in groups])
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        arrays.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)))
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, SCHEMA) as writer,
    ):
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    return differ


def _columns(group: Sequence[tuple[list[str], list[int]]], tokenizer: SentenceTokenizer) -> dict[str, Any]:
    """Tokenize some documents: for each column, how many values each document has, and all values."""
    made = tokenizer([sentence for sentences, _ in group for sentence in sentences])
    sentences = np.array([len(sentences) for sentences, _ in group], dtype=np.int64)
    of_document = np.repeat(np.arange(len(group)), sentences)

    def total(per_sentence: Ints) -> Any:
        return np.bincount(of_document, weights=per_sentence, minlength=len(group)).astype(np.int64)

    tokens, words = total(made.sizes), total(made.words)
    none = np.zeros(len(group), dtype=np.int64)
    heads = bool(len(made.head_sizes))
    return {
        "ids": (tokens, made.ids),
        "sizes": (sentences, made.sizes),
        "paragraph_starts": (
            np.array([len(paragraphs) for _, paragraphs in group], dtype=np.int64),
            np.array([start for _, paragraphs in group for start in paragraphs], dtype=np.int32),
        ),
        "word_counts": (sentences, made.words),
        "word_starts": (words, made.word_starts - np.repeat(np.cumsum(tokens) - tokens, words).astype(np.int32)),
        "head_ids": (total(made.head_sizes) if heads else none, made.head_ids),
        "head_sizes": (sentences if heads else none, made.head_sizes),
        "head_replaces": (sentences if heads else none, made.head_replaces),
    }


class Part:
    """A part, mapped: the file is closed, and what is used of it stays mapped.

    Args:
        path: The file.

    Raises:
        DataError: The file is not there, or is no part.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            with pa.memory_map(os.fspath(path)) as source, pa.ipc.open_file(source) as reader:
                if reader.schema != SCHEMA or reader.num_record_batches != 1:
                    raise pa.ArrowInvalid("other columns than expected")
                batch = reader.get_batch(0)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(
                f"{path} is missing, damaged or of another version ({error}): build the corpus again."
            ) from error
        self._names = batch.column("id")
        self._lists = [(column.offsets.to_numpy(), column.values.to_numpy()) for column in batch.columns[1:]]

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> TokenizedDocument:
        """Give a document; its arrays are views of the file."""
        return TokenizedDocument(
            self._names[index].as_py(),
            *(values[offsets[index] : offsets[index + 1]] for offsets, values in self._lists),
        )

    @property
    def sizes(self) -> Ints:
        """Tokens of each document, ``(documents,)``, int32."""
        offsets: Ints = self._lists[SCHEMA.names.index("ids") - 1][0]
        return np.diff(offsets)
