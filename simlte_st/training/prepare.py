"""The documents of a run: read, some held out, the others segmented; and how much of them a pass sees.

Of a stream this is done with its first documents; the others are read while the run takes them.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import length_hint
from typing import Any

from datasets import Dataset

from simlte_st.data.corpus import CorpusReport, Coverage
from simlte_st.data.document import Document, content_id, text_key
from simlte_st.data.document_stream import DocumentStream, StreamedViews, shard_order, usable_by
from simlte_st.data.documents import DocumentReader
from simlte_st.data.segmenters import PunktSegmenter, make_segmenter
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.data.shards import Shards
from simlte_st.errors import ConfigurationError, EmptyCorpusError, ResumeError
from simlte_st.evaluation.splits import PROBE_LEAST, probe_rows
from simlte_st.files import read_json, write_json
from simlte_st.training.model import Trainee
from simlte_st.training.run import RunFolder, RunOptions

logger = logging.getLogger(__name__)

LOOKED_AT = 1_000
"""Documents of a stream that are looked at before training: half of them at most are held out."""


@dataclass(frozen=True)
class Prepared:
    """What a run has to train and to measure on.

    Attributes:
        dataset: The documents to train on, or the first ones of a stream; rows read as
            ``{"anchor": str, "positive": str}``.
        held_out: The documents kept out of training.
        read: The reader's report as JSON values: documents read, skipped and mended, with reasons.
        corpus: What became of the documents to train on.
        coverage: What one pass sees of them.
        stream: The views of all documents of a stream; None where the data set has them.
    """

    dataset: Dataset
    held_out: list[Document]
    read: dict[str, Any]
    corpus: CorpusReport
    coverage: Coverage
    stream: StreamedViews | None = None

    def counted(self, rows: int) -> tuple[Prepared, float | None]:
        """Count what was taken, where it is a stream."""
        if self.stream is None:
            return self, None
        taken = self.stream.stream.taken(rows)
        counted = replace(
            self,
            read={**self.read, "skipped": taken.skipped},
            corpus=replace(self.corpus, documents=taken.documents, left_out=taken.left_out),
            coverage=replace(self.coverage, total=taken.documents),
        )
        return counted, taken.passes


def prepare(
    reader: DocumentReader | None,
    trainee: Trainee,
    folder: RunFolder,
    options: RunOptions,
    shards: Shards | None = None,
) -> Prepared:
    """Read and segment the documents, or find what the run that is resumed did."""
    views, account = trainee.views, folder.path / "documents.json"
    if reader is None and not account.exists():
        raise ConfigurationError(f"{folder.path} is not seen by all processes: use an output in a folder they share.")
    if reader is not None and not account.exists():
        shutil.rmtree(folder.corpus, ignore_errors=True)  # of a run that was killed: nobody knows what it held out
        holder = HeldOut(options.held_out, seed=options.seed)
        if shards is not None:
            taken = stream_steps(trainee, options) * trainee.preset.batch_size
            wanted = taken - holder.left(taken)
            holder = HeldOut(0.5 if wanted else 0, most=wanted, seed=options.seed)
        try:
            dataset = views.attach(reader, directory=folder.corpus, hold_out=holder.divert, progress=options.progress)
        except EmptyCorpusError as error:
            if not (number := len(holder.documents)):
                raise
            were = "1 was" if number == 1 else f"{number} were"
            raise EmptyCorpusError(f"{error} {were} held out to measure the gain: with held_out=0 none is.") from None
        kept = [{"id": item.id, "text": item.text, "label": item.label} for item in holder.documents]
        read = {**reader.report.to_dict(), "summary": reader.report.summary()}
        write_json(account, {"read": read, "held_out": kept, "shards": _digest(shards)})
    elif (folder.corpus / "corpus.json").exists():
        dataset = views.attach((), directory=folder.corpus)  # they are all there
    else:
        raise ResumeError(
            f"The documents of the interrupted run are gone from {folder.corpus}: start anew with overwrite=True."
        )
    saved = read_json(account)
    logger.info("%s", saved["read"].pop("summary"))
    held_out = [Document(row["id"], row["text"], row["label"]) for row in saved["held_out"]]
    if options.probe is not None and len({item.label for item in probe_documents(held_out)}) < 2:
        raise ConfigurationError(
            f"probe={options.probe!r}: the documents held out have fewer than two classes in that column, of "
            f"{PROBE_LEAST} documents or more each. Hold out more of them, or name a column with fewer classes."
        )
    assert views.report is not None
    coverage = views.coverage(dataset)
    logger.info("%s.", coverage.summary().capitalize())
    if shards is None:
        return Prepared(dataset, held_out, saved["read"], views.report, coverage)
    if saved["shards"] != _digest(shards):
        raise ResumeError(f"{shards.name} has other files, or in another order, than when the run began: start anew.")
    logger.info(
        "A stream: what is said of lengths is of its first documents, %d of which are held out of training.",
        len(held_out),
    )
    cut = folder.corpus / "punkt.json"
    segmenter = (
        PunktSegmenter.from_dict(read_json(cut)) if cut.exists() else make_segmenter(options.segmenter, lambda: ())
    )
    stream = DocumentStream(
        shards,
        seed=options.seed,
        usable=usable_by(views.view, segmenter),
        without={text_key(document.text) for document in held_out},
        batch_size=trainee.preset.batch_size,
        path=folder.path / "stream.json",
    )
    streamed = StreamedViews(
        stream,
        views.view,
        seed=options.seed,
        budget=views.budget,
        segmenter=segmenter,
        count_tokens=tokenizer_counter(trainee.model.tokenizer),
    )
    return Prepared(dataset, held_out, saved["read"], views.report, coverage, streamed)


def first_documents(shards: Shards, options: RunOptions) -> DocumentReader:
    """Return the reader of the documents of a stream that are looked at before training."""
    return shards.first(LOOKED_AT, shard_order(len(shards.names), options.seed, epoch=0))


def stream_steps(trainee: Trainee, options: RunOptions) -> int:
    """Count the steps of a run on a stream."""
    preset = trainee.preset
    if preset.batch_tokens is not None:
        raise ConfigurationError(
            "batch_tokens= needs the lengths of all documents, which a stream does not tell: use batch_size=."
        )
    steps = options.named_steps(preset)
    if steps is None:
        raise ConfigurationError(
            "Give max_steps=: a stream does not tell how many documents it has, and so not how long an epoch is."
        )
    return steps


def _digest(shards: Shards | None) -> str | None:
    return None if shards is None else content_id("\0".join(shards.names))


def probe_documents(held_out: Sequence[Document]) -> list[Document]:
    """Choose those that a probe can use: classes of fewer than :data:`PROBE_LEAST` documents cannot be divided."""
    return [held_out[row] for row in probe_rows(held_out)]


@dataclass
class HeldOut:
    """Diverts a share of a stream of documents.

    Which ones depends on the seed and the documents' ids only. Of few documents more than the share is held out, so
    that there is enough to measure on: up to three times the share, until there are ``least``.
    """

    share: float = 0.1
    least: int = 100
    most: int = 500
    seed: int = 0
    documents: list[Document] = field(default_factory=list)

    def divert(self, documents: Iterable[Document]) -> Iterable[Document]:
        """Return the documents to train on, to be iterated once; those held out gather in :attr:`documents`.

        As long as too few are held out, those that may be needed wait; they come when it is known that they are not.
        """
        return _Diverted(self, documents)

    def left(self, documents: int) -> int:
        """Estimate how many of so many documents are left to train on; exact is what :meth:`divert` does."""
        wanted = max(min(self.most, self.share * documents), min(self.least, self.most, 3 * self.share * documents))
        return max(0, documents - round(wanted))

    def _rest(self, documents: Iterable[Document]) -> Iterator[Document]:
        least = min(self.least, self.most)
        waiting: list[tuple[float, Document]] = []
        for document in documents:
            drawn = self._drawn(document.id)
            if drawn < self.share and len(self.documents) < self.most:
                self.documents.append(document)
            elif drawn < min(0.5, 3 * self.share) and len(self.documents) < least:
                waiting.append((drawn, document))
            else:
                yield document
            if waiting and len(self.documents) >= least:
                yield from (document for _, document in waiting)
                waiting = []
        waiting.sort(key=lambda item: item[0])
        needed = max(0, least - len(self.documents))
        self.documents += [document for _, document in waiting[:needed]]
        yield from (document for _, document in waiting[needed:])

    def _drawn(self, document_id: str) -> float:
        key = f"held out\x00{self.seed}\x00{document_id}".encode("utf-8", "surrogatepass")
        return float(int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64)


@dataclass(frozen=True)
class _Diverted:
    """The documents to train on, which tell about how many they are: for the progress bar."""

    holder: HeldOut
    documents: Iterable[Document]

    def __iter__(self) -> Iterator[Document]:
        return self.holder._rest(self.documents)

    def __length_hint__(self) -> int:
        known = length_hint(self.documents, -1)
        return NotImplemented if known < 0 else self.holder.left(known)
