"""Long-document embeddings learned without labels: DocSplit / SimLTE for sentence-transformers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from simlte_st.models.registration import register

if TYPE_CHECKING:
    from simlte_st.data import DocSplit, DocSplitTransform, read_documents
    from simlte_st.losses import CachedMultipleNegativesRankingMLMLoss, MultipleNegativesRankingMLMLoss
    from simlte_st.models.encode import encode_documents
    from simlte_st.models.sentence_transformer import SentenceTransformer
    from simlte_st.training.train import train

__version__ = "0.1.0.dev0"
__all__ = [
    "CachedMultipleNegativesRankingMLMLoss",
    "DocSplit",
    "DocSplitTransform",
    "MultipleNegativesRankingMLMLoss",
    "SentenceTransformer",
    "__version__",
    "encode_documents",
    "read_documents",
    "train",
]

# Loaded on first use: `import simlte_st` and `simlte --help` must not wait for torch.
_LAZY = {
    "CachedMultipleNegativesRankingMLMLoss": "simlte_st.losses",
    "DocSplit": "simlte_st.data",
    "DocSplitTransform": "simlte_st.data",
    "MultipleNegativesRankingMLMLoss": "simlte_st.losses",
    "SentenceTransformer": "simlte_st.models.sentence_transformer",
    "encode_documents": "simlte_st.models.encode",
    "read_documents": "simlte_st.data",
    "train": "simlte_st.training.train",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register()
