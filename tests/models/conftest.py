from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from support import make_document, make_tokenizer
from transformers import BertConfig, BertModel

from simlte_st.models import shipped


@pytest.fixture(scope="session")
def base(encoder_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny sentence encoder with 512 positions, as the packaged base has them."""
    path = tmp_path_factory.mktemp("models") / "tiny-base"
    shutil.copytree(encoder_path, path)
    config = BertConfig.from_pretrained(encoder_path)
    config.max_position_embeddings = 512
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(path)
    tokenizer = make_tokenizer()
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package without shipped models."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "weights")
    return tmp_path / "weights"


@pytest.fixture
def tiny(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny base instead of the published one."""
    monkeypatch.setattr(shipped, "base_of_own_models", lambda: base)
    return base


@pytest.fixture(scope="session")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 24 documents with a label each."""
    path = tmp_path_factory.mktemp("docs") / "docs.jsonl"
    rows = ({"id": f"d{n}", "text": make_document(n, sentences=9), "label": "ab"[n % 2]} for n in range(24))
    path.write_text("\n".join(map(json.dumps, rows)))
    return path
