"""An index on disk: documents found by text or by other documents, with reasons."""

from simlte_st.index.adding import IndexReport
from simlte_st.index.calibration import Calibration
from simlte_st.index.hits import Hit, Hits
from simlte_st.index.index import Index

__all__ = ["Calibration", "Hit", "Hits", "Index", "IndexReport"]
