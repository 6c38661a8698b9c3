"""Moved to :mod:`simlte_st.config`."""

from simlte_st.config import LARGEST_COUNT as LARGEST_COUNT
from simlte_st.config import LARGEST_SEED as LARGEST_SEED
from simlte_st.config import check_choice as check_choice
from simlte_st.config import check_count as check_count
from simlte_st.config import check_number as check_number
from simlte_st.config import check_seed as check_seed
from simlte_st.config import check_text as check_text
