from __future__ import annotations

import pytest
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE


@pytest.fixture(scope="session")
def teacher() -> SentenceTransformer:
    return load_model(PACKAGED_BASE, dtype=torch.float32, device="cpu").model
