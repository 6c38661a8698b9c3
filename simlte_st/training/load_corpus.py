"""Second stage of a run: read the documents, hold some out, and segment the others.

For a stream, these are its first documents; the rest is read during training.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from simlte_st.distributed import main_first
from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.splits import MIN_CLASS_SIZE, probe_rows
from simlte_st.files import read_json, write_json
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.language import DOCUMENTS, warn_of_language
from simlte_st.models.truncation import CUT_SHARE, Truncation
from simlte_st.modules.chunk_mean import can_read_in_chunks
from simlte_st.reading.document import Document, text_key
from simlte_st.reading.documents import DocumentReader, Shards
from simlte_st.training.batches import TokenViews, write_tokens
from simlte_st.training.prepare_model import Loaded
from simlte_st.training.run import Run
from simlte_st.views.corpus import CorpusReport, document_lengths
from simlte_st.views.document_stream import DocumentStream, StreamedViews, shard_order, usable_by
from simlte_st.words.sentences import PunktSegmenter, Segmenter, estimate_tokens, make_segmenter, tokenizer_counter

logger = logging.getLogger(__name__)

FIRST = 1_000
"""Number of documents of a stream to read before training; half of them are held out."""


@dataclass(frozen=True)
class TrainingCorpus:
    """The documents of a run.

    Attributes:
        dataset: The training documents, or the first ones of a stream; rows read as ``{"anchor": str, "positive":
            str}``.
        held_out: The held-out documents.
        labelled: The held-out documents that a probe can use.
        read: Report of the reader, as JSON values.
        report: Report on the training documents.
        segmenter: The sentence segmenter.
        stream: Views of all documents of a stream; None if ``dataset`` has all documents.
        token_views: Views of the tokenized documents, for a static model; None for a stream.
        whole: Whether the finished model reads documents in chunks, because the base would truncate too many tokens.
    """

    dataset: Dataset
    held_out: list[Document]
    labelled: list[Document]
    read: dict[str, Any]
    report: CorpusReport
    segmenter: Segmenter
    stream: StreamedViews | None = None
    token_views: TokenViews | None = None
    whole: bool = False

    @property
    def sentences(self) -> Dataset:
        """Sentences of the training documents."""
        return self.dataset.with_format(None).select_columns("sentences")

    def lengths(self) -> Iterable[Any]:
        """Return the numbers of tokens of the training documents, in batches."""
        return document_lengths(self.dataset) if self.token_views is None else [self.token_views.lengths]


@main_first
def load_corpus(
    run: Run, documents: DocumentReader | Shards | None, loaded: Loaded, *, held_out: float, probe: str | None
) -> TrainingCorpus:
    """Read, hold out and segment the documents, or load an earlier result from the run's folder.

    Args:
        run: The run.
        documents: The documents; None in a process that loads the result of the main process.
        loaded: The model and its views.
        held_out: Share of the documents to hold out.
        probe: Column of the labels, for messages.
    """
    manifest, folder, views = run.folder.path / "documents.json", run.folder.corpus, loaded.views
    shards = documents if isinstance(documents, Shards) else None
    if manifest.exists():
        dataset = views.attach((), directory=folder)  # all are in the folder
    else:
        assert documents is not None
        shutil.rmtree(folder, ignore_errors=True)  # a killed run did not record what it held out
        dataset = _read_documents(run, documents, loaded, held_out, manifest)
    saved = read_json(manifest)
    logger.info("%s", saved["read"].pop("summary"))
    kept_out = [Document(row["id"], row["text"], row["label"]) for row in saved["held_out"]]
    labelled = [kept_out[row] for row in probe_rows(kept_out)]
    if probe is not None and len({item.label for item in labelled}) < 2:
        raise ConfigurationError(
            f"probe={probe!r}: a probe needs two classes of {MIN_CLASS_SIZE} or more held-out documents. Hold out more "
            "documents, or choose a column with fewer classes."
        )
    report, token_views = views.report, None
    assert report is not None
    if loaded.static and shards is None:
        write_tokens(dataset, loaded.model.tokenizer, run.folder.tokens, progress=run.progress)
        token_views = TokenViews(dataset, views, run.folder.tokens)
        lengths = token_views.lengths  # exact; the report has estimates
        report = replace(report, tokens=int(lengths.sum()), longest=int(lengths.max()))
    learned = folder / "punkt.json"
    cut = PunktSegmenter.from_dict(read_json(learned)) if learned.exists() else make_segmenter(views.segmenter, tuple)
    corpus = TrainingCorpus(dataset, kept_out, labelled, saved["read"], report, cut, token_views=token_views)
    rows = corpus.sentences
    spread = rows.select(range(0, len(rows), -(-len(rows) // DOCUMENTS)))
    warn_of_language({loaded.base.name: loaded.model}, (" ".join(row["sentences"]) for row in spread))
    if shards is not None:
        corpus = replace(corpus, stream=_stream_views(run, shards, loaded, corpus))
    return replace(corpus, whole=loaded.preset.max_length is None and _cuts_much(loaded, corpus))


def _read_documents(
    run: Run, documents: DocumentReader | Shards, loaded: Loaded, held_out: float, manifest: Path
) -> Dataset:
    """Read and segment the documents, and write a manifest of the documents read and held out."""
    holder = HeldOut(held_out, seed=run.seed)
    if isinstance(documents, Shards):
        if loaded.preset.steps is None:
            raise ConfigurationError(
                "Set max_steps=: the length of an epoch is unknown, because a stream is not counted."
            )
        holder.share = 0.5 if held_out else 0.0  # of the first documents
        documents = documents.first(FIRST, shard_order(len(documents.names), run.seed, epoch=0))
    dataset = loaded.views.attach(documents, directory=run.folder.corpus, hold_out=holder.divert, progress=run.progress)
    rows = [{"id": item.id, "text": item.text, "label": item.label} for item in holder.documents]
    read = {**documents.report.to_dict(), "summary": documents.report.summary()}
    write_json(manifest, {"read": read, "held_out": rows})
    return dataset


def _stream_views(run: Run, shards: Shards, loaded: Loaded, corpus: TrainingCorpus) -> StreamedViews:
    """Return the views of all documents of a stream, without those held out."""
    views, segmenter = loaded.views, corpus.segmenter
    stream = DocumentStream(
        shards,
        seed=run.seed,
        usable=usable_by(views.view, segmenter),
        excluded_keys={text_key(document.text) for document in corpus.held_out},
        batch_size=loaded.preset.batch_size,
        path=run.folder.path / "stream.json",
    )
    count = estimate_tokens if loaded.static else tokenizer_counter(loaded.model.tokenizer)
    return StreamedViews(
        stream, views.view, seed=run.seed, budget=views.budget, segmenter=segmenter, count_tokens=count
    )


def _cuts_much(loaded: Loaded, corpus: TrainingCorpus) -> bool:
    """Return whether the base would truncate many tokens and can read documents in chunks instead.

    The mean over chunks is the cheapest way to read more and as good as others: macro-F1 over six sets is 47.0 with few
    labels and 50.0 with all, against 47.2 and 50.3 for a converted Longformer, which takes 1.46 times as long. It works
    with any base, and training still uses short views.
    """
    read = Truncation.of(loaded.model, max_seq_length=loaded.reads)
    for lengths in document_lengths(corpus.dataset):
        read.add(lengths)
    length = read.max_seq_length
    if length is None or length >= WHOLE_DOCUMENTS or read.cut_tokens <= CUT_SHARE * read.tokens:
        return False
    return can_read_in_chunks(loaded.model)


@dataclass
class HeldOut:
    """Holds out a share of documents, chosen by the seed and their ids only.

    From a small corpus it holds out more, up to three times the share, until there are ``least`` documents.
    """

    share: float = 0.1
    least: int = 100
    most: int = 500
    seed: int = 0
    documents: list[Document] = field(default_factory=list)

    def divert(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the training documents, and collect the held-out ones in :attr:`documents`.

        Documents that may be needed for the minimum wait, and are yielded later if they are not needed.
        """
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
