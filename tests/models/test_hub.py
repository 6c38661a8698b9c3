from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from simlte_st.errors import ModelError
from simlte_st.models.base import load_base
from simlte_st.models.hub import hub_unreachable

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hub that nobody answers for, and no offline mode that would say so."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", NOWHERE)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda made=huggingface_hub.HfApi: made(endpoint=NOWHERE))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["someone/nothing", "all-nothing-v2"])
def test_without_a_network_a_name_is_refused_at_once(name: str) -> None:
    began = time.perf_counter()
    with pytest.raises(ModelError, match=rf"'{name}' could not be loaded: .*the Hub cannot be reached.*its cache"):
        load_base(name)
    assert time.perf_counter() - began < 10, "it was asked again and again"


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "repository"), [("someone/tiny", "someone/tiny"), ("tiny", "sentence-transformers/tiny"), ("raw", "raw")]
)
def test_without_a_network_the_cache_is_read(
    name: str, repository: str, encoder_path: Path, bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    folder = tmp_path / f"models--{repository.replace('/', '--')}"
    path = bert_path if name == "raw" else encoder_path
    shutil.copytree(path, folder / "snapshots" / ("a" * 40))
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("a" * 40)
    base = load_base(name)
    assert (base.name, base.tuned) == (name, name != "raw")
    assert (base.model.encode(["Ba bei bo."]) == load_base(path).model.encode(["Ba bei bo."])).all()


@pytest.mark.parametrize(("status", "reached"), [(None, True), (404, True), (401, True), (503, False)])
def test_an_answer_is_one_even_if_it_is_no(status: int | None, reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Exception):
        response = SimpleNamespace(status_code=status)

    asked = []

    def answer(self: object, repository: str, timeout: float) -> None:
        asked.append((repository, timeout))
        if status is not None:
            raise Refused

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", answer)
    for name in ("someone/x", "x"):
        assert (hub_unreachable(name) is None) is reached
    assert asked == [("someone/x", 5), ("sentence-transformers/x", 5)]
    for path in ("/no/such/x", "./x", "../x", "a/b/c", ""):
        assert hub_unreachable(path) is None
    assert len(asked) == 2, "paths are none of the Hub's business"
