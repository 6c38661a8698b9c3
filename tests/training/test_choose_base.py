from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from simlte_st.training.choose_base import choose_base
from support import make_document

from simlte_st.models.names import OWN_STATIC, PACKAGED_BASE
from simlte_st.training import TrainConfig
from simlte_st.training.run import TrainingRun, open_documents

SHORT = [make_document(number, sentences=4) for number in range(9)]
LENGTHY = [make_document(number, sentences=60) for number in range(9)]


def chosen(documents: Any, output: Path, **settings: Any) -> str:
    run = open_documents(TrainingRun(documents, output / "m", TrainConfig.make(None, settings)))
    return choose_base(run.config, run.folder, run.documents)


def test_long_documents_get_a_static_model_and_short_ones_an_encoder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "simlte_st"):
        assert chosen(LENGTHY, tmp_path) == OWN_STATIC
    assert "480 words" in caplog.text
    assert "static=False" in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", "simlte_st"):
        assert chosen(SHORT, tmp_path) == PACKAGED_BASE
    assert "32 words" in caplog.text
    assert "static=True" in caplog.text
    # The median decides, and not the mean.
    assert chosen([*SHORT[:5], *LENGTHY[:4]], tmp_path) == PACKAGED_BASE
    assert chosen([*SHORT[:4], *LENGTHY[:5]], tmp_path) == OWN_STATIC


def test_what_was_asked_for_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "simlte_st"):
        assert chosen(LENGTHY, tmp_path, static=False) == PACKAGED_BASE
        assert chosen(SHORT, tmp_path, static=True) == OWN_STATIC
        assert chosen(SHORT, tmp_path, preset="docsplit-static") == OWN_STATIC
        assert chosen(LENGTHY, tmp_path, preset="docsplit-tuned") == PACKAGED_BASE
        assert chosen(LENGTHY, tmp_path, base="a-model") == "a-model"
        assert chosen(LENGTHY, tmp_path, max_length=4096) == PACKAGED_BASE, "an encoder's setting"
    assert "words" not in caplog.text, "nothing was measured"


def test_a_stream_is_measured_by_its_first_documents(tmp_path: Path) -> None:
    from datasets import Dataset

    stream = Dataset.from_dict({"text": LENGTHY}).to_iterable_dataset()
    assert chosen(stream, tmp_path, stream=True, max_steps=2) == OWN_STATIC
