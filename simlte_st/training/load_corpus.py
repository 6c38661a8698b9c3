"""Second stage of a run: the documents, some of them held out and the others segmented, and what a pass sees of them.

Of a stream these are its first documents; the others are read while the run takes them.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from datasets import Dataset

from simlte_st.data.corpus import document_lengths
from simlte_st.data.document import Document, content_id, text_key
from simlte_st.data.document_stream import DocumentStream, StreamedViews, shard_order, usable_by
from simlte_st.data.documents import DocumentReader
from simlte_st.data.segmenters import PunktSegmenter, Segmenter, make_segmenter
from simlte_st.data.sentences import estimate_tokens, tokenizer_counter
from simlte_st.data.shards import Shards
from simlte_st.distributed import main_first
from simlte_st.errors import ConfigurationError, EmptyCorpusError, ResumeError
from simlte_st.evaluation.splits import PROBE_LEAST, probe_rows
from simlte_st.files import read_json, write_json
from simlte_st.models.conversion import WHOLE_DOCUMENTS
from simlte_st.models.language import DOCUMENTS, warn_of_language
from simlte_st.models.truncation import CUT_SHARE, Truncation
from simlte_st.modules.chunk_mean import can_read_in_chunks, chunk_length
from simlte_st.training.result import WholeDocuments
from simlte_st.training.run import TrainingRun
from simlte_st.training.token_views import TokenViews, write_tokens

logger = logging.getLogger(__name__)

FIRST = 1_000
"""Documents of a stream that are read before training; at most half of them are held out."""


@main_first
def load_corpus(run: TrainingRun) -> TrainingRun:
    """Read, hold out and segment the documents, or find what was made of them before."""
    manifest, folder = run.folder.path / "documents.json", run.folder.corpus
    shards = run.documents if isinstance(run.documents, Shards) else None
    if manifest.exists():
        if not (folder / "corpus.json").exists():
            raise ResumeError(f"The documents of the interrupted run are gone from {folder}: use overwrite=True.")
        run.dataset = run.views.attach((), directory=folder)  # they are all there
    else:
        shutil.rmtree(folder, ignore_errors=True)  # a killed run's: which documents it held out is unknown
        run.dataset = _read_documents(run, shards)
    saved = read_json(manifest)
    run.read = saved["read"]
    logger.info("%s", run.read.pop("summary"))
    run.held_out = [Document(row["id"], row["text"], row["label"]) for row in saved["held_out"]]
    if run.config.probe is not None and len({item.label for item in probe_documents(run.held_out)}) < 2:
        raise ConfigurationError(
            f"probe={run.config.probe!r}: the held-out documents have fewer than two classes in that column with "
            f"{PROBE_LEAST} documents or more each. Hold out more of them, or name a column with fewer classes."
        )
    assert run.views.report is not None
    run.corpus, run.coverage = run.views.report, run.views.coverage(run.dataset)
    if run.static and shards is None:
        write_tokens(run.dataset, run.model.tokenizer, run.folder.tokens, progress=run.config.progress)
        run.token_views = TokenViews(run.dataset, run.views, run.folder.tokens)
        lengths = run.token_views.lengths  # which were estimated
        run.corpus = replace(run.corpus, tokens=int(lengths.sum()), longest=int(lengths.max()))
    logger.info("%s.", run.coverage.summary().capitalize())
    rows = run.dataset.with_format(None).select_columns("sentences")
    spread = rows.select(range(0, len(rows), -(-len(rows) // DOCUMENTS)))
    warn_of_language({run.base.name: run.model}, (" ".join(row["sentences"]) for row in spread))
    if shards is not None:
        if saved["shards"] != _digest(shards):
            raise ResumeError(f"{shards.name} has other files, or in another order, than when the run began.")
        number = len(run.held_out)
        logger.info("Lengths are estimated from the first documents of the stream; %d of these are held out.", number)
        run.stream = _stream_views(run, shards)
    if run.preset.max_length is None:
        run.whole = plan_whole(run)
    return run


def _read_documents(run: TrainingRun, shards: Shards | None) -> Dataset:
    """Read and segment the documents, and write a manifest of what was read and held out."""
    config, reader = run.config, run.documents
    holder = HeldOut(config.held_out, seed=config.seed)
    if shards is not None:
        reader = shards.first(FIRST, shard_order(len(shards.names), config.seed, epoch=0))
        taken = _stream_steps(run) * run.preset.batch_size
        wanted = taken - holder.left(taken)
        holder = HeldOut(0.5 if wanted else 0, most=wanted, seed=config.seed)
    assert isinstance(reader, DocumentReader)
    try:
        dataset = run.views.attach(
            reader, directory=run.folder.corpus, hold_out=holder.divert, progress=config.progress
        )
    except EmptyCorpusError as error:
        if not (number := len(holder.documents)):
            raise
        were = "1 was" if number == 1 else f"{number} were"
        raise EmptyCorpusError(f"{error} {were} held out to measure the gain; held_out=0 holds out none.") from None
    held_out = [{"id": item.id, "text": item.text, "label": item.label} for item in holder.documents]
    read = {**reader.report.to_dict(), "summary": reader.report.summary()}
    digest = None if shards is None else _digest(shards)
    write_json(run.folder.path / "documents.json", {"read": read, "held_out": held_out, "shards": digest})
    return dataset


def _stream_steps(run: TrainingRun) -> int:
    """Return the number of steps of a run on a stream."""
    steps = run.config.steps_of(run.preset)
    if steps is None:
        raise ConfigurationError("Set max_steps=: the number of documents of a stream, and so an epoch, is unknown.")
    return steps


def _stream_views(run: TrainingRun, shards: Shards) -> StreamedViews:
    """Return the views of all documents of a stream but those held out."""
    views, seed, segmenter = run.views, run.config.seed, learned_segmenter(run)
    stream = DocumentStream(
        shards,
        seed=seed,
        usable=usable_by(views.view, segmenter),
        without={text_key(document.text) for document in run.held_out},
        batch_size=run.preset.batch_size,
        path=run.folder.path / "stream.json",
    )
    count = estimate_tokens if run.static else tokenizer_counter(run.model.tokenizer)
    return StreamedViews(stream, views.view, seed=seed, budget=views.budget, segmenter=segmenter, count_tokens=count)


def learned_segmenter(run: TrainingRun) -> Segmenter:
    """Return what cut the sentences of the corpus."""
    learned = run.folder.corpus / "punkt.json"
    if learned.exists():
        return PunktSegmenter.from_dict(read_json(learned))
    return make_segmenter(run.config.segmenter, lambda: ())


def _digest(shards: Shards) -> str:
    return content_id("\0".join(shards.names))


def probe_documents(held_out: Sequence[Document]) -> list[Document]:
    """Return the documents that a probe can use: of classes with at least :data:`PROBE_LEAST` documents."""
    return [held_out[row] for row in probe_rows(held_out)]


def plan_whole(run: TrainingRun) -> WholeDocuments | None:
    """Let the finished model read documents whole, in chunks, if the base would cut many of their tokens.

    Of the ways to read more, the mean over chunks costs least and is as good: 47.0 with few labels and 50.0 with all
    (macro-F1 over six sets), where the Longformer that the base is converted to has 47.2 and 50.3 after 1.46 times the
    time (``benchmarks/results/models.md``). It takes any base, whose weights are trained on short views as ever.
    """
    read = Truncation.of(run.model, max_seq_length=run.reads)
    for lengths in document_lengths(run.dataset):
        read.add(lengths)
    length = read.max_seq_length
    if length is None or length >= WHOLE_DOCUMENTS or read.cut_tokens <= CUT_SHARE * read.tokens:
        return None
    cut = read.cut_tokens / read.tokens
    if not can_read_in_chunks(run.model):
        logger.warning("%s cuts %.1f%% of the tokens, and cannot be made to read in chunks.", run.base.name, 100 * cut)
        return None
    logger.info(
        "The base would cut %.1f%% of the tokens: the finished model will read documents whole, up to %s tokens, in "
        "chunks. Training sees, and the verdict compares, as much as the base reads.",
        100 * cut,
        f"{WHOLE_DOCUMENTS:,}",
    )
    return WholeDocuments(WHOLE_DOCUMENTS, chunk_length(run.model) or length, cut)


@dataclass
class HeldOut:
    """Keeps a share of documents out of training; which ones depends on the seed and their ids only.

    Of few documents more than the share is held out, so that there is enough to measure on: up to three times the
    share, until there are ``least``.
    """

    share: float = 0.1
    least: int = 100
    most: int = 500
    seed: int = 0
    documents: list[Document] = field(default_factory=list)

    def divert(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents to train on; those held out gather in :attr:`documents`.

        While too few are held out, documents that may be needed are held back, and come later if they are not.
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

    def left(self, documents: int) -> int:
        """Estimate the number of documents left to train on."""
        wanted = max(min(self.most, self.share * documents), min(self.least, self.most, 3 * self.share * documents))
        return max(0, documents - round(wanted))

    def _drawn(self, document_id: str) -> float:
        key = f"held out\x00{self.seed}\x00{document_id}".encode("utf-8", "surrogatepass")
        return float(int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64)
