from __future__ import annotations

import pytest
from evaluation_support import labelled_texts, tiny_model_for_evaluation  # noqa: F401

from simlte_st.data import Document


@pytest.fixture
def corpus(documents: list[str]) -> list[Document]:
    """The made-up documents, in three classes."""
    return [Document(f"d{index}", text, f"class {index % 3}") for index, text in enumerate(documents)]
