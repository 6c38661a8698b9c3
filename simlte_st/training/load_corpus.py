"""Second stage of a run: read the documents, hold some out, and segment the rest.

From a stream, only the first documents are read here; the rest are read during training.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from simlte_st.distributed import main_first
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.splits import MIN_CLASS_SIZE, probe_rows
from simlte_st.files import read_json, write_json
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.limits import CUT_SHARE, DOCUMENTS, Truncation, warn_of_language
from simlte_st.modules.chunk_mean import can_read_in_chunks
from simlte_st.reading.document import Document, text_key
from simlte_st.reading.documents import DocumentReader, Shards
from simlte_st.training.batches import TokenViews, tokenize_corpus
from simlte_st.training.prepare_model import TrainingSetup
from simlte_st.training.run import Run
from simlte_st.views.corpus import CorpusReport, DocumentStream, StreamedViews, document_lengths, is_usable, shard_order
from simlte_st.words.sentences import PunktSegmenter, Segmenter, make_segmenter, segment_document

logger = logging.getLogger(__name__)

FIRST = 1_000
"""Number of documents to read from a stream before training; half of them are held out."""

MIN_HELD_OUT, MAX_HELD_OUT = 100, 500
"""Minimum and maximum number of documents to hold out."""


@dataclass(frozen=True)
class TrainingCorpus:
    """The documents of a run.

    Attributes:
        dataset: The training documents, or the first documents of a stream. Rows are ``{"anchor": str, "positive":
            str}``.
        held_out: The held-out documents.
        labelled: The held-out documents that a probe can use.
        reader_report: The reader's report, as JSON values.
        report: Report on the training documents.
        segmenter: The sentence segmenter.
        stream: Views of all documents in a stream, or None if ``dataset`` contains all documents.
        token_views: Views of the tokenized documents for a static model, or None for a stream or an encoder.
        in_chunks: Whether the finished model reads documents in chunks, because the base would truncate too many
            tokens.
    """

    dataset: Dataset
    held_out: list[Document]
    labelled: list[Document]
    reader_report: dict[str, Any]
    report: CorpusReport
    segmenter: Segmenter
    stream: StreamedViews | None = None
    token_views: TokenViews | None = None
    in_chunks: bool = False

    @property
    def sentences(self) -> Dataset:
        """The sentences of the training documents."""
        return self.dataset.with_format(None).select_columns("sentences")

    @property
    def examples(self) -> list[str]:
        """The beginnings of a few training documents."""
        return [" ".join(row["sentences"])[:2_000] for row in self.sentences.select(range(min(4, len(self.dataset))))]

    def lengths(self) -> Iterable[NDArray[np.int64]]:
        """Return the number of tokens of each training document, in batches."""
        return document_lengths(self.dataset if self.token_views is None else self.token_views.corpus)


@main_first
def load_corpus(
    run: Run, documents: DocumentReader | Shards | None, setup: TrainingSetup, *, held_out: float, probe: str | None
) -> TrainingCorpus:
    """Read the documents, hold some out and segment the rest; or load these results from the run's folder.

    Args:
        run: The run.
        documents: The documents, or None in processes that load the main process's result.
        setup: The model and its views.
        held_out: Fraction of the documents to hold out.
        probe: Label column, for messages.
    """
    manifest_path, folder, views = run.folder.path / "documents.json", run.folder.corpus, setup.views
    shards = documents if isinstance(documents, Shards) else None
    if manifest_path.exists():
        dataset = views.attach((), directory=folder)  # reads all documents from the folder
    else:
        assert documents is not None
        shutil.rmtree(folder, ignore_errors=True)  # left by a killed run, without a record of the held-out documents
        dataset = _read_documents(run, documents, setup, held_out, manifest_path)
    manifest = read_json(manifest_path)
    logger.info("%s", manifest["read"].pop("summary"))
    held_out_documents = [Document(row["id"], row["text"], row["label"]) for row in manifest["held_out"]]
    labelled = [held_out_documents[row] for row in probe_rows(held_out_documents)]
    if probe is not None and len({document.label for document in labelled}) < 2:
        raise ConfigurationError(
            f"probe={probe!r}: a probe needs at least two classes with {MIN_CLASS_SIZE} or more held-out documents. "
            "Hold out more documents or choose a column with fewer classes."
        )
    report, token_views = views.report, None
    assert report is not None
    if setup.static and shards is None:
        tokens = tokenize_corpus(dataset, setup.model.tokenizer, run.folder.tokens, progress=run.progress)
        token_views, lengths = TokenViews(tokens, views), np.concatenate([*document_lengths(tokens)])
        # Exact numbers, whereas the report contains estimates.
        report = replace(report, tokens=int(lengths.sum()), longest=int(lengths.max()))
    punkt = folder / "punkt.json"
    segmenter = PunktSegmenter.from_dict(read_json(punkt)) if punkt.exists() else make_segmenter(views.segmenter, tuple)
    corpus = TrainingCorpus(
        dataset=dataset, held_out=held_out_documents, labelled=labelled, reader_report=manifest["read"], report=report,
        segmenter=segmenter, token_views=token_views,
    )  # fmt: skip
    rows = corpus.sentences
    sample = rows.select(range(0, len(rows), -(-len(rows) // DOCUMENTS)))
    warn_of_language({setup.base.name: setup.model}, (" ".join(row["sentences"]) for row in sample))
    if shards is not None:
        corpus = replace(corpus, stream=_stream_views(run, shards, setup, corpus))
    return replace(corpus, in_chunks=setup.preset.max_length is None and _truncates_much(setup, corpus))


def _read_documents(
    run: Run, documents: DocumentReader | Shards, setup: TrainingSetup, held_out: float, manifest_path: Path
) -> Dataset:
    """Read and segment the documents; write the reader's report and the held-out documents to the manifest."""
    hold_out = HoldOut(held_out, seed=run.seed)
    if isinstance(documents, Shards):
        if setup.preset.steps is None:
            raise ConfigurationError("Set max_steps= to train on a stream: its length is unknown, so it has no epochs.")
        hold_out.share = 0.5 if held_out else 0.0  # half of the first documents
        documents = documents.first(FIRST, shard_order(len(documents.names), run.seed, epoch=0))
    folder = run.folder.corpus
    dataset = setup.views.attach(documents, directory=folder, hold_out=hold_out.divert, progress=run.progress)
    rows = [{"id": document.id, "text": document.text, "label": document.label} for document in hold_out.documents]
    report = {**documents.report.to_dict(), "summary": documents.report.summary()}
    write_json(manifest_path, {"read": report, "held_out": rows})
    return dataset


