"""Documents kept out of training, to say honestly afterwards whether it helped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from simlte_st.data.document import Document
from simlte_st.errors import ConfigurationError


@dataclass
class HeldOut:
    """Diverts a share of a stream of documents.

    Which ones depends on the seed and the document's id only, so a resumed run holds out the same ones.

    Args:
        share: Share of the documents, from 0 to 0.5.
        most: No more than so many; the rest of the share is trained on.
        seed: The run's seed.
    """

    share: float = 0.1
    most: int = 500
    seed: int = 0
    documents: list[Document] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 0.5:
            raise ConfigurationError(f"held_out={self.share}: a share of the documents, from 0 to 0.5.")

    def divert(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents to train on; those held out gather in :attr:`documents`."""
        for document in documents:
            if not self._take(document):
                yield document

    def note(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield all documents, for a cache that runs share; those held out gather in :attr:`documents` all the same."""
        for document in documents:
            self._take(document)
            yield document

    def _take(self, document: Document) -> bool:
        taken = len(self.documents) < self.most and self._drawn(document.id) < self.share
        if taken:
            self.documents.append(document)
        return taken

    def _drawn(self, document_id: str) -> float:
        key = f"held out\x00{self.seed}\x00{document_id}".encode("utf-8", "surrogatepass")
        return float(int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64)
