"""Documents -> sentences -> views -> batches."""

from simlte_st.data.collator import DocSplitCollator
from simlte_st.data.corpus import write_corpus
from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.documents import read_documents
from simlte_st.data.duplicates import Duplicates, find_duplicates
from simlte_st.data.examples import docsplit_examples, docsplit_objectives
from simlte_st.data.rival_views import Crop, Duplicate, InverseCloze, WordDeletion, make_view
from simlte_st.data.segmenters import NupunktSegmenter, PunktSegmenter
from simlte_st.data.sentences import segment_document
from simlte_st.data.token_cache import tokenize_corpus
from simlte_st.data.token_collator import TokenCollator
from simlte_st.data.token_corpus import TokenCorpus, measure_token_coverage
from simlte_st.data.token_inputs import TokenPreprocessor
from simlte_st.data.transform import DocSplitTransform
from simlte_st.data.views import DocSplit, View, ViewPair, draw_views

__all__ = [
    "Crop",
    "DocSplit",
    "DocSplitCollator",
    "DocSplitTransform",
    "Document",
    "Duplicate",
    "Duplicates",
    "InverseCloze",
    "NupunktSegmenter",
    "PunktSegmenter",
    "SegmentedDocument",
    "TokenCollator",
    "TokenCorpus",
    "TokenPreprocessor",
    "View",
    "ViewPair",
    "WordDeletion",
    "docsplit_examples",
    "docsplit_objectives",
    "draw_views",
    "find_duplicates",
    "make_view",
    "measure_token_coverage",
    "read_documents",
    "segment_document",
    "tokenize_corpus",
    "write_corpus",
]
