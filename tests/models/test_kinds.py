"""Models of other kinds are rejected before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simlte_st.errors import ModelError
from simlte_st.models.loading import load_model


def written(folder: Path, **files: Any) -> Path:
    folder.mkdir()
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("SparseEncoder", {"config_sentence_transformers": {"model_type": "SparseEncoder"}}),
        ("CrossEncoder", {"config_sentence_transformers": {"model_type": "CrossEncoder"}}),
        ("MultiVectorEncoder", {"config_sentence_transformers": {"model_type": "MultiVectorEncoder"}}),
        ("CrossEncoder", {"config": {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}}),
    ],
)
def test_other_kinds_are_named_in_the_error(kind: str, files: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=kind):
        load_model(written(tmp_path / "model", **files))


def test_broken_config_is_not_mistaken_for_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be loaded"):
        load_model(written(tmp_path / "model", config=["x"]))