def _stream_views(run: Run, shards: Shards, setup: TrainingSetup, corpus: TrainingCorpus) -> StreamedViews:
    """Return the views of all documents in a stream except the held-out documents."""
    views = setup.views
    segment = partial(segment_document, segmenter=corpus.segmenter, count_tokens=views.count_tokens)
    stream = DocumentStream(
        shards, seed=run.seed, usable=partial(is_usable, view=views.view, segment=segment),
        batch_size=setup.preset.batch_size,
        excluded_keys={text_key(document.text) for document in corpus.held_out},
        path=run.folder.path / "stream.json",
    )  # fmt: skip
    return StreamedViews(stream, views.view, segment, seed=run.seed, budget=views.budget)


def _truncates_much(setup: TrainingSetup, corpus: TrainingCorpus) -> bool:
    """Return whether the base would truncate many tokens and can read documents in chunks instead.

    Averaging chunk embeddings is the cheapest way to read more text, and nearly as good as a converted Longformer: over
    six data sets, mean macro-F1 is 47.0 with few labels and 50.0 with all labels, against the Longformer's 47.2 and
    50.3, which takes 1.46 times as long. It works with any base, and training still uses short views.
    """
    truncation = Truncation.of(setup.model, max_seq_length=setup.reads)
    for lengths in document_lengths(corpus.dataset):
        truncation.add(lengths)
    length = truncation.max_seq_length
    if length is None or length >= WHOLE_DOCUMENTS or truncation.cut_tokens <= CUT_SHARE * truncation.tokens:
        return False
    return can_read_in_chunks(setup.model)


@dataclass
class HoldOut:
    """Holds out a fraction of the documents, chosen only by the seed and the document ids.

    In a small corpus, up to three times that fraction is held out, to reach :data:`MIN_HELD_OUT` documents.
    """

    share: float = 0.1
    seed: int = 0
    documents: list[Document] = field(default_factory=list)

    def divert(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the training documents, and collect the held-out ones in :attr:`documents`.

        Documents that may be needed to reach the minimum are kept back, and yielded later if they are not needed.
        """
        waiting: list[tuple[float, Document]] = []
        for document in documents:
            number = self._random_number(document.id)
            if number < self.share and len(self.documents) < MAX_HELD_OUT:
                self.documents.append(document)
            elif number < min(0.5, 3 * self.share) and len(self.documents) < MIN_HELD_OUT:
                waiting.append((number, document))
            else:
                yield document
            if waiting and len(self.documents) >= MIN_HELD_OUT:
                yield from (document for _, document in waiting)
                waiting = []
        candidates = [document for _, document in sorted(waiting, key=lambda pair: pair[0])]
        missing = max(0, MIN_HELD_OUT - len(self.documents))
        self.documents += candidates[:missing]
        yield from candidates[missing:]

    def _random_number(self, document_id: str) -> float:
        """Hash a document id to a number in [0, 1)."""
        key = f"held out\x00{self.seed}\x00{document_id}".encode("utf-8", "surrogatepass")
        return float(int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64)
