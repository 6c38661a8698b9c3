"""The former name of :mod:`simlte_st.search`."""

import warnings
from typing import Any

from simlte_st import search


def __getattr__(name: str) -> Any:
    found = getattr(search, name)
    warnings.warn(f"simlte_st.index is called simlte_st.search now: import {name} from there.", FutureWarning, 2)
    return found
