from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from losses_support import mean_model
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertForMaskedLM


@pytest.fixture(scope="session")
def perturbed_path(bert_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT without biases of zero and norms of one, which hide errors."""
    path = tmp_path_factory.mktemp("perturbed") / "bert"
    masked_lm = BertForMaskedLM.from_pretrained(bert_path)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in masked_lm.parameters():
            value.add_(torch.randn(value.shape, generator=generator) * 0.2)
    masked_lm.save_pretrained(path)
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(path)
    return path


@pytest.fixture(params=["separate", "shared"])
def mlm_input(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def with_head(perturbed_path: Path) -> SentenceTransformer:
    return mean_model(perturbed_path)
